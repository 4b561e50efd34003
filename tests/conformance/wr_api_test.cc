#include <cerrno>
#include <span>

#include "tests/conformance/fixture.h"

namespace simhca::conformance {
namespace {

// The ibv_wr_* calls on an extended queue pair.
class WrApi : public RcTest {
 protected:
  static constexpr uint64_t kOperations =
      IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE |
      IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ;

  WrApi() {
    QpOptions options = RequesterOptions();
    options.cap.max_send_wr = 8;
    options.send_ops = kOperations;
    link_.requester = MakeQp(device_, pd_.get(), options, &cap_);
    link_.responder = MakeQp(device_, pd_.get(), ResponderOptions());
    Connect(device_, link_.requester.get(), link_.responder.get());
    qpx_ = ibv_qp_to_qp_ex(link_.requester.get());
    Require(qpx_ != nullptr, "ibv_qp_to_qp_ex");
  }

  void Name(uint64_t wr_id, unsigned flags = IBV_SEND_SIGNALED) {
    qpx_->wr_id = wr_id;
    qpx_->wr_flags = flags;
  }
  void SetSge(size_t offset, size_t length) {
    ibv_wr_set_sge(qpx_, source_.lkey(), source_.address(offset), static_cast<uint32_t>(length));
  }
  void ExpectNext(uint64_t wr_id, ibv_wc_opcode opcode) {
    const ibv_wc wc = PollOne(device_, requester_cq_.get());
    EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
    EXPECT_EQ(wr_id, wc.wr_id);
    EXPECT_EQ(opcode, wc.opcode);
  }
  void PostReceives(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      ASSERT_EQ(0, PostReceive(link_.responder.get(), i, {sink_.Sge(i * 4096, 4096)}));
    }
  }

