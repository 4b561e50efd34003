#include <algorithm>
#include <iterator>

#include "tests/conformance/fixture.h"

namespace simhca::conformance {
namespace {

using RcSend = RcTest;

TEST_F(RcSend, CompletionsDescribeTheMessageOnBothSides) {
  Rule("ST-04");
  const Link link = MakeLink();
  source_.Fill(1, 0, 100);
  ASSERT_EQ(0, PostReceive(link.responder.get(), 11, {sink_.Sge(0, 200)}));
  ASSERT_EQ(0, PostSend(link.requester.get(), {.wr_id = 22, .segments = {source_.Sge(0, 100)}}));
  const ibv_wc sent = PollOne(device_, requester_cq_.get());
  EXPECT_EQ(IBV_WC_SUCCESS, sent.status);
  EXPECT_EQ(IBV_WC_SEND, sent.opcode);
  EXPECT_EQ(22u, sent.wr_id);
  EXPECT_EQ(link.requester->qp_num, sent.qp_num);
  const ibv_wc received = PollOne(device_, responder_cq_.get());
  EXPECT_EQ(IBV_WC_SUCCESS, received.status);
  EXPECT_EQ(IBV_WC_RECV, received.opcode);
  EXPECT_EQ(11u, received.wr_id);
  EXPECT_EQ(100u, received.byte_len);
  EXPECT_EQ(link.responder->qp_num, received.qp_num);
  EXPECT_EQ(0u, received.wc_flags & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV));
  EXPECT_TRUE(sink_.Holds(1, 0, 100));
  EXPECT_TRUE(sink_.Untouched(100, sink_.size() - 100));
}

TEST_F(RcSend, ImmediateDataArrivesAsGiven) {
  const Link link = MakeLink();
  ASSERT_EQ(0, PostReceive(link.responder.get(), 1, {sink_.Sge(0, 200)}));
  SendAndExpectSuccess(
      link.requester.get(),
      {.segments = {source_.Sge(0, 10)}, .opcode = IBV_WR_SEND_WITH_IMM, .imm_data = 0x01020304});
  const ibv_wc wc = PollOne(device_, responder_cq_.get());
  EXPECT_EQ(IBV_WC_RECV, wc.opcode);
  EXPECT_TRUE(wc.wc_flags & IBV_WC_WITH_IMM);
  EXPECT_EQ(0x01020304u, wc.imm_data);
  EXPECT_EQ(10u, wc.byte_len);
}

TEST_F(RcSend, BothDirectionsOfAConnectionWork) {
  Rule("ST-04");
  const Link link = MakeLink();
  source_.Fill(1, 0, 64);
  sink_.Fill(2, 0, 64);
  ASSERT_EQ(0, PostReceive(link.responder.get(), 1, {sink_.Sge(1024, 64)}));
  ASSERT_EQ(0, PostReceive(link.requester.get(), 2, {source_.Sge(1024, 64)}));
  ASSERT_EQ(0, PostSend(link.requester.get(), {.wr_id = 3, .segments = {source_.Sge(0, 64)}}));
  ASSERT_EQ(0, PostSend(link.responder.get(), {.wr_id = 4, .segments = {sink_.Sge(0, 64)}}));
  EXPECT_EQ(2u, Poll(device_, requester_cq_.get(), 2).size());
  EXPECT_EQ(2u, Poll(device_, responder_cq_.get(), 2).size());
  EXPECT_TRUE(sink_.Holds(1, 1024, 64));
  EXPECT_TRUE(source_.Holds(2, 1024, 64));
}

TEST_F(RcSend, AQpCanBeConnectedToItself) {
  const Qp qp = MakeQp(device_, pd_.get(), RequesterOptions());
  BringTo(device_, qp.get(), IBV_QPS_RTS, ConnectionAttributes(device_, qp->qp_num, {}));
  source_.Fill(1, 0, 5000);
  ASSERT_EQ(0, PostReceive(qp.get(), 1, {sink_.Sge(0, 5000)}));
  ASSERT_EQ(0, PostSend(qp.get(), {.wr_id = 2, .segments = {source_.Sge(0, 5000)}}));
  const std::vector<ibv_wc> wcs = Poll(device_, requester_cq_.get(), 2);
  EXPECT_EQ(std::vector<ibv_wc_status>(2, IBV_WC_SUCCESS), StatusesOf(wcs));
  EXPECT_TRUE(sink_.Holds(1, 0, 5000));
}

TEST_F(RcSend, SegmentsAreGatheredAndScatteredInOrder) {
  const Link link = MakeLink({.mtu = IBV_MTU_256});
  source_.Fill(6, 0, 1500);
  const std::vector<ibv_sge> gather = {source_.Sge(0, 1), source_.Sge(1, 299),
                                       source_.Sge(300, 700), source_.Sge(1000, 500)};
  const std::vector<ibv_sge> scatter = {sink_.Sge(10000, 255), sink_.Sge(0, 2),
                                        sink_.Sge(5000, 1243)};
  ASSERT_EQ(0, PostReceive(link.responder.get(), 1, scatter));
  SendAndExpectSuccess(link.requester.get(), {.segments = gather});
  EXPECT_EQ(1500u, PollOne(device_, responder_cq_.get()).byte_len);
  EXPECT_TRUE(sink_.Holds(6, 10000, 255, 0));
  EXPECT_TRUE(sink_.Holds(6, 0, 2, 255));
  EXPECT_TRUE(sink_.Holds(6, 5000, 1243, 257));
  EXPECT_TRUE(sink_.Untouched(2, 4998));
  EXPECT_TRUE(sink_.Untouched(6243, 3757));
  EXPECT_TRUE(sink_.Untouched(10255, 1000));
}

TEST_F(RcSend, SegmentsOfLengthZeroAreSkipped) {
  Rule("POST-15");
  const Link link = MakeLink();
  source_.Fill(7, 0, 60);
  ASSERT_EQ(0, PostReceive(link.responder.get(), 1,
                           {sink_.Sge(0, 30), sink_.Sge(500, 0), sink_.Sge(1000, 30)}));
  SendAndExpectSuccess(link.requester.get(),
                       {.segments = {source_.Sge(0, 0), source_.Sge(0, 40), source_.Sge(9, 0),
                                     source_.Sge(40, 20)}});
  EXPECT_EQ(60u, PollOne(device_, responder_cq_.get()).byte_len);
  EXPECT_TRUE(sink_.Holds(7, 0, 30, 0));
  EXPECT_TRUE(sink_.Holds(7, 1000, 30, 30));
}

TEST_F(RcSend, MessageWithoutBytesArrives) {
  Rule("POST-15");
  const Link link = MakeLink();
  ASSERT_EQ(0, PostReceive(link.responder.get(), 1, {sink_.Sge(0, 30)}));
  SendAndExpectSuccess(link.requester.get(), {.wr_id = 5});
  const ibv_wc wc = PollOne(device_, responder_cq_.get());
  EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
  EXPECT_EQ(0u, wc.byte_len);
  EXPECT_TRUE(sink_.Untouched(0, 30));
}

TEST_F(RcSend, OnlySignalledSendsComplete) {
  Rule("POST-19");
  const Link link = MakeLink();
  for (uint64_t id = 0; id < 8; ++id) {
    ASSERT_EQ(0, PostReceive(link.responder.get(), id, {sink_.Sge(0, 32)}));
    ASSERT_EQ(0, PostSend(link.requester.get(),
                          {.wr_id = id,
                           .segments = {source_.Sge(0, 32)},
                           .flags = id % 4 == 3 ? unsigned{IBV_SEND_SIGNALED} : 0u}));
  }
  EXPECT_EQ((std::vector<uint64_t>{3, 7}), IdsOf(Poll(device_, requester_cq_.get(), 2)));
  EXPECT_EQ(8u, Poll(device_, responder_cq_.get(), 8).size());
  EXPECT_TRUE(StaysEmpty(device_, requester_cq_.get()));
}

TEST_F(RcSend, SqSigAllMakesEverySendComplete) {
  Rule("POST-19");
  QpOptions options = RequesterOptions();
  options.signal_all = true;
  const Link link{MakeQp(device_, pd_.get(), options),
                  MakeQp(device_, pd_.get(), ResponderOptions())};
  Connect(device_, link.requester.get(), link.responder.get());
  for (uint64_t id = 0; id < 4; ++id) {
    ASSERT_EQ(0, PostReceive(link.responder.get(), id, {sink_.Sge(0, 32)}));
    ASSERT_EQ(0, PostSend(link.requester.get(),
                          {.wr_id = id, .segments = {source_.Sge(0, 32)}, .flags = 0}));
  }
  EXPECT_EQ((std::vector<uint64_t>{0, 1, 2, 3}), IdsOf(Poll(device_, requester_cq_.get(), 4)));
}

TEST_F(RcSend, MessagesOfOneQpArriveInTheOrderPosted) {
  const Link link = MakeLink({.mtu = IBV_MTU_256});
  constexpr uint64_t kMessages = 40;
  size_t offset = 0;
  for (uint64_t id = 0; id < kMessages; ++id) {
    const size_t length = (id * 97) % 1500;
    source_.Fill(static_cast<uint32_t>(id), offset, length);
    ASSERT_EQ(0, PostReceive(link.responder.get(), id, {sink_.Sge(offset, 1500)}));
    ASSERT_EQ(0, PostSend(link.requester.get(),
                          {.wr_id = id, .segments = {source_.Sge(offset, length)}}));
    offset += 1500;
  }
  const std::vector<ibv_wc> sent = Poll(device_, requester_cq_.get(), kMessages);
  const std::vector<ibv_wc> received = Poll(device_, responder_cq_.get(), kMessages);
  ASSERT_EQ(kMessages, sent.size());
  ASSERT_EQ(kMessages, received.size());
  for (uint64_t id = 0; id < kMessages; ++id) {
    EXPECT_EQ(id, sent[id].wr_id);
    EXPECT_EQ(id, received[id].wr_id);
    EXPECT_EQ((id * 97) % 1500, received[id].byte_len);
    EXPECT_TRUE(sink_.Holds(static_cast<uint32_t>(id), id * 1500, received[id].byte_len)) << id;
  }
}

TEST_F(RcSend, PacketNumbersWrapAround) {
  const Link link = MakeLink({.mtu = IBV_MTU_256, .psn = 0xffffff});
  for (uint32_t round = 0; round < 3; ++round) {
    source_.Fill(round, 0, 2000);
    ASSERT_EQ(0, PostReceive(link.responder.get(), 1, {sink_.Sge(0, 2000)}));
    SendAndExpectSuccess(link.requester.get(), {.segments = {source_.Sge(0, 2000)}});
    EXPECT_EQ(IBV_WC_SUCCESS, PollOne(device_, responder_cq_.get()).status);
    EXPECT_TRUE(sink_.Holds(round, 0, 2000));
  }
}

TEST_F(RcCases, Row39InlineDataIsTakenAtThePostWithOrWithoutAKey) {
  Rule("POST-12");
  const Link link = MakeLink();
  for (const uint32_t lkey : {source_.lkey(), 0u, 0xdeadbeefu}) {
    SCOPED_TRACE(lkey);
    for (const size_t length : {1u, 4u, 33u, 64u}) {
      source_.Fill(8, 0, length);
      ASSERT_EQ(0, PostReceive(link.responder.get(), 1, {sink_.Sge(0, 64)}));
      ASSERT_EQ(0, PostSend(link.requester.get(),
                            {.segments = {{source_.address(), static_cast<uint32_t>(length), lkey}},
                             .flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE}));
      source_.Clear();
      EXPECT_EQ(IBV_WC_SUCCESS, PollOne(device_, requester_cq_.get()).status);
      EXPECT_EQ(length, PollOne(device_, responder_cq_.get()).byte_len);
      EXPECT_TRUE(sink_.Holds(8, 0, length));
    }
  }
}

TEST_F(RcCases, Row39InlineDataFromUnregisteredMemoryOfSeveralSegments) {
  Rule("POST-12");
  const Link link = MakeLink();
  uint8_t first[5] = {1, 2, 3, 4, 5};
  uint8_t second[30];
  std::fill(std::begin(second), std::end(second), 9);
  ASSERT_EQ(0, PostReceive(link.responder.get(), 1, {sink_.Sge(0, 64)}));
  ASSERT_EQ(
      0, PostSend(link.requester.get(), {.segments = {{reinterpret_cast<uintptr_t>(first), 5, 0},
                                                      {reinterpret_cast<uintptr_t>(second), 30, 0}},
                                         .flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE}));
  std::fill(std::begin(first), std::end(first), 0);
  std::fill(std::begin(second), std::end(second), 0);
  EXPECT_EQ(IBV_WC_SUCCESS, PollOne(device_, requester_cq_.get()).status);
  EXPECT_EQ(35u, PollOne(device_, responder_cq_.get()).byte_len);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(std::byte(i + 1), sink_.data()[i]);
  for (int i = 5; i < 35; ++i) EXPECT_EQ(std::byte{9}, sink_.data()[i]);
}

TEST_F(RcCases, Row40SuccessOfASendMeansThatTheDataIsInPlace) {
  Rule("CE-17");
  const Link link = MakeLink();
  for (uint32_t round = 0; round < 50; ++round) {
    const size_t length = 1 + (round * 1237) % 20000;
    source_.Fill(round, 0, length);
    sink_.Clear();
    ASSERT_EQ(0, PostReceive(link.responder.get(), round, {sink_.Sge(0, 20000)}));
    SendAndExpectSuccess(link.requester.get(), {.segments = {source_.Sge(0, length)}});
    ASSERT_TRUE(sink_.Holds(round, 0, length));
    ASSERT_EQ(IBV_WC_SUCCESS, PollOne(device_, responder_cq_.get()).status);
  }
}

TEST_F(RcCases, Row40SuccessOfAWriteMeansThatTheDataIsInPlace) {
  Rule("CE-17");
  const Link link = MakeLink();
  for (uint32_t round = 0; round < 50; ++round) {
    const size_t length = 1 + (round * 1237) % 20000;
    source_.Fill(round, 0, length);
    sink_.Clear();
    SendAndExpectSuccess(link.requester.get(), {.segments = {source_.Sge(0, length)},
                                                .opcode = IBV_WR_RDMA_WRITE,
                                                .remote_address = sink_.address(),
                                                .rkey = sink_.rkey()});
    ASSERT_TRUE(sink_.Holds(round, 0, length));
  }
}

// Every operation with lengths around the path MTU's multiples.
class RcEveryMtu : public RcTest, public testing::WithParamInterface<ibv_mtu> {
 protected:
  static constexpr size_t kLargest = 1 << 20;
  static constexpr size_t kGuard = 64;

