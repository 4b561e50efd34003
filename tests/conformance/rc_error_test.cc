#include <cerrno>

#include "tests/conformance/fixture.h"

namespace simhca::conformance {
namespace {

// Mistakes in the requester's own work requests.
class RcLocalError : public RcTest {
 protected:
  // `request` fails with `status`, the QP goes to ERR, the sends behind it are flushed in order,
  // and the peer notices nothing.
  void ExpectFails(const Link& link, SendRequest request, ibv_wc_status status) {
    request.wr_id = 1;
    ASSERT_EQ(0, PostReceive(link.responder.get(), 50, {sink_.Sge(0, 64)}));
    ASSERT_EQ(0, PostSend(link.requester.get(), request)) << "never checked at the post";
    for (uint64_t id = 2; id <= 3; ++id) {
      ASSERT_EQ(0, PostSend(link.requester.get(),
                            {.wr_id = id, .segments = {source_.Sge(0, 8)}, .flags = 0}));
    }
    const std::vector<ibv_wc> wcs = Poll(device_, requester_cq_.get(), 3);
    EXPECT_EQ((std::vector<uint64_t>{1, 2, 3}), IdsOf(wcs));
    EXPECT_EQ((std::vector<ibv_wc_status>{status, IBV_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR}),
              StatusesOf(wcs));
    for (const ibv_wc& wc : wcs) EXPECT_EQ(link.requester->qp_num, wc.qp_num);
    EXPECT_EQ(IBV_QPS_ERR, StateOf(link.requester.get()));
    EXPECT_EQ(IBV_QPS_RTS, StateOf(link.responder.get()));
    EXPECT_TRUE(StaysEmpty(device_, responder_cq_.get()));
    EXPECT_TRUE(sink_.Untouched(0, sink_.size()));
  }
};

TEST_F(RcLocalError, UnknownLocalKey) {
  Rule("POST-14, CE-01");
  ibv_sge segment = source_.Sge(0, 64);
  segment.lkey ^= 0x5500;
  ExpectFails(MakeLink(), {.segments = {segment}}, IBV_WC_LOC_PROT_ERR);
}

TEST_F(RcLocalError, UnsignalledRequestsReportTheirErrorsToo) {
  Rule("POST-19, CE-13");
  ibv_sge segment = source_.Sge(0, 64);
  segment.lkey ^= 0x5500;
  ExpectFails(MakeLink(), {.segments = {segment}, .flags = 0}, IBV_WC_LOC_PROT_ERR);
}

TEST_F(RcLocalError, SegmentPastTheEndOfItsRegion) {
  Rule("CE-01");
  ibv_sge segment = source_.Sge(source_.size() - 63, 64);
  ExpectFails(MakeLink(), {.segments = {segment}}, IBV_WC_LOC_PROT_ERR);
}

// Hardware counts 31 bits, and what it makes of the others differs.
class SimulatorOnlyRcLocalError : public RcLocalError {};

TEST_F(SimulatorOnlyRcLocalError, MessageLongerThanThePortCarries) {
  Rule("CE-03");
  for (const uint32_t length : {0x40000001u, 0x80000004u, 0xffffffffu}) {
    ibv_sge segment = source_.Sge(0, 64);
    segment.length = length;
    ExpectFails(MakeLink(), {.segments = {segment}}, IBV_WC_LOC_LEN_ERR);
  }
}

TEST_F(RcLocalError, KeyOfAnotherProtectionDomain) {
  Rule("CE-01");
  const Pd other = MakePd(device_);
  const Buffer buffer(other.get(), 64);
  ExpectFails(MakeLink(), {.segments = {buffer.Sge(0, 64)}}, IBV_WC_LOC_PROT_ERR);
}

TEST_F(RcLocalError, KeyOfADeregisteredRegion) {
  Rule("MR-10, CE-01");
  uint32_t lkey = 0;
  {
    const Mr gone = Register(pd_.get(), {source_.data(), source_.size()});
    lkey = gone->lkey;
  }
  ExpectFails(MakeLink(), {.segments = {{source_.address(), 64, lkey}}}, IBV_WC_LOC_PROT_ERR);
}

// The response finds the mistake: what was posted behind the read may be on its way by then.
TEST_F(RcLocalError, ReadIntoMemoryWithoutLocalWrite) {
  Rule("CE-02");
  const Link link = MakeLink();
  const Buffer read_only(pd_.get(), 4096, IBV_ACCESS_REMOTE_READ);
  ASSERT_EQ(0, PostSend(link.requester.get(), {.wr_id = 1,
                                               .segments = {read_only.Sge(0, 64)},
                                               .opcode = IBV_WR_RDMA_READ,
                                               .remote_address = sink_.address(),
                                               .rkey = sink_.rkey()}));
  const ibv_wc failed = PollOne(device_, requester_cq_.get());
  EXPECT_EQ(IBV_WC_LOC_PROT_ERR, failed.status);
  EXPECT_EQ(1u, failed.wr_id);
  EXPECT_EQ(IBV_QPS_ERR, StateOf(link.requester.get()));
  EXPECT_EQ(IBV_QPS_RTS, StateOf(link.responder.get()));
  EXPECT_TRUE(read_only.Untouched(0, read_only.size()));
}

TEST_F(RcLocalError, SendsFromMemoryWithoutLocalWriteAreFine) {
  Rule("CE-01");
  const Link link = MakeLink();
  Buffer read_only(pd_.get(), 64, 0);
  ASSERT_EQ(0, PostReceive(link.responder.get(), 1, {sink_.Sge(0, 64)}));
  SendAndExpectSuccess(link.requester.get(), {.segments = {read_only.Sge(0, 64)}});
}

TEST_F(RcLocalError, RequestsBeforeTheBadOneStillSucceed) {
  Rule("CE-13");
  const Link link = MakeLink();
  ibv_sge bad_segment = source_.Sge(0, 64);
  bad_segment.lkey ^= 0x5500;
  ASSERT_EQ(0, PostReceive(link.responder.get(), 1, {sink_.Sge(0, 64)}));
  ASSERT_EQ(0, PostSend(link.requester.get(),
                        {.wr_id = 1, .segments = {source_.Sge(0, 64)}, .flags = 0}));
  ASSERT_EQ(0, PostSend(link.requester.get(), {.wr_id = 2, .segments = {bad_segment}}));
  const ibv_wc failed = PollOne(device_, requester_cq_.get());
  EXPECT_EQ(2u, failed.wr_id) << "the first one was unsignalled and succeeded";
  EXPECT_EQ(IBV_WC_LOC_PROT_ERR, failed.status);
  EXPECT_EQ(IBV_WC_SUCCESS, PollOne(device_, responder_cq_.get()).status);
}

// Mistakes in the responder's receives; its own QP fails too, and flushes the rest.
class RcReceiveError : public RcTest {
 protected:
  void ExpectBothFail(const ibv_sge& receive, size_t length, ibv_wc_status at_requester,
                      ibv_wc_status at_responder) {
    const Link link = MakeLink({.mtu = IBV_MTU_256});
    ASSERT_EQ(0, PostReceive(link.responder.get(), 10, {receive})) << "never checked at the post";
    for (uint64_t id = 11; id <= 12; ++id) {
      ASSERT_EQ(0, PostReceive(link.responder.get(), id, {sink_.Sge(0, 4096)}));
    }
    ASSERT_EQ(0,
              PostSend(link.requester.get(), {.wr_id = 1, .segments = {source_.Sge(0, length)}}));
    const ibv_wc failed = PollOne(device_, requester_cq_.get());
    EXPECT_EQ(at_requester, failed.status);
    EXPECT_EQ(1u, failed.wr_id);
    const std::vector<ibv_wc> receives = Poll(device_, responder_cq_.get(), 3);
    EXPECT_EQ((std::vector<uint64_t>{10, 11, 12}), IdsOf(receives));
    EXPECT_EQ((std::vector<ibv_wc_status>{at_responder, IBV_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR}),
              StatusesOf(receives));
    EXPECT_EQ(IBV_QPS_ERR, StateOf(link.requester.get()));
    EXPECT_EQ(IBV_QPS_ERR, StateOf(link.responder.get()));
  }
};

TEST_F(RcReceiveError, BufferTooShortForTheFirstPacket) {
  Rule("CE-05");
  ExpectBothFail(sink_.Sge(0, 100), 101, IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR);
  EXPECT_TRUE(sink_.Untouched(100, sink_.size() - 100));
}

TEST_F(RcReceiveError, BufferTooShortForALaterPacket) {
  Rule("CE-05");
  ExpectBothFail(sink_.Sge(0, 1000), 1001, IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR);
  EXPECT_TRUE(sink_.Untouched(1000, sink_.size() - 1000));
}

TEST_F(RcReceiveError, UnknownLocalKey) {
  Rule("POST-14, CE-06");
  ibv_sge segment = sink_.Sge(0, 100);
  segment.lkey ^= 0x5500;
  ExpectBothFail(segment, 100, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR);
}

TEST_F(RcReceiveError, KeyOfAnotherProtectionDomain) {
  Rule("CE-06");
  const Pd other = MakePd(device_);
  const Buffer buffer(other.get(), 100);
  ExpectBothFail(buffer.Sge(0, 100), 100, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR);
  EXPECT_TRUE(buffer.Untouched(0, 100));
}

TEST_F(RcReceiveError, MemoryWithoutLocalWrite) {
  Rule("CE-06");
  const Buffer read_only(pd_.get(), 100, IBV_ACCESS_REMOTE_READ);
  ExpectBothFail(read_only.Sge(0, 100), 100, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR);
  EXPECT_TRUE(read_only.Untouched(0, 100));
}

// What posts do in a queue pair that is in the error state.
using RcErrorState = RcTest;

TEST_F(RcErrorState, PostsAreAcceptedAndFlushed) {
  Rule("ST-12");
  const Link link = MakeLink();
  ASSERT_EQ(0, Move(link.requester.get(), IBV_QPS_ERR));
  ASSERT_EQ(0, PostSend(link.requester.get(), {.wr_id = 1, .segments = {source_.Sge(0, 8)}}));
  ASSERT_EQ(
      0, PostSend(link.requester.get(), {.wr_id = 2, .segments = {source_.Sge(0, 8)}, .flags = 0}));
  std::vector<ibv_wc> wcs = Poll(device_, requester_cq_.get(), 2);
  EXPECT_EQ((std::vector<uint64_t>{1, 2}), IdsOf(wcs));
  EXPECT_EQ(std::vector<ibv_wc_status>(2, IBV_WC_WR_FLUSH_ERR), StatusesOf(wcs));
  ASSERT_EQ(0, PostReceive(link.requester.get(), 3, {source_.Sge(0, 8)}));
  const ibv_wc receive = PollOne(device_, requester_cq_.get());
  EXPECT_EQ(3u, receive.wr_id);
  EXPECT_EQ(IBV_WC_WR_FLUSH_ERR, receive.status);
  EXPECT_EQ(link.requester->qp_num, receive.qp_num);
}

TEST_F(RcErrorState, QpWorksAgainAfterResetAndReconnect) {
  Rule("ST-17");
  const Link link = MakeLink();
  ASSERT_EQ(0, PostReceive(link.responder.get(), 1, {sink_.Sge(0, 8)}));
  ASSERT_EQ(0, Move(link.requester.get(), IBV_QPS_ERR));
  ASSERT_EQ(0, Move(link.responder.get(), IBV_QPS_ERR));
  EXPECT_EQ(IBV_WC_WR_FLUSH_ERR, PollOne(device_, responder_cq_.get()).status);
  ASSERT_EQ(0, Move(link.requester.get(), IBV_QPS_RESET));
  ASSERT_EQ(0, Move(link.responder.get(), IBV_QPS_RESET));
  Connect(device_, link.requester.get(), link.responder.get(), {.psn = 77});
  for (uint32_t round = 0; round < 100; ++round) {
    source_.Fill(round, 0, 64);
    ASSERT_EQ(0, PostReceive(link.responder.get(), round, {sink_.Sge(0, 64)}));
    SendAndExpectSuccess(link.requester.get(), {.segments = {source_.Sge(0, 64)}});
    EXPECT_EQ(round, PollOne(device_, responder_cq_.get()).wr_id);
    EXPECT_TRUE(sink_.Holds(round, 0, 64));
  }
}

TEST_F(RcErrorState, ResetDropsPendingRequestsWithoutCompletions) {
  Rule("ST-14");
  const Link link = MakeLink();
  ASSERT_EQ(0, PostReceive(link.responder.get(), 1, {sink_.Sge(0, 8)}));
  ASSERT_EQ(0, Move(link.responder.get(), IBV_QPS_RESET));
  EXPECT_TRUE(StaysEmpty(device_, responder_cq_.get(), Microseconds(100)));
}

TEST_F(RcErrorState, ResetTakesUnpolledCompletionsOfTheQpOutOfTheCq) {
  Rule("ST-15");
  const Link first = MakeLink();
  const Link second = MakeLink();
  for (const Link* link : {&first, &second, &first}) {
    ASSERT_EQ(0, PostReceive(link->responder.get(), 1, {sink_.Sge(0, 8)}));
    SendAndExpectSuccess(link->requester.get(), {.segments = {source_.Sge(0, 8)}});
  }
  ASSERT_EQ(0, Move(first.responder.get(), IBV_QPS_RESET));
  EXPECT_EQ(second.responder->qp_num, PollOne(device_, responder_cq_.get()).qp_num);
  EXPECT_TRUE(StaysEmpty(device_, responder_cq_.get(), Microseconds(100)));
}

TEST_F(RcErrorState, SendsThatWaitForAReceiverAreFlushedInOrder) {
  Rule("CE-13");
  const Link link = MakeLink({.min_rnr_timer = 20});
  for (uint64_t id = 1; id <= 4; ++id) {
    ASSERT_EQ(0,
              PostSend(link.requester.get(), {.wr_id = id,
                                              .segments = {source_.Sge(0, 8)},
                                              .flags = id % 2 ? 0u : unsigned{IBV_SEND_SIGNALED}}));
  }
  ASSERT_TRUE(StaysEmpty(device_, requester_cq_.get(), Milliseconds(1)));
  ASSERT_EQ(0, Move(link.requester.get(), IBV_QPS_ERR));
  const std::vector<ibv_wc> wcs = Poll(device_, requester_cq_.get(), 4);
  EXPECT_EQ((std::vector<uint64_t>{1, 2, 3, 4}), IdsOf(wcs));
  EXPECT_EQ(std::vector<ibv_wc_status>(4, IBV_WC_WR_FLUSH_ERR), StatusesOf(wcs));
  EXPECT_TRUE(StaysEmpty(device_, requester_cq_.get())) << "the timer is off";
}

TEST_F(RcErrorState, BothQueuesAreFlushedEachToItsOwnCq) {
  Rule("CE-13");
  QpOptions options = RequesterOptions();
  options.receive_cq = responder_cq_.get();
  const Link link{MakeQp(device_, pd_.get(), options),
                  MakeQp(device_, pd_.get(), ResponderOptions())};
  Connect(device_, link.requester.get(), link.responder.get());
  ASSERT_EQ(0, Move(link.requester.get(), IBV_QPS_SQD));
  for (uint64_t id = 0; id < 3; ++id) {
    ASSERT_EQ(0, PostSend(link.requester.get(), {.wr_id = id, .segments = {source_.Sge(0, 8)}}));
    ASSERT_EQ(0, PostReceive(link.requester.get(), 10 + id, {source_.Sge(0, 8)}));
  }
  ASSERT_EQ(0, Move(link.requester.get(), IBV_QPS_ERR));
  EXPECT_EQ((std::vector<uint64_t>{0, 1, 2}), IdsOf(Poll(device_, requester_cq_.get(), 3)));
  EXPECT_EQ((std::vector<uint64_t>{10, 11, 12}), IdsOf(Poll(device_, responder_cq_.get(), 3)));
}

// More READs than the responder has agreed to: here it has agreed to none.
TEST_F(RcErrorState, AReadThatTheResponderHasNoRoomForIsAnInvalidRequest) {
  Rule("CE-09");
  const Link link{MakeQp(device_, pd_.get(), RequesterOptions()),
                  MakeQp(device_, pd_.get(), ResponderOptions())};
  BringTo(device_, link.requester.get(), IBV_QPS_RTS,
          ConnectionAttributes(device_, link.responder->qp_num, {}));
  BringTo(device_, link.responder.get(), IBV_QPS_RTS,
          ConnectionAttributes(device_, link.requester->qp_num, {.rd_atomic = 0}));
  ASSERT_EQ(0, PostSend(link.requester.get(), {.wr_id = 1,
                                               .segments = {source_.Sge(0, 8)},
                                               .opcode = IBV_WR_RDMA_READ,
                                               .remote_address = sink_.address(),
                                               .rkey = sink_.rkey()}));
  EXPECT_EQ(IBV_WC_REM_INV_REQ_ERR, PollOne(device_, requester_cq_.get()).status);
  const std::vector<ibv_async_event> events = device_.AsyncEvents(kQuiet);
  ASSERT_EQ(1u, events.size());
  EXPECT_EQ(IBV_EVENT_QP_REQ_ERR, events[0].event_type);
  EXPECT_EQ(IBV_QPS_ERR, StateOf(link.requester.get()));
  EXPECT_EQ(IBV_QPS_ERR, StateOf(link.responder.get()));
}

// A request that the device cannot carry out at all.
TEST_F(SimulatorOnlyRcLocalError, ReadOfAQpThatMayHaveNoneInFlight) {
  Rule("CE-04");
  const Link link = MakeLink({.rd_atomic = 0});
  ExpectFails(link,
              {.segments = {source_.Sge(0, 8)},
               .opcode = IBV_WR_RDMA_READ,
               .remote_address = sink_.address(),
               .rkey = sink_.rkey()},
              IBV_WC_LOC_QP_OP_ERR);
}

TEST_F(RcErrorState, WhatAnErrorLeavesValidIsRightOnBothSides) {
  Rule("CE-14");
  const Link link = MakeLink();
  constexpr uint64_t kSend = 0xf00dfeed12345678;
  constexpr uint64_t kReceive = 0x123456789abcdef0;
  ASSERT_EQ(0, PostReceive(link.responder.get(), kReceive, {sink_.Sge(0, 8)}));
  ASSERT_EQ(0, PostSend(link.requester.get(), {.wr_id = kSend, .segments = {source_.Sge(0, 9)}}));
  const ibv_wc sent = PollOne(device_, requester_cq_.get());
  EXPECT_EQ(kSend, sent.wr_id);
  EXPECT_EQ(IBV_WC_REM_INV_REQ_ERR, sent.status);
  EXPECT_EQ(link.requester->qp_num, sent.qp_num);
  EXPECT_NE(0u, sent.vendor_err);
  const ibv_wc received = PollOne(device_, responder_cq_.get());
  EXPECT_EQ(kReceive, received.wr_id);
  EXPECT_EQ(IBV_WC_LOC_LEN_ERR, received.status);
  EXPECT_EQ(link.responder->qp_num, received.qp_num);
  EXPECT_NE(0u, received.vendor_err);
}

}  // namespace
}  // namespace simhca::conformance
