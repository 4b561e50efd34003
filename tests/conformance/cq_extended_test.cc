#include <cerrno>

#include "tests/conformance/fixture.h"

namespace simhca::conformance {
namespace {

// Extended CQs: ibv_start_poll, ibv_next_poll, ibv_end_poll and the field readers.
class CqExtended : public RcTest {
 protected:
  enum class Side { kRequester, kResponder };

  ibv_cq_ex* TryCreate(uint64_t wc_flags, uint32_t comp_mask = 0, uint32_t flags = 0) {
    ibv_cq_init_attr_ex init{};
    init.cqe = 64;
    init.cq_context = this;
    init.wc_flags = wc_flags;
    init.comp_mask = comp_mask;
    init.flags = flags;
    errno = 0;
    return ibv_create_cq_ex(device_.context(), &init);
  }
  void Create(uint64_t wc_flags) {
    cq_ex_ = TryCreate(wc_flags);
    Require(cq_ex_ != nullptr, "ibv_create_cq_ex");
    cq_.reset(ibv_cq_ex_to_cq(cq_ex_));
  }
  // A link of which one side completes to the CQ under test.
  void MakeConnection(Side side) {
    QpOptions requester = RequesterOptions();
    QpOptions responder = ResponderOptions();
    (side == Side::kRequester ? requester.send_cq : responder.receive_cq) = cq_.get();
    link_.requester = MakeQp(device_, pd_.get(), requester);
    link_.responder = MakeQp(device_, pd_.get(), responder);
    Connect(device_, link_.requester.get(), link_.responder.get());
  }
  // Delivers one message of `length` bytes with immediate data; the receive has wr_id `id`.
  void Deliver(uint64_t id, size_t length) {
    ASSERT_EQ(0, PostReceive(link_.responder.get(), id, {sink_.Sge(0, 4096)}));
    SendAndExpectSuccess(link_.requester.get(), {.wr_id = 1,
                                                 .segments = {source_.Sge(0, length)},
                                                 .opcode = IBV_WR_SEND_WITH_IMM,
                                                 .imm_data = static_cast<uint32_t>(id + 1000)});
  }
  SendRequest Write(uint64_t wr_id, size_t length) const {
    return {.wr_id = wr_id,
            .segments = {source_.Sge(0, length)},
            .opcode = IBV_WR_RDMA_WRITE,
            .remote_address = sink_.address(),
            .rkey = sink_.rkey()};
  }
  // ibv_start_poll as soon as there is something.
  int StartPoll() {
    Deadline deadline(device_, kPatience);
    for (;;) {
      ibv_poll_cq_attr attr{};
      const int result = ibv_start_poll(cq_ex_, &attr);
      if (result != ENOENT || deadline.Passed()) return result;
    }
  }