  Link link_;
  ibv_qp_cap cap_{};
  ibv_qp_ex* qpx_ = nullptr;
};

TEST_F(WrApi, PlainQpsHaveNoExtendedForm) {
  Rule("RET-07");
  const Qp plain = MakeQp(device_, pd_.get(), RequesterOptions());
  EXPECT_EQ(nullptr, ibv_qp_to_qp_ex(plain.get()));
}

TEST_F(WrApi, ExtendedFormContainsTheQp) {
  Rule("RET-07");
  EXPECT_EQ(link_.requester.get(), &qpx_->qp_base);
}

TEST_F(WrApi, EveryOperationOfABatchIsDone) {
  Rule("POST-16");
  PostReceives(3);
  source_.Fill(1, 0, 300);
  sink_.Fill(2, 40000, 500);
  ibv_wr_start(qpx_);
  Name(1);
  ibv_wr_send(qpx_);
  SetSge(0, 300);
  Name(2);
  ibv_wr_send_imm(qpx_, 0xaabbccdd);
  SetSge(0, 200);
  Name(3);
  ibv_wr_rdma_write(qpx_, sink_.rkey(), sink_.address(30000));
  SetSge(0, 100);
  Name(4);
  ibv_wr_rdma_write_imm(qpx_, sink_.rkey(), sink_.address(31000), 0x11223344);
  SetSge(0, 150);
  Name(5);
  ibv_wr_rdma_read(qpx_, sink_.rkey(), sink_.address(40000));
  SetSge(8000, 500);
  ASSERT_EQ(0, ibv_wr_complete(qpx_));

  ExpectNext(1, IBV_WC_SEND);
  ExpectNext(2, IBV_WC_SEND);
  ExpectNext(3, IBV_WC_RDMA_WRITE);
  ExpectNext(4, IBV_WC_RDMA_WRITE);
  ExpectNext(5, IBV_WC_RDMA_READ);
  const std::vector<ibv_wc> received = Poll(device_, responder_cq_.get(), 3);
  ASSERT_EQ(3u, received.size());
  EXPECT_EQ(300u, received[0].byte_len);
  EXPECT_EQ(0xaabbccddu, received[1].imm_data);
  EXPECT_EQ(IBV_WC_RECV_RDMA_WITH_IMM, received[2].opcode);
  EXPECT_EQ(0x11223344u, received[2].imm_data);
  EXPECT_EQ(150u, received[2].byte_len);
  EXPECT_TRUE(sink_.Holds(1, 0, 300));
  EXPECT_TRUE(sink_.Holds(1, 4096, 200));
  EXPECT_TRUE(sink_.Holds(1, 30000, 100));
  EXPECT_TRUE(sink_.Holds(1, 31000, 150));
  EXPECT_TRUE(source_.Holds(2, 8000, 500));
}

TEST_F(WrApi, NothingIsSentBeforeComplete) {
  Rule("POST-16");
  PostReceives(1);
  ibv_wr_start(qpx_);
  Name(1);
  ibv_wr_send(qpx_);
  SetSge(0, 32);
  EXPECT_TRUE(StaysEmpty(device_, responder_cq_.get()));
  ASSERT_EQ(0, ibv_wr_complete(qpx_));
  ExpectNext(1, IBV_WC_SEND);
}

TEST_F(WrApi, AbortUndoesTheBatch) {
  Rule("POST-18");
  PostReceives(1);
  source_.Fill(7, 0, 32);
  ibv_wr_start(qpx_);
  for (uint64_t id = 1; id <= 3; ++id) {
    Name(id);
    ibv_wr_send(qpx_);
    SetSge(1000, 32);
  }
  ibv_wr_abort(qpx_);
  EXPECT_TRUE(StaysEmpty(device_, requester_cq_.get()));

  ibv_wr_start(qpx_);
  Name(9);
  ibv_wr_send(qpx_);
  SetSge(0, 32);
  ASSERT_EQ(0, ibv_wr_complete(qpx_));
  ExpectNext(9, IBV_WC_SEND);
  EXPECT_EQ(32u, PollOne(device_, responder_cq_.get()).byte_len);
  EXPECT_TRUE(sink_.Holds(7, 0, 32));
  EXPECT_TRUE(StaysEmpty(device_, requester_cq_.get()));
}

TEST_F(WrApi, EmptyBatchIsFine) {
  Rule("POST-16");
  ibv_wr_start(qpx_);
  EXPECT_EQ(0, ibv_wr_complete(qpx_));
}

TEST_F(WrApi, SegmentListsAreGathered) {
  Rule("POST-16");
  PostReceives(1);
  source_.Fill(3, 0, 1000);
  const ibv_sge segments[] = {source_.Sge(0, 10), source_.Sge(10, 490), source_.Sge(500, 500)};
  ibv_wr_start(qpx_);
  Name(1);
  ibv_wr_send(qpx_);
  ibv_wr_set_sge_list(qpx_, std::size(segments), segments);
  ASSERT_EQ(0, ibv_wr_complete(qpx_));
  ExpectNext(1, IBV_WC_SEND);
  EXPECT_TRUE(sink_.Holds(3, 0, 1000));
}

TEST_F(WrApi, InlineDataIsTakenWhenItIsSet) {
  Rule("POST-12");
  PostReceives(2);
  source_.Fill(4, 0, 64);
  ibv_wr_start(qpx_);
  Name(1);
  ibv_wr_send(qpx_);
  ibv_wr_set_inline_data(qpx_, source_.data(), 64);
  const ibv_data_buf pieces[] = {{source_.data(), 5}, {source_.data() + 5, 40}};
  Name(2);
  ibv_wr_send(qpx_);
  ibv_wr_set_inline_data_list(qpx_, std::size(pieces), pieces);
  source_.Clear();
  ASSERT_EQ(0, ibv_wr_complete(qpx_));
  ExpectNext(1, IBV_WC_SEND);
  ExpectNext(2, IBV_WC_SEND);
  EXPECT_EQ(2u, Poll(device_, responder_cq_.get(), 2).size());
  EXPECT_TRUE(sink_.Holds(4, 0, 64));
  EXPECT_TRUE(sink_.Holds(4, 4096, 45));
}

TEST_F(WrApi, AFullQueueIsReportedByCompleteAndTheWholeBatchIsUndone) {
  Rule("POST-17");
  ibv_wr_start(qpx_);
  for (uint64_t id = 0; id <= cap_.max_send_wr; ++id) {
    Name(id);
    ibv_wr_rdma_write(qpx_, sink_.rkey(), sink_.address());
    SetSge(0, 8);
  }
  EXPECT_EQ(ENOMEM, ibv_wr_complete(qpx_));
  EXPECT_TRUE(StaysEmpty(device_, requester_cq_.get()));
  EXPECT_TRUE(sink_.Untouched(0, 8));

  ibv_wr_start(qpx_);
  for (uint64_t id = 0; id < cap_.max_send_wr; ++id) {
    Name(id);
    ibv_wr_rdma_write(qpx_, sink_.rkey(), sink_.address());
    SetSge(0, 8);
  }
  EXPECT_EQ(0, ibv_wr_complete(qpx_)) << "all slots are still there";
  EXPECT_EQ(cap_.max_send_wr, Poll(device_, requester_cq_.get(), cap_.max_send_wr).size());
}

TEST_F(WrApi, TheFirstErrorIsKeptUntilComplete) {
  Rule("POST-17");
  PostReceives(1);
  std::vector<std::byte> too_long(cap_.max_inline_data + 1);
  ibv_wr_start(qpx_);
  Name(1);
  ibv_wr_send(qpx_);
  SetSge(0, 8);
  Name(2);
  ibv_wr_send(qpx_);
  ibv_wr_set_inline_data(qpx_, too_long.data(), too_long.size());
  Name(3);
  ibv_wr_send(qpx_);
  SetSge(0, 8);
  ExpectRefusedPost(device_, ibv_wr_complete(qpx_));
  EXPECT_TRUE(StaysEmpty(device_, requester_cq_.get()));
  EXPECT_TRUE(StaysEmpty(device_, responder_cq_.get()));

  ibv_wr_start(qpx_);
  Name(4);
  ibv_wr_send(qpx_);
  SetSge(0, 8);
  EXPECT_EQ(0, ibv_wr_complete(qpx_)) << "an error does not outlive its batch";
  ExpectNext(4, IBV_WC_SEND);
}

TEST_F(WrApi, UnsignalledAndFencedFlagsWork) {
  Rule("POST-16");
  PostReceives(1);
  sink_.Fill(5, 40000, 3000);
  ibv_wr_start(qpx_);
  Name(1, 0);
  ibv_wr_rdma_read(qpx_, sink_.rkey(), sink_.address(40000));
  SetSge(0, 3000);
  Name(2, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
  ibv_wr_send(qpx_);
  SetSge(0, 3000);
  ASSERT_EQ(0, ibv_wr_complete(qpx_));
  ExpectNext(2, IBV_WC_SEND);
  EXPECT_TRUE(sink_.Holds(5, 0, 3000));
}

TEST_F(WrApi, PostSendWorksOnAnExtendedQpToo) {
  Rule("POST-16");
  PostReceives(1);
  SendAndExpectSuccess(link_.requester.get(), {.wr_id = 6, .segments = {source_.Sge(0, 32)}});
  EXPECT_EQ(32u, PollOne(device_, responder_cq_.get()).byte_len);
}

TEST_F(WrApi, AbortAfterAnErrorForgetsIt) {
  Rule("POST-18");
  PostReceives(1);
  std::vector<std::byte> too_long(cap_.max_inline_data + 1);
  ibv_wr_start(qpx_);
  Name(1);
  ibv_wr_send(qpx_);
  ibv_wr_set_inline_data(qpx_, too_long.data(), too_long.size());
  ibv_wr_abort(qpx_);
  ibv_wr_start(qpx_);
  Name(2);
  ibv_wr_send(qpx_);
  SetSge(0, 8);
  EXPECT_EQ(0, ibv_wr_complete(qpx_));
  ExpectNext(2, IBV_WC_SEND);
}

TEST_F(WrApi, UndoneBatchesKeepNoSlots) {
  Rule("POST-17, POST-18");
  for (int round = 0; round < 20; ++round) {
    ibv_wr_start(qpx_);
    for (uint32_t i = 0; i < cap_.max_send_wr; ++i) {
      Name(i);
      ibv_wr_rdma_write(qpx_, sink_.rkey(), sink_.address());
      SetSge(0, 8);
    }
    if (round % 2 == 0) {
      ibv_wr_abort(qpx_);
    } else {
      Name(99);
      ibv_wr_rdma_write(qpx_, sink_.rkey(), sink_.address());
      SetSge(0, 8);
      EXPECT_EQ(ENOMEM, ibv_wr_complete(qpx_)) << "one more than fits";
    }
  }
  EXPECT_TRUE(StaysEmpty(device_, requester_cq_.get()));
  for (uint32_t i = 0; i < cap_.max_send_wr; ++i) {
    ASSERT_EQ(0, PostSend(link_.requester.get(), {.wr_id = i,
                                                  .segments = {source_.Sge(0, 8)},
                                                  .opcode = IBV_WR_RDMA_WRITE,
                                                  .remote_address = sink_.address(),
                                                  .rkey = sink_.rkey()}));
  }
  EXPECT_EQ(cap_.max_send_wr, Poll(device_, requester_cq_.get(), cap_.max_send_wr).size());
}

TEST_F(WrApi, ABatchInAStateThatTakesNoSendsFailsAtComplete) {
  Rule("POST-17");
  ASSERT_EQ(0, Move(link_.requester.get(), IBV_QPS_RESET));
  ibv_wr_start(qpx_);
  Name(1);
  ibv_wr_send(qpx_);
  SetSge(0, 8);
  EXPECT_EQ(EINVAL, ibv_wr_complete(qpx_));
  EXPECT_TRUE(StaysEmpty(device_, requester_cq_.get()));
}

TEST_F(WrApi, ABatchInTheErrorStateIsFlushed) {
  Rule("ST-12");
  ASSERT_EQ(0, Move(link_.requester.get(), IBV_QPS_ERR));
  ibv_wr_start(qpx_);
  for (uint64_t id = 1; id <= 2; ++id) {
    Name(id, 0);
    ibv_wr_send(qpx_);
    SetSge(0, 8);
  }
  ASSERT_EQ(0, ibv_wr_complete(qpx_));
  const std::vector<ibv_wc> wcs = Poll(device_, requester_cq_.get(), 2);
  EXPECT_EQ((std::vector<uint64_t>{1, 2}), IdsOf(wcs));
  EXPECT_EQ(std::vector<ibv_wc_status>(2, IBV_WC_WR_FLUSH_ERR), StatusesOf(wcs));
}

}  // namespace
}  // namespace simhca::conformance
