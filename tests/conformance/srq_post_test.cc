#include <algorithm>
#include <cerrno>
#include <numeric>
#include <set>

#include "tests/conformance/fixture.h"

namespace simhca::conformance {
namespace {

TEST_F(SrqCases, Row18ListLongerThanTheQueueStopsAtTheFirstThatDoesNotFit) {
  Rule("SRQ-15");
  CreateSrq(16);
  ReceiveChain chain(capacity_ + 5, {sink_.Sge(0, kSlotBytes)});
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(ENOMEM, ibv_post_srq_recv(srq_.get(), chain.head(), &bad));
  EXPECT_EQ(&chain[capacity_], bad);
  EXPECT_EQ(capacity_, CountReceivable());
}

TEST_F(SrqCases, Row19TooManySegmentsStopTheListAndEarlierOnesStay) {
  Rule("SRQ-15");
  CreateSrq(16, 2);
  const uint32_t max_sge = Query().max_sge;
  ReceiveChain chain(5, {sink_.Sge(0, kSlotBytes)});
  std::vector<ibv_sge> too_many(max_sge + 1, sink_.Sge(0, 4));
  chain[2].sg_list = too_many.data();
  chain[2].num_sge = static_cast<int>(too_many.size());
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(EINVAL, ibv_post_srq_recv(srq_.get(), chain.head(), &bad));
  EXPECT_EQ(&chain[2], bad);
  EXPECT_EQ(2u, CountReceivable());
}

TEST_F(SrqTest, TooManySegmentsAreRefusedBeforeAFullQueue) {
  Rule("SRQ-16");
  CreateSrq(4, 1);
  ASSERT_EQ(0, P(capacity_));
  const std::vector<ibv_sge> too_many(Query().max_sge + 1, sink_.Sge(0, 4));
  EXPECT_EQ(EINVAL, PostSrqReceive(srq_.get(), 0, too_many));
}

TEST_F(SrqCases, Row22AFullQueueRefusesWithoutHarmAndPollingFreesAnEntry) {
  Rule("SRQ-16, SRQ-17");
  CreateSrq(16);
  const Link link = MakeLink({}, srq_.get());
  ASSERT_EQ(0, P(capacity_));
  EXPECT_EQ(ENOMEM, P(1));
  S(link.requester.get(), 1);
  EXPECT_EQ(ENOMEM, P(1)) << "received but not polled";
  EXPECT_EQ(std::vector<uint64_t>{0}, Receive(1));
  EXPECT_EQ(0, P(1));
  EXPECT_EQ(ENOMEM, P(1));
  std::vector<uint64_t> expected(capacity_);
  std::iota(expected.begin(), expected.end(), 1);
  EXPECT_EQ(expected, SendAndReceive(link, capacity_));
}

TEST_F(SrqTest, BadWrIsUntouchedOnSuccess) {
  Rule("SRQ-15");
  CreateSrq(4);
  ReceiveChain chain(3, {sink_.Sge(0, kSlotBytes)});
  ibv_recv_wr marker{};
  ibv_recv_wr* bad = &marker;
  EXPECT_EQ(0, ibv_post_srq_recv(srq_.get(), chain.head(), &bad));
  EXPECT_EQ(&marker, bad);
}

TEST_F(SrqTest, ListThatLoopsBackOnItselfFillsTheQueueAndEnds) {
  Rule("SRQ-15");
  CreateSrq(16);
  ReceiveChain chain(2, {sink_.Sge(0, kSlotBytes)});
  chain[1].next = chain.head();
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(ENOMEM, ibv_post_srq_recv(srq_.get(), chain.head(), &bad));
  EXPECT_EQ(&chain[capacity_ % 2], bad);
  EXPECT_EQ(capacity_, CountReceivable());
}

TEST_F(SrqTest, PostingWorksBeforeAnyQpIsThereAndAfterTheLastIsGone) {
  Rule("SRQ-18");
  CreateSrq(8);
  ASSERT_EQ(0, P(3));
  { const Link link = MakeLink({}, srq_.get()); }
  ASSERT_EQ(0, P(3));
  EXPECT_EQ(6u, CountReceivable());
}

TEST_F(SrqTest, PostingWorksWhileTheOnlyQpIsInError) {
  Rule("SRQ-18");
  CreateSrq(8);
  const Link link = MakeLink({}, srq_.get());
  ASSERT_EQ(0, P(2));
  ASSERT_EQ(0, Move(link.responder.get(), IBV_QPS_ERR));
  ASSERT_EQ(0, P(2));
  EXPECT_EQ(4u, CountReceivable());
}

TEST_F(SrqTest, ReceiveWithoutSegmentsTakesAMessageWithoutBytes) {
  Rule("SRQ-20");
  CreateSrq(4);
  const Link link = MakeLink({}, srq_.get());
  ASSERT_EQ(0, PostSrqReceive(srq_.get(), 77, {}));
  SendAndExpectSuccess(link.requester.get(), {.wr_id = 1});
  const ibv_wc wc = PollOne(device_, responder_cq_.get());
  EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
  EXPECT_EQ(77u, wc.wr_id);
  EXPECT_EQ(0u, wc.byte_len);
}

TEST_F(SrqTest, CompletionNamesTheQpTheLengthAndTheImmediate) {
  Rule("SRQ-21");
  CreateSrq(4);
  const Link first = MakeLink({}, srq_.get());
  const Link second = MakeLink({}, srq_.get());
  ASSERT_EQ(0, P(2));
  SendAndExpectSuccess(second.requester.get(), {.wr_id = 1,
                                                .segments = {source_.Sge(0, 20)},
                                                .opcode = IBV_WR_SEND_WITH_IMM,
                                                .imm_data = 0x12345678});
  SendAndExpectSuccess(first.requester.get(), {.wr_id = 2, .segments = {source_.Sge(0, 12)}});
  const std::vector<ibv_wc> wcs = Poll(device_, responder_cq_.get(), 2);
  ASSERT_EQ(2u, wcs.size());
  EXPECT_EQ(second.responder->qp_num, wcs[0].qp_num);
  EXPECT_EQ(20u, wcs[0].byte_len);
  EXPECT_EQ(IBV_WC_RECV, wcs[0].opcode);
  EXPECT_TRUE(wcs[0].wc_flags & IBV_WC_WITH_IMM);
  EXPECT_EQ(0x12345678u, wcs[0].imm_data);
  EXPECT_EQ(first.responder->qp_num, wcs[1].qp_num);
  EXPECT_EQ(12u, wcs[1].byte_len);
  EXPECT_FALSE(wcs[1].wc_flags & IBV_WC_WITH_IMM);
}

TEST_F(SrqTest, SegmentsOfAnEarlierReceiveDoNotLingerInItsEntry) {
  Rule("SRQ-20");
  CreateSrq(1, 3);
  const Link link = MakeLink({}, srq_.get());
  ASSERT_EQ(
      0, PostSrqReceive(srq_.get(), 0, {sink_.Sge(0, 16), sink_.Sge(100, 16), sink_.Sge(200, 16)}));
  source_.Fill(5, 0, 48);
  SendAndExpectSuccess(link.requester.get(), {.segments = {source_.Sge(0, 48)}});
  EXPECT_EQ(48u, PollOne(device_, responder_cq_.get()).byte_len);
  EXPECT_TRUE(sink_.Holds(5, 0, 16, 0));
  EXPECT_TRUE(sink_.Holds(5, 100, 16, 16));
  EXPECT_TRUE(sink_.Holds(5, 200, 16, 32));

  for (uint32_t round = 0; round < 2 * capacity_; ++round) {
    ASSERT_EQ(0, PostSrqReceive(srq_.get(), 1, {sink_.Sge(0, 16)}));
    SendAndExpectSuccess(link.requester.get(), {.segments = {source_.Sge(0, 16)}});
    EXPECT_EQ(IBV_WC_SUCCESS, PollOne(device_, responder_cq_.get()).status);
  }
  ASSERT_EQ(0, PostSrqReceive(srq_.get(), 2, {sink_.Sge(0, 16)}));
  ASSERT_EQ(0, PostSend(link.requester.get(), {.segments = {source_.Sge(0, 48)}}));
  EXPECT_EQ(IBV_WC_REM_INV_REQ_ERR, PollOne(device_, requester_cq_.get()).status);
  EXPECT_EQ(IBV_WC_LOC_LEN_ERR, PollOne(device_, responder_cq_.get()).status);
}

TEST_F(SrqTest, ReceiveOnTheQpItselfIsRefused) {
  Rule("POST-13");
  CreateSrq(4);
  const Link link = MakeLink({}, srq_.get());
  ReceiveChain chain(2, {sink_.Sge(0, kSlotBytes)});
  ibv_recv_wr* bad = nullptr;
  ExpectRefusedPost(device_, ibv_post_recv(link.responder.get(), chain.head(), &bad));
  EXPECT_EQ(chain.head(), bad);
  EXPECT_EQ(0u, CountReceivable());
}

TEST_F(SrqTest, ReceiveKeysBelongToTheProtectionDomainOfTheSrq) {
  Rule("SRQ-19");
  const Pd other = MakePd(device_);
  Buffer buffer(other.get(), 4096);
  ibv_srq_attr granted{};
  srq_ = MakeSrq(other.get(), 4, 1, &granted);
  {
    const Link link = MakeLink({}, srq_.get());
    source_.Fill(9, 0, 100);
    ASSERT_EQ(0, PostSrqReceive(srq_.get(), 3, {buffer.Sge(0, 100)}));
    SendAndExpectSuccess(link.requester.get(), {.segments = {source_.Sge(0, 100)}});
    EXPECT_EQ(IBV_WC_SUCCESS, PollOne(device_, responder_cq_.get()).status);
    EXPECT_TRUE(buffer.Holds(9, 0, 100));

    ASSERT_EQ(0, PostSrqReceive(srq_.get(), 4, {sink_.Sge(0, 100)})) << "checked at receive time";
    ASSERT_EQ(0, PostSend(link.requester.get(), {.segments = {source_.Sge(0, 100)}}));
    EXPECT_EQ(IBV_WC_REM_OP_ERR, PollOne(device_, requester_cq_.get()).status);
    EXPECT_EQ(IBV_WC_LOC_PROT_ERR, PollOne(device_, responder_cq_.get()).status);
    EXPECT_TRUE(sink_.Untouched(0, sink_.size()));
  }
  srq_.reset();
}

TEST_F(SrqTest, WritesAndReadsTakeNoReceive) {
  Rule("SRQ-20");
  CreateSrq(4);
  const Link link = MakeLink({.rnr_retry = 0}, srq_.get());
  ASSERT_EQ(0, P(1));
  SendAndExpectSuccess(link.requester.get(), {.segments = {source_.Sge(0, 100)},
                                              .opcode = IBV_WR_RDMA_WRITE,
                                              .remote_address = sink_.address(1000),
                                              .rkey = sink_.rkey()});
  SendAndExpectSuccess(link.requester.get(), {.segments = {source_.Sge(0, 100)},
                                              .opcode = IBV_WR_RDMA_READ,
                                              .remote_address = sink_.address(1000),
                                              .rkey = sink_.rkey()});
  EXPECT_TRUE(StaysEmpty(device_, responder_cq_.get(), Microseconds(100)));
  EXPECT_EQ(1u, CountReceivable());
}

TEST_F(SrqTest, WriteWithImmediateTakesOneReceive) {
  Rule("SRQ-20");
  CreateSrq(4);
  const Link link = MakeLink({.rnr_retry = 0}, srq_.get());
  ASSERT_EQ(0, PostSrqReceive(srq_.get(), 5, {}));
  source_.Fill(3, 0, 5000);
  const SendRequest write{.segments = {source_.Sge(0, 5000)},
                          .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
                          .imm_data = 0xabcdef01,
                          .remote_address = sink_.address(),
                          .rkey = sink_.rkey()};
  SendAndExpectSuccess(link.requester.get(), write);
  const ibv_wc wc = PollOne(device_, responder_cq_.get());
  EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
  EXPECT_EQ(IBV_WC_RECV_RDMA_WITH_IMM, wc.opcode);
  EXPECT_EQ(5u, wc.wr_id);
  EXPECT_EQ(5000u, wc.byte_len);
  EXPECT_EQ(0xabcdef01u, wc.imm_data);
  EXPECT_TRUE(sink_.Holds(3, 0, 5000));

  ASSERT_EQ(0, PostSend(link.requester.get(), write));
  EXPECT_EQ(IBV_WC_RNR_RETRY_EXC_ERR, PollOne(device_, requester_cq_.get()).status);
}

TEST_F(SrqTest, ResetOfAQpTakesItsCompletionsAwayAndReturnsTheirEntries) {
  Rule("ST-16");
  CreateSrq(8);
  const Link link = MakeLink({}, srq_.get());
  ASSERT_EQ(0, P(capacity_));
  S(link.requester.get(), 2);
  ASSERT_EQ(0, Move(link.responder.get(), IBV_QPS_RESET));
  EXPECT_TRUE(StaysEmpty(device_, responder_cq_.get(), Microseconds(100)));
  EXPECT_EQ(0, P(2));
  EXPECT_EQ(ENOMEM, P(1));
  EXPECT_EQ(capacity_, CountReceivable());
}

TEST_F(SrqTest, DestroyOfAQpTakesItsCompletionsAwayAndReturnsTheirEntries) {
  Rule("LIFE-06");
  CreateSrq(8);
  const Link other = MakeLink({}, srq_.get());
  ASSERT_EQ(0, P(capacity_));
  {
    const Link link = MakeLink({}, srq_.get());
    S(link.requester.get(), 1);
    S(other.requester.get(), 1);
    S(link.requester.get(), 1);
  }
  EXPECT_EQ(std::vector<uint64_t>{1}, Receive(1)) << "another QP's completion stays";
  EXPECT_TRUE(StaysEmpty(device_, responder_cq_.get(), Microseconds(100)));
  EXPECT_EQ(0, P(3));
  EXPECT_EQ(ENOMEM, P(1));
  EXPECT_EQ(capacity_, CountReceivable());
}

// Several queue pairs that keep messages of several packets in flight into one SRQ.
class SrqFanIn : public SrqTest {
 protected:
  static constexpr size_t kQps = 4;
  static constexpr size_t kMessages = 100;  // of each QP
  static constexpr size_t kInFlight = 4;    // of each QP
  static constexpr size_t kReceives = 32;
  static constexpr size_t kMessageBytes = 3 * 256 + 7;