  RcEveryMtu()
      : from_(pd_.get(), kLargest + kGuard),
        to_(pd_.get(), kLargest + kGuard),
        link_(MakeLink({.mtu = GetParam()})) {}

  void SetUp() override {
    if (GetParam() > device_.port_attributes().active_mtu) {
      GTEST_SKIP() << "larger than the port's MTU";
    }
  }

  static std::vector<size_t> Lengths() {
    const size_t mtu = size_t{128} << GetParam();
    return {0, 1, mtu - 1, mtu, mtu + 1, 3 * mtu + 7, kLargest};
  }

  void ExpectDelivered(uint32_t seed, size_t length) {
    EXPECT_TRUE(to_.Holds(seed, 0, length));
    EXPECT_TRUE(to_.Untouched(length, to_.size() - length));
  }

  ibv_wc Request(size_t length, ibv_wr_opcode opcode) {
    EXPECT_EQ(0, PostSend(link_.requester.get(), {.wr_id = length,
                                                  .segments = {from_.Sge(0, length)},
                                                  .opcode = opcode,
                                                  .imm_data = static_cast<uint32_t>(length),
                                                  .remote_address = to_.address(),
                                                  .rkey = to_.rkey()}));
    const ibv_wc wc = PollOne(device_, requester_cq_.get());
    EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
    EXPECT_EQ(length, wc.wr_id);
    return wc;
  }

