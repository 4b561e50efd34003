#include <cerrno>

#include "tests/conformance/qp_states.h"

namespace simhca::conformance {
namespace {

// What a move to RESET takes away, and that the queue pair is as new afterwards.
class QpReset : public SrqTest {
 protected:
  static constexpr size_t kLinks = 3;

  // Three links on one pair of CQs, and two messages of each in turn; no completion is polled but
  // those of the requesters.
  void Interleave(ibv_srq* srq) {
    for (size_t i = 0; i < kLinks; ++i) links_.push_back(MakeLink({}, srq));
    for (uint64_t round = 0; round < 3; ++round) {
      for (size_t i = 0; i < kLinks; ++i) {
        if (srq == nullptr) {
          ASSERT_EQ(0, PostReceive(links_[i].responder.get(), 10 * round + i,
                                   {sink_.Sge(0, kSlotBytes)}));
        }
        S(links_[i].requester.get(), 1);
      }
    }
  }
  static std::vector<uint32_t> QpsOf(const std::vector<ibv_wc>& completions) {
    std::vector<uint32_t> qps;
    for (const ibv_wc& wc : completions) qps.push_back(wc.qp_num);
    return qps;
  }

  std::vector<Link> links_;
};

TEST_F(QpReset, OnlyTheCompletionsOfThatQpLeaveTheCqAndTheOthersKeepTheirOrder) {
  Rule("ST-15");
  Interleave(nullptr);
  ASSERT_EQ(0, Move(links_[1].responder.get(), IBV_QPS_RESET));
  const std::vector<ibv_wc> wcs = Poll(device_, responder_cq_.get(), 7, kQuiet);
  EXPECT_EQ((std::vector<uint64_t>{0, 2, 10, 12, 20, 22}), IdsOf(wcs));
  const uint32_t first = links_[0].responder->qp_num;
  const uint32_t last = links_[2].responder->qp_num;
  EXPECT_EQ((std::vector<uint32_t>{first, last, first, last, first, last}), QpsOf(wcs));
  for (const ibv_wc& wc : wcs) EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
}

TEST_F(QpReset, EntriesOfTheRemovedCompletionsGoBackToTheSrq) {
  Rule("ST-16");
  CreateSrq(12);
  ASSERT_EQ(0, P(capacity_));
  Interleave(srq_.get());
  ASSERT_EQ(0, Move(links_[1].responder.get(), IBV_QPS_RESET));
  EXPECT_EQ(0, P(3)) << "entries of three messages";
  EXPECT_EQ(ENOMEM, P(1)) << "the others are not polled";
  EXPECT_EQ((std::vector<uint64_t>{0, 2, 3, 5, 6, 8}), Receive(6));
  links_.clear();
  EXPECT_EQ(0, P(6));
  ExpectNothingLost(0);
}

TEST_F(QpReset, SendAndReceiveCompletionsInOneCqAreTakenOut) {
  Rule("ST-15");
  QpOptions options = RequesterOptions();
  Link link{MakeQp(device_, pd_.get(), options), MakeQp(device_, pd_.get(), options)};
  Connect(device_, link.requester.get(), link.responder.get());
  ASSERT_EQ(0, PostReceive(link.responder.get(), 1, {sink_.Sge(0, 8)}));
  ASSERT_EQ(0, PostReceive(link.requester.get(), 2, {sink_.Sge(8, 8)}));
  ASSERT_EQ(0, PostSend(link.requester.get(), {.wr_id = 3, .segments = {source_.Sge(0, 8)}}));
  ASSERT_EQ(0, PostSend(link.responder.get(), {.wr_id = 4, .segments = {source_.Sge(0, 8)}}));
  EXPECT_TRUE(StaysEmpty(device_, responder_cq_.get())) << "time for the messages";
  ASSERT_EQ(0, Move(link.requester.get(), IBV_QPS_RESET));
  const std::vector<ibv_wc> wcs = Poll(device_, requester_cq_.get(), 3, kQuiet);
  ASSERT_EQ(2u, wcs.size());
  for (const ibv_wc& wc : wcs) {
    EXPECT_EQ(link.responder->qp_num, wc.qp_num);
    EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
  }
}

// The first packet has taken an entry, the second never comes.
TEST_F(QpReset, TheEntryOfAMessageThatNeverEndedGoesBack) {
  Rule("ST-16");
  CreateSrq(4);
  for (uint64_t id = 0; id < capacity_; ++id) {
    ASSERT_EQ(0, PostSrqReceive(srq_.get(), id, {sink_.Sge(0, 4096)}));
  }
  const Link link = MakeLink({.mtu = IBV_MTU_256}, srq_.get());
  ibv_sge bad = source_.Sge(256, 100);
  bad.lkey ^= 0x5500;
  ASSERT_EQ(0, PostSend(link.requester.get(), {.segments = {source_.Sge(0, 256), bad}}));
  EXPECT_EQ(IBV_WC_LOC_PROT_ERR, PollOne(device_, requester_cq_.get()).status);
  EXPECT_TRUE(StaysEmpty(device_, responder_cq_.get()));
  EXPECT_EQ(ENOMEM, P(1));
  ASSERT_EQ(0, Move(link.responder.get(), IBV_QPS_RESET));
  EXPECT_TRUE(StaysEmpty(device_, responder_cq_.get()));
  while (P(1) == 0) {
  }
  ExpectNothingLost(0);
}

TEST_F(QpReset, TheSlotsOfBothQueuesAreFree) {
  Rule("ST-17");
  const Link link = MakeLink();
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(0, ibv_query_qp(link.requester.get(), &attr, IBV_QP_CAP, &init));
  ASSERT_EQ(0, Move(link.requester.get(), IBV_QPS_SQD));
  const auto fill = [&] {
    for (uint32_t i = 0; i < init.cap.max_send_wr; ++i) {
      ASSERT_EQ(0, PostSend(link.requester.get(), {.segments = {source_.Sge(0, 8)}, .flags = 0}));
    }
    EXPECT_EQ(ENOMEM, PostSend(link.requester.get(), {.segments = {source_.Sge(0, 8)}}));
    for (uint32_t i = 0; i < init.cap.max_recv_wr; ++i) {
      ASSERT_EQ(0, PostReceive(link.requester.get(), i, {sink_.Sge(0, 8)}));
    }
    EXPECT_EQ(ENOMEM, PostReceive(link.requester.get(), 0, {sink_.Sge(0, 8)}));
  };
  fill();
  ASSERT_EQ(0, Move(link.requester.get(), IBV_QPS_RESET));
  BringTo(device_, link.requester.get(), IBV_QPS_RTS,
          ConnectionAttributes(device_, link.responder->qp_num, {}));
  ASSERT_EQ(0, Move(link.requester.get(), IBV_QPS_SQD));
  fill();
  EXPECT_TRUE(StaysEmpty(device_, requester_cq_.get()));
}

TEST_F(QpReset, AnotherPeerOtherNumbersAndAnotherMtuCanFollow) {
  Rule("ST-17");
  CreateSrq(16);
  const Link first = MakeLink({}, srq_.get());
  const Link second = MakeLink({}, srq_.get());
  ASSERT_EQ(0, P(4));
  SendAndReceive(first, 2);
  ASSERT_EQ(0, Move(first.requester.get(), IBV_QPS_RESET));
  ASSERT_EQ(0, Move(second.responder.get(), IBV_QPS_RESET));
  Connect(device_, first.requester.get(), second.responder.get(),
          {.mtu = IBV_MTU_256, .psn = 0x1234});
  S(first.requester.get(), 2);
  const std::vector<ibv_wc> wcs = Poll(device_, responder_cq_.get(), 2);
  EXPECT_EQ((std::vector<uint64_t>{2, 3}), IdsOf(wcs));
  for (const ibv_wc& wc : wcs) EXPECT_EQ(second.responder->qp_num, wc.qp_num);
}

// From every state of the table to RESET and back to work.
class QpResetFrom : public QpStates {};

TEST_F(QpResetFrom, EveryStateTheQpWorksAgain) {
  Rule("ST-17");
  for (const ibv_qp_state state :
       {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_ERR}) {
    SCOPED_TRACE(state);
    Enter(state);
    if (state != IBV_QPS_RESET) {
      ASSERT_EQ(0, PostReceive(qp_.get(), 99, {source_.Sge(0, 8)}));
    }
    ASSERT_EQ(0, Move(qp_.get(), IBV_QPS_RESET));
    ASSERT_EQ(0, Move(peer_.get(), IBV_QPS_RESET));
    EXPECT_TRUE(StaysEmpty(device_, requester_cq_.get(), Microseconds(100)));
    Connect(device_, qp_.get(), peer_.get());
    ASSERT_EQ(0, PostReceive(peer_.get(), 5, {sink_.Sge(0, 64)}));
    SendAndExpectSuccess(qp_.get(), {.wr_id = 6, .segments = {source_.Sge(0, 64)}});
    EXPECT_EQ(5u, PollOne(device_, responder_cq_.get()).wr_id);
  }
}

}  // namespace
}  // namespace simhca::conformance
