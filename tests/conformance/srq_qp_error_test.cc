#include <cerrno>

#include "tests/conformance/fixture.h"

namespace simhca::conformance {
namespace {

// Queue pairs on an SRQ that go to the error state, and the event that ends their receives.
class SrqQpError : public SrqCases {
 protected:
  // Exactly one IBV_EVENT_QP_LAST_WQE_REACHED for `qp`, and nothing else.
  void ExpectLastWqeOnly(ibv_qp* qp) {
    size_t last_wqe = 0;
    for (const ibv_async_event& event : device_.AsyncEvents(kQuiet)) {
      EXPECT_EQ(IBV_EVENT_QP_LAST_WQE_REACHED, event.event_type);
      EXPECT_EQ(qp, event.element.qp);
      ++last_wqe;
    }
    EXPECT_EQ(1u, last_wqe);
  }
};

TEST_F(SrqQpError, Row28OneLastWqeEventAndTheReceivesStay) {
  Rule("SRQ-23, CE-16");
  CreateSrq(8);
  const Link link = MakeLink({}, srq_.get());
  const Link other = MakeLink({}, srq_.get());
  ASSERT_EQ(0, P(4));
  SendAndReceive(link, 1);
  ASSERT_EQ(0, Move(link.responder.get(), IBV_QPS_ERR));
  ExpectLastWqeOnly(link.responder.get());
  EXPECT_TRUE(StaysEmpty(device_, responder_cq_.get(), Microseconds(100)))
      << "receives that the QP had not taken do not complete";
  EXPECT_EQ((std::vector<uint64_t>{1, 2, 3}), SendAndReceive(other, 3));
}

TEST_F(SrqQpError, Row28LastWqeEventComesThoughNothingWasReceived) {
  Rule("CE-16");
  CreateSrq(8);
  const Link link = MakeLink({}, srq_.get());
  ASSERT_EQ(0, Move(link.responder.get(), IBV_QPS_ERR));
  ExpectLastWqeOnly(link.responder.get());
}

TEST_F(SrqQpError, LastWqeEventComesAgainAfterAReset) {
  Rule("CE-16");
  if (!device_.generic()) GTEST_SKIP() << "recommended, but not known of every device";
  CreateSrq(8);
  const Link link = MakeLink({}, srq_.get());
  ASSERT_EQ(0, Move(link.responder.get(), IBV_QPS_ERR));
  ExpectLastWqeOnly(link.responder.get());
  ASSERT_EQ(0, Move(link.responder.get(), IBV_QPS_RESET));
  BringTo(device_, link.responder.get(), IBV_QPS_RTS,
          ConnectionAttributes(device_, link.requester->qp_num, {}));
  ASSERT_EQ(0, Move(link.responder.get(), IBV_QPS_ERR));
  ExpectLastWqeOnly(link.responder.get());
}

TEST_F(SrqQpError, BadReceiveFailsItsQpOnlyAndTheSrqWorksOn) {
  Rule("SRQ-19, CE-06");
  CreateSrq(8);
  const Link link = MakeLink({}, srq_.get());
  const Link other = MakeLink({}, srq_.get());
  ASSERT_EQ(0, PostSrqReceive(srq_.get(), 100, {{sink_.address(), 32, sink_.lkey() ^ 0x5500}}))
      << "keys are checked at receive time";
  ASSERT_EQ(0, P(2));
  ASSERT_EQ(0, PostSend(link.requester.get(), {.segments = {source_.Sge(0, 32)}}));
  EXPECT_EQ(IBV_WC_REM_OP_ERR, PollOne(device_, requester_cq_.get()).status);
  const ibv_wc failed = PollOne(device_, responder_cq_.get());
  EXPECT_EQ(IBV_WC_LOC_PROT_ERR, failed.status);
  EXPECT_EQ(100u, failed.wr_id);
  EXPECT_EQ(link.responder->qp_num, failed.qp_num);
  EXPECT_EQ(IBV_QPS_ERR, StateOf(link.responder.get()));
  ExpectLastWqeOnly(link.responder.get());
  EXPECT_EQ((std::vector<uint64_t>{0, 1}), SendAndReceive(other, 2));
}

TEST_F(SrqQpError, MessageTooLongForItsReceiveFailsBothQpsOnly) {
  Rule("CE-05");
  CreateSrq(8);
  const Link link = MakeLink({}, srq_.get());
  const Link other = MakeLink({}, srq_.get());
  ASSERT_EQ(0, P(3));
  ASSERT_EQ(0, PostSend(link.requester.get(), {.segments = {source_.Sge(0, kSlotBytes + 1)}}));
  EXPECT_EQ(IBV_WC_REM_INV_REQ_ERR, PollOne(device_, requester_cq_.get()).status);
  const ibv_wc failed = PollOne(device_, responder_cq_.get());
  EXPECT_EQ(IBV_WC_LOC_LEN_ERR, failed.status);
  EXPECT_EQ(0u, failed.wr_id);
  EXPECT_EQ(IBV_QPS_ERR, StateOf(link.requester.get()));
  EXPECT_EQ(IBV_QPS_ERR, StateOf(link.responder.get()));
  EXPECT_EQ((std::vector<uint64_t>{1, 2}), SendAndReceive(other, 2));
}

TEST_F(SrqQpError, MessageLongerThanItsReceiveInALaterPacketFailsToo) {
  Rule("CE-05");
  CreateSrq(8);
  const Link link = MakeLink({.mtu = IBV_MTU_256}, srq_.get());
  ASSERT_EQ(0, PostSrqReceive(srq_.get(), 7, {sink_.Sge(0, 600)}));
  ASSERT_EQ(0, PostSend(link.requester.get(), {.segments = {source_.Sge(0, 1000)}}));
  EXPECT_EQ(IBV_WC_REM_INV_REQ_ERR, PollOne(device_, requester_cq_.get()).status);
  const ibv_wc failed = PollOne(device_, responder_cq_.get());
  EXPECT_EQ(IBV_WC_LOC_LEN_ERR, failed.status);
  EXPECT_EQ(7u, failed.wr_id);
  EXPECT_TRUE(sink_.Untouched(600, 1000));
}

TEST_F(RcCases, Row29QpWithItsOwnQueueFlushesItAndGetsNoEvent) {
  Rule("CE-15");
  const Link link = MakeLink();
  for (uint64_t id = 0; id < 5; ++id) {
    ASSERT_EQ(0, PostReceive(link.responder.get(), id, {sink_.Sge(0, 32)}));
  }
  ASSERT_EQ(0, Move(link.responder.get(), IBV_QPS_ERR));
  const std::vector<ibv_wc> flushed = Poll(device_, responder_cq_.get(), 5);
  EXPECT_EQ((std::vector<uint64_t>{0, 1, 2, 3, 4}), IdsOf(flushed));
  EXPECT_EQ(std::vector<ibv_wc_status>(5, IBV_WC_WR_FLUSH_ERR), StatusesOf(flushed));
  EXPECT_TRUE(device_.AsyncEvents(kQuiet).empty());
}

}  // namespace
}  // namespace simhca::conformance