  SrqFanIn()
      : messages_(pd_.get(), kQps * kInFlight * kMessageBytes),
        receives_(pd_.get(), kReceives * kMessageBytes) {}

  void Repost(uint64_t slot) {
    EXPECT_TRUE(posted_.insert(slot).second) << "posted twice";
    ASSERT_EQ(
        0, PostSrqReceive(srq_.get(), slot, {receives_.Sge(slot * kMessageBytes, kMessageBytes)}));
  }

  void SendNext(size_t qp) {
    const size_t message = sent_[qp]++;
    const size_t slot = qp * kInFlight + message % kInFlight;
    messages_.Fill(Seed(qp, message), slot * kMessageBytes, kMessageBytes);
    ASSERT_EQ(0, PostSend(links_[qp].requester.get(),
                          {.wr_id = qp,
                           .segments = {messages_.Sge(slot * kMessageBytes, kMessageBytes)}}));
  }

  // Checks that the completion takes a posted receive and holds its QP's next message.
  void Take(const ibv_wc& wc) {
    ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
    EXPECT_EQ(kMessageBytes, wc.byte_len);
    EXPECT_EQ(1u, posted_.erase(wc.wr_id)) << "wr_id " << wc.wr_id << " was not posted";
    const auto link = std::find_if(links_.begin(), links_.end(), [&](const Link& candidate) {
      return candidate.responder->qp_num == wc.qp_num;
    });
    ASSERT_NE(links_.end(), link);
    const size_t qp = static_cast<size_t>(link - links_.begin());
    EXPECT_TRUE(receives_.Holds(Seed(qp, received_[qp]), wc.wr_id * kMessageBytes, kMessageBytes))
        << "message " << received_[qp] << " of QP " << qp;
    ++received_[qp];
  }