  Cq cq_;
  ibv_cq_ex* cq_ex_ = nullptr;
  Link link_;
};

TEST_F(CqExtended, CreateFillsInWhatWasGiven) {
  Rule("CQ-02");
  Create(IBV_WC_STANDARD_FLAGS);
  EXPECT_EQ(device_.context(), cq_->context);
  EXPECT_EQ(this, cq_->cq_context);
  EXPECT_GE(cq_->cqe, 64);
  EXPECT_EQ(nullptr, cq_->channel);
}

TEST_F(CqExtended, UnsupportedFieldsAreRefused) {
  Rule("CQ-03");
  EXPECT_EQ(nullptr, TryCreate(IBV_WC_STANDARD_FLAGS | 1ull << 40));
  EXPECT_EQ(EOPNOTSUPP, errno);
}

TEST_F(CqExtended, UnknownMaskBitsAndFlagsAreRefused) {
  Rule("CQ-04");
  EXPECT_EQ(nullptr, TryCreate(IBV_WC_STANDARD_FLAGS, 1u << 30));
  EXPECT_TRUE(errno == EINVAL || errno == EOPNOTSUPP) << errno;
  EXPECT_EQ(nullptr, TryCreate(IBV_WC_STANDARD_FLAGS, IBV_CQ_INIT_ATTR_MASK_FLAGS, 1u << 30));
  EXPECT_TRUE(errno == EINVAL || errno == EOPNOTSUPP) << errno;
}

TEST_F(CqExtended, EmptyCqGivesEnoentAndUnknownPollAttributesEinval) {
  Rule("CQ-06");
  Create(IBV_WC_STANDARD_FLAGS);
  ibv_poll_cq_attr attr{};
  EXPECT_EQ(ENOENT, ibv_start_poll(cq_ex_, &attr));
  attr.comp_mask = 1;
  EXPECT_EQ(EINVAL, ibv_start_poll(cq_ex_, &attr));
}

TEST_F(CqExtended, EveryFieldOfAReceiveCanBeRead) {
  Rule("CQ-05");
  Create(IBV_WC_STANDARD_FLAGS);
  MakeConnection(Side::kResponder);
  Deliver(7, 300);
  ASSERT_EQ(0, StartPoll());
  EXPECT_EQ(7u, cq_ex_->wr_id);
  EXPECT_EQ(IBV_WC_SUCCESS, cq_ex_->status);
  EXPECT_EQ(IBV_WC_RECV, ibv_wc_read_opcode(cq_ex_));
  EXPECT_EQ(0u, ibv_wc_read_vendor_err(cq_ex_));
  EXPECT_EQ(300u, ibv_wc_read_byte_len(cq_ex_));
  EXPECT_TRUE(ibv_wc_read_wc_flags(cq_ex_) & IBV_WC_WITH_IMM);
  EXPECT_EQ(1007u, ibv_wc_read_imm_data(cq_ex_));
  EXPECT_EQ(link_.responder->qp_num, ibv_wc_read_qp_num(cq_ex_));
  // Unspecified for RC, but readable.
  static_cast<void>(ibv_wc_read_src_qp(cq_ex_));
  static_cast<void>(ibv_wc_read_slid(cq_ex_));
  static_cast<void>(ibv_wc_read_sl(cq_ex_));
  static_cast<void>(ibv_wc_read_dlid_path_bits(cq_ex_));
  EXPECT_EQ(ENOENT, ibv_next_poll(cq_ex_));
  ibv_end_poll(cq_ex_);
  ibv_poll_cq_attr attr{};
  EXPECT_EQ(ENOENT, ibv_start_poll(cq_ex_, &attr));
}

TEST_F(CqExtended, OneBatchWalksOverManyCompletions) {
  Rule("CQ-07");
  Create(IBV_WC_STANDARD_FLAGS);
  MakeConnection(Side::kResponder);
  for (uint64_t id = 0; id < 20; ++id) Deliver(id, 10 + id);
  ASSERT_EQ(0, StartPoll());
  for (uint64_t id = 0; id < 20; ++id) {
    EXPECT_EQ(id, cq_ex_->wr_id);
    EXPECT_EQ(10 + id, ibv_wc_read_byte_len(cq_ex_));
    EXPECT_EQ(id + 1000, ibv_wc_read_imm_data(cq_ex_));
    EXPECT_EQ(id < 19 ? 0 : ENOENT, ibv_next_poll(cq_ex_));
  }
  ibv_end_poll(cq_ex_);
}

TEST_F(CqExtended, ABatchMayEndBeforeTheLastCompletion) {
  Rule("CQ-07");
  Create(IBV_WC_STANDARD_FLAGS);
  MakeConnection(Side::kResponder);
  for (uint64_t id = 0; id < 6; ++id) Deliver(id, 10);
  for (uint64_t id = 0; id < 6; id += 2) {
    ASSERT_EQ(0, StartPoll());
    EXPECT_EQ(id, cq_ex_->wr_id);
    EXPECT_EQ(0, ibv_next_poll(cq_ex_));
    EXPECT_EQ(id + 1, cq_ex_->wr_id);
    ibv_end_poll(cq_ex_);
  }
  ibv_poll_cq_attr attr{};
  EXPECT_EQ(ENOENT, ibv_start_poll(cq_ex_, &attr));
}

TEST_F(CqExtended, PollingFreesReceivesForReposting) {
  Rule("CQ-07");
  Create(IBV_WC_STANDARD_FLAGS);
  MakeConnection(Side::kResponder);
  for (uint64_t id = 0; id < 200; ++id) {
    Deliver(id, 10);
    ASSERT_EQ(0, StartPoll());
    EXPECT_EQ(id, cq_ex_->wr_id);
    ibv_end_poll(cq_ex_);
  }
}

TEST_F(CqExtended, SendCompletionsTellTheirOperation) {
  Rule("CQ-07");
  Create(IBV_WC_STANDARD_FLAGS);
  MakeConnection(Side::kRequester);
  ASSERT_EQ(0, PostReceive(link_.responder.get(), 1, {sink_.Sge(0, 64)}));
  SendRequest read = Write(2, 100);
  read.opcode = IBV_WR_RDMA_READ;
  ASSERT_EQ(0, PostSend(link_.requester.get(), Write(1, 100)));
  ASSERT_EQ(0, PostSend(link_.requester.get(), read));
  ASSERT_EQ(0, PostSend(link_.requester.get(), {.wr_id = 3, .segments = {source_.Sge(0, 64)}}));
  constexpr ibv_wc_opcode kOpcodes[] = {IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ, IBV_WC_SEND};
  for (uint64_t id = 1; id <= 3; ++id) {
    ASSERT_EQ(0, StartPoll());
    EXPECT_EQ(id, cq_ex_->wr_id);
    EXPECT_EQ(IBV_WC_SUCCESS, cq_ex_->status);
    EXPECT_EQ(kOpcodes[id - 1], ibv_wc_read_opcode(cq_ex_));
    EXPECT_EQ(link_.requester->qp_num, ibv_wc_read_qp_num(cq_ex_));
    ibv_end_poll(cq_ex_);
  }
}

TEST_F(CqExtended, ErrorsShowTheirStatusAndRequest) {
  Rule("CE-14");
  Create(IBV_WC_STANDARD_FLAGS);
  MakeConnection(Side::kRequester);
  SendRequest write = Write(0xfeedface12345678, 8);
  write.rkey ^= 0x5500;
  ASSERT_EQ(0, PostSend(link_.requester.get(), write));
  ASSERT_EQ(0, StartPoll());
  EXPECT_EQ(0xfeedface12345678u, cq_ex_->wr_id);
  EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, cq_ex_->status);
  EXPECT_EQ(link_.requester->qp_num, ibv_wc_read_qp_num(cq_ex_));
  ibv_end_poll(cq_ex_);
}

TEST_F(CqExtended, FieldsThatWereNotAskedForHaveNoReader) {
  Rule("CQ-05");
  Create(0);
  EXPECT_NE(nullptr, cq_ex_->read_opcode);
  EXPECT_NE(nullptr, cq_ex_->read_vendor_err);
  EXPECT_NE(nullptr, cq_ex_->read_wc_flags);
  EXPECT_EQ(nullptr, cq_ex_->read_byte_len);
  EXPECT_EQ(nullptr, cq_ex_->read_imm_data);
  EXPECT_EQ(nullptr, cq_ex_->read_qp_num);
  EXPECT_EQ(nullptr, cq_ex_->read_completion_ts);
}

TEST_F(CqExtended, PlainPollWorksOnAnExtendedCq) {
  Rule("CQ-07");
  Create(IBV_WC_STANDARD_FLAGS);
  MakeConnection(Side::kResponder);
  Deliver(5, 77);
  const ibv_wc wc = PollOne(device_, cq_.get());
  EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
  EXPECT_EQ(5u, wc.wr_id);
  EXPECT_EQ(77u, wc.byte_len);
}

TEST_F(CqExtended, TimestampsIncreaseAndLieOnTheDeviceClock) {
  Create(uint64_t{IBV_WC_STANDARD_FLAGS} | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP);
  MakeConnection(Side::kRequester);
  const uint64_t before = device_.Ticks();
  constexpr uint64_t kWrites = 10;
  for (uint64_t id = 0; id < kWrites; ++id) {
    ASSERT_EQ(0, PostSend(link_.requester.get(), Write(id, 4096)));
  }
  uint64_t last = before;
  for (uint64_t id = 0; id < kWrites; ++id) {
    ASSERT_EQ(0, StartPoll());
    const uint64_t timestamp = ibv_wc_read_completion_ts(cq_ex_);
    EXPECT_EQ(id, cq_ex_->wr_id);
    EXPECT_GE(timestamp, last);
    last = timestamp;
    ibv_end_poll(cq_ex_);
  }
  EXPECT_LE(last, device_.Ticks());
  if (VirtualTime()) {
    EXPECT_GT(last, before) << "a model in which nothing takes time";
  }
  RecordProperty("ticks_of_ten_writes", std::to_string(last - before));
}

}  // namespace
}  // namespace simhca::conformance