  // Receives of a send or of a write with immediate.
  ibv_wc TakeReceive(size_t length) {
    const ibv_wc wc = PollOne(device_, responder_cq_.get());
    EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
    EXPECT_EQ(length, wc.byte_len);
    return wc;
  }

  Buffer from_;
  Buffer to_;
  Link link_;
};

TEST_P(RcEveryMtu, Send) {
  for (const size_t length : Lengths()) {
    SCOPED_TRACE(length);
    from_.Fill(1, 0, length);
    to_.Clear();
    ASSERT_EQ(0, PostReceive(link_.responder.get(), 1, {to_.Sge(0, length)}));
    EXPECT_EQ(IBV_WC_SEND, Request(length, IBV_WR_SEND).opcode);
    EXPECT_EQ(IBV_WC_RECV, TakeReceive(length).opcode);
    ExpectDelivered(1, length);
  }
}

TEST_P(RcEveryMtu, SendWithImmediate) {
  for (const size_t length : Lengths()) {
    SCOPED_TRACE(length);
    from_.Fill(2, 0, length);
    to_.Clear();
    ASSERT_EQ(0, PostReceive(link_.responder.get(), 1, {to_.Sge(0, length + kGuard)}));
    EXPECT_EQ(IBV_WC_SEND, Request(length, IBV_WR_SEND_WITH_IMM).opcode);
    EXPECT_EQ(length, TakeReceive(length).imm_data);
    ExpectDelivered(2, length);
  }
}

TEST_P(RcEveryMtu, Write) {
  for (const size_t length : Lengths()) {
    SCOPED_TRACE(length);
    from_.Fill(3, 0, length);
    to_.Clear();
    EXPECT_EQ(IBV_WC_RDMA_WRITE, Request(length, IBV_WR_RDMA_WRITE).opcode);
    ExpectDelivered(3, length);
  }
  EXPECT_TRUE(StaysEmpty(device_, responder_cq_.get(), Microseconds(100)));
}

TEST_P(RcEveryMtu, WriteWithImmediate) {
  for (const size_t length : Lengths()) {
    SCOPED_TRACE(length);
    from_.Fill(4, 0, length);
    to_.Clear();
    ASSERT_EQ(0, PostReceive(link_.responder.get(), 1, {}));
    EXPECT_EQ(IBV_WC_RDMA_WRITE, Request(length, IBV_WR_RDMA_WRITE_WITH_IMM).opcode);
    const ibv_wc wc = TakeReceive(length);
    EXPECT_EQ(IBV_WC_RECV_RDMA_WITH_IMM, wc.opcode);
    EXPECT_EQ(length, wc.imm_data);
    ExpectDelivered(4, length);
  }
}

TEST_P(RcEveryMtu, Read) {
  for (const size_t length : Lengths()) {
    SCOPED_TRACE(length);
    to_.Fill(5, 0, length);
    from_.Clear();
    const ibv_wc wc = Request(length, IBV_WR_RDMA_READ);
    EXPECT_EQ(IBV_WC_RDMA_READ, wc.opcode);
    EXPECT_EQ(length, wc.byte_len);
    EXPECT_TRUE(from_.Holds(5, 0, length));
    EXPECT_TRUE(from_.Untouched(length, from_.size() - length));
  }
  EXPECT_TRUE(StaysEmpty(device_, responder_cq_.get(), Microseconds(100)));
}

INSTANTIATE_TEST_SUITE_P(Mtu, RcEveryMtu,
                         testing::Values(IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048,
                                         IBV_MTU_4096),
                         [](const testing::TestParamInfo<ibv_mtu>& tested) {
                           return std::to_string(128 << tested.param);
                         });

}  // namespace
}  // namespace simhca::conformance