  static uint32_t Seed(size_t qp, size_t message) {
    return static_cast<uint32_t>(1 + qp * kMessages + message);
  }

  Buffer messages_;
  Buffer receives_;
  std::vector<Link> links_;
  std::set<uint64_t> posted_;
  size_t sent_[kQps] = {};
  size_t received_[kQps] = {};
};

TEST_F(SrqFanIn, Row20EveryReceiveIsUsedOnceBeforeItsRepost) {
  Rule("SRQ-21");
  CreateSrq(kReceives);
  for (size_t qp = 0; qp < kQps; ++qp) {
    links_.push_back(MakeLink({.mtu = IBV_MTU_256}, srq_.get()));
  }
  for (uint64_t slot = 0; slot < kReceives; ++slot) Repost(slot);
  for (size_t qp = 0; qp < kQps; ++qp) {
    for (size_t i = 0; i < kInFlight; ++i) SendNext(qp);
  }
  size_t taken = 0;
  size_t acknowledged = 0;
  Deadline deadline(device_, kPatience);
  while ((taken < kQps * kMessages || acknowledged < kQps * kMessages) && !HasFailure()) {
    ibv_wc wc{};
    bool idle = true;
    if (ibv_poll_cq(responder_cq_.get(), 1, &wc) == 1) {
      Take(wc);
      Repost(wc.wr_id);
      ++taken;
      idle = false;
    }
    if (ibv_poll_cq(requester_cq_.get(), 1, &wc) == 1) {
      ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
      if (sent_[wc.wr_id] < kMessages) SendNext(wc.wr_id);
      ++acknowledged;
      idle = false;
    }
    if (idle) {
      ASSERT_FALSE(deadline.Passed());
    }
  }
  EXPECT_EQ(kReceives, posted_.size());
  EXPECT_TRUE(StaysEmpty(device_, responder_cq_.get()));
}

}  // namespace
}  // namespace simhca::conformance
