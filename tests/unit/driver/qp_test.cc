#include "verbs_shim/driver/qp.h"

#include <gtest/gtest.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <string>

#include "tests/unit/driver/fixture.h"
#include "verbs_shim/driver/log.h"

namespace simhca::driver {
namespace {

// Copies the WQE that starts at a block out of the ring, so that wrapping does not matter.
struct Wqe {
  alignas(16) std::byte bytes[1024];

  const mlx5::ControlSegment& control() const { return At<mlx5::ControlSegment>(0); }
  template <typename Segment>
  const Segment& At(size_t unit) const {
    return *reinterpret_cast<const Segment*>(bytes + unit * 16);
  }
};

class QpTest : public DriverTest {
 protected:
  explicit QpTest(Simulated which = kGeneric) : DriverTest(which) { cq_ = MakeCq(256); }

  const CreateQpCommand& Command(const ibv_qp* qp) { return device().qps.at(qp->qp_num); }
  Wqe Read(const ibv_qp* qp, uint32_t block) {
    Wqe wqe;
    const CreateQpCommand& command = Command(qp);
    for (uint32_t i = 0; i < sizeof(wqe.bytes) / 64; ++i) {
      std::memcpy(wqe.bytes + i * 64,
                  command.send_ring + ((block + i) & (command.send_blocks - 1)) * 64, 64);
    }
    return wqe;
  }
  uint32_t SendRecord(const ibv_qp* qp) {
    return FakeDevice::Record(Command(qp).doorbell_record, mlx5::kSendRecord);
  }
  uint32_t ReceiveRecord(const ibv_qp* qp) {
    return FakeDevice::Record(Command(qp).doorbell_record, mlx5::kReceiveRecord);
  }
  ibv_send_wr Send(uint64_t wr_id, unsigned flags = IBV_SEND_SIGNALED) {
    ibv_send_wr wr{};
    wr.wr_id = wr_id;
    wr.sg_list = &sge_;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = flags;
    return wr;
  }
  int Post(ibv_qp* qp, ibv_send_wr wr) {
    ibv_send_wr* bad = nullptr;
    const int error = ibv_post_send(qp, &wr, &bad);
    EXPECT_EQ(bad != nullptr, error != 0);
    return error;
  }

  ibv_cq* cq_;
};

TEST_F(QpTest, ASendIsAControlAndADataSegment) {
  ibv_qp* qp = MakeQp(cq_);
  ASSERT_EQ(Post(qp, Send(1, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_FENCE)), 0);
  const Wqe wqe = Read(qp, 0);
  EXPECT_EQ(wqe.control().opcode(), mlx5::WqeOpcode::kSend);
  EXPECT_EQ(wqe.control().block_index(), 0);
  EXPECT_EQ(wqe.control().qpn_ds >> 8, qp->qp_num);
  EXPECT_EQ(wqe.control().size_units(), 2u);
  EXPECT_EQ(wqe.control().fm_ce_se, mlx5::kCompletionOnSuccess | mlx5::kSolicited | mlx5::kFence);
  EXPECT_EQ(wqe.At<mlx5::DataSegment>(1).address, sge_.addr);
  EXPECT_EQ(wqe.At<mlx5::DataSegment>(1).byte_count, sge_.length);
  EXPECT_EQ(wqe.At<mlx5::DataSegment>(1).lkey, sge_.lkey);
  EXPECT_EQ(SendRecord(qp), 1u);
}

TEST_F(QpTest, AWriteHasTheRemoteAddressAndTheImmediateAsGiven) {
  ibv_qp* qp = MakeQp(cq_);
  ibv_send_wr wr = Send(1, 0);
  wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  wr.imm_data = 0x04030201;
  wr.wr.rdma = {.remote_addr = 0x123456789abcdef0, .rkey = 0x77};
  ASSERT_EQ(Post(qp, wr), 0);
  const Wqe wqe = Read(qp, 0);
  EXPECT_EQ(wqe.control().opcode(), mlx5::WqeOpcode::kRdmaWriteImmediate);
  EXPECT_EQ(wqe.control().immediate, 0x04030201u);
  EXPECT_FALSE(wqe.control().has(mlx5::kCompletionOnSuccess));
  EXPECT_EQ(wqe.control().size_units(), 3u);
  EXPECT_EQ(wqe.At<mlx5::RemoteAddressSegment>(1).address, 0x123456789abcdef0u);
  EXPECT_EQ(wqe.At<mlx5::RemoteAddressSegment>(1).rkey, 0x77u);
}

TEST_F(QpTest, AnAtomicHasItsOperandsInTheRightOrder) {
  ibv_qp* qp = MakeQp(cq_);
  ibv_send_wr wr = Send(1);
  wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
  wr.wr.atomic = {.remote_addr = 0x1000, .compare_add = 11, .swap = 22, .rkey = 5};
  ASSERT_EQ(Post(qp, wr), 0);
  const Wqe wqe = Read(qp, 0);
  EXPECT_EQ(wqe.At<mlx5::AtomicSegment>(2).swap_add, 22u);
  EXPECT_EQ(wqe.At<mlx5::AtomicSegment>(2).compare, 11u);
  EXPECT_EQ(wqe.At<mlx5::DataSegment>(3).byte_count, 8u);
  wr.wr.atomic.remote_addr = 0x1001;
  EXPECT_EQ(Post(qp, wr), EINVAL);
}

TEST_F(QpTest, InlineBytesAreInTheWqeAcrossTheEndOfTheRing) {
  QpRequest request;
  request.cap.max_inline_data = 400;
  request.cap.max_send_wr = 4;
  ibv_qp* qp = MakeQp(cq_, nullptr, request);
  std::string text(400, '?');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % 26);
  ibv_sge pieces[2] = {{reinterpret_cast<uintptr_t>(text.data()), 150, 0},
                       {reinterpret_cast<uintptr_t>(text.data()) + 150, 250, 0}};
  ibv_send_wr wr = Send(1, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
  wr.sg_list = pieces;
  wr.num_sge = 2;
  const uint32_t blocks = Command(qp).send_blocks;
  uint32_t block = 0;
  bool wrapped = false;
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(Post(qp, wr), 0);
    const Wqe wqe = Read(qp, block);
    EXPECT_EQ(wqe.control().block_index(), block);
    EXPECT_EQ(wqe.At<Be32>(1), 400u | mlx5::kInlineFlag);
    EXPECT_EQ(std::memcmp(wqe.bytes + 20, text.data(), text.size()), 0);
    EXPECT_EQ(wqe.control().size_units(), 1 + (4 + 400 + 15) / 16u);
    const uint32_t used = (wqe.control().size_units() + 3) / 4;
    wrapped |= block / blocks != (block + used - 1) / blocks;
    device().WriteCqe(cq_->handle, SendCqe(qp, static_cast<uint16_t>(block)),
                      mlx5::CqeOpcode::kRequester);
    ASSERT_EQ(Poll(cq_).size(), 1u);
    block += used;
  }
  EXPECT_TRUE(wrapped);
}

TEST_F(QpTest, ExactlyMaxSendWrAreAcceptedUntilACompletionIsPolled) {
  ibv_qp* qp = MakeQp(cq_);
  for (uint64_t id = 0; id < 8; ++id) ASSERT_EQ(Post(qp, Send(id, 0)), 0);
  EXPECT_EQ(Post(qp, Send(8)), ENOMEM);
  // One signalled completion frees all before it.
  device().WriteCqe(cq_->handle, SendCqe(qp, 5), mlx5::CqeOpcode::kRequester);
  EXPECT_EQ(Post(qp, Send(8)), ENOMEM);
  const auto polled = Poll(cq_);
  ASSERT_EQ(polled.size(), 1u);
  EXPECT_EQ(polled[0].wr_id, 5u);
  for (uint64_t id = 8; id < 14; ++id) ASSERT_EQ(Post(qp, Send(id, 0)), 0);
  EXPECT_EQ(Post(qp, Send(14)), ENOMEM);
}

TEST_F(QpTest, OneDoorbellForAList) {
  ibv_qp* qp = MakeQp(cq_);
  ibv_send_wr third = Send(3), second = Send(2), first = Send(1);
  first.next = &second;
  second.next = &third;
  third.num_sge = 3;
  const int before = device().doorbells;
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_send(qp, &first, &bad), EINVAL);
  EXPECT_EQ(bad, &third);
  EXPECT_EQ(device().doorbells, before + 1);
  EXPECT_EQ(SendRecord(qp), 2u);
  EXPECT_EQ(Post(qp, third), EINVAL);
  EXPECT_EQ(device().doorbells, before + 1);
}

TEST_F(QpTest, BadWorkRequestsAreRefused) {
  ibv_qp* qp = MakeQp(cq_);
  ibv_send_wr wr = Send(1);
  wr.opcode = static_cast<ibv_wr_opcode>(77);
  EXPECT_EQ(Post(qp, wr), EINVAL);
  wr.opcode = IBV_WR_LOCAL_INV;
  EXPECT_EQ(Post(qp, wr), EOPNOTSUPP);
  wr = Send(1, IBV_SEND_INLINE);
  EXPECT_EQ(Post(qp, wr), EINVAL);  // 100 bytes, 64 are granted
  sge_.length = 64;
  EXPECT_EQ(Post(qp, wr), 0);
  wr.opcode = IBV_WR_RDMA_READ;
  EXPECT_EQ(Post(qp, wr), EINVAL);
}

TEST_F(QpTest, StatesDecideWhatMayBePosted) {
  ibv_qp* qp = MakeQp(cq_);
  ibv_recv_wr receive{.wr_id = 1, .next = nullptr, .sg_list = &sge_, .num_sge = 1};
  ibv_recv_wr* bad = nullptr;
  struct Case {
    ibv_qp_state state;
    int send, receive;
  };
  for (const Case& c : {Case{IBV_QPS_RESET, EINVAL, EINVAL}, Case{IBV_QPS_INIT, EINVAL, 0},
                        Case{IBV_QPS_RTR, EINVAL, 0}, Case{IBV_QPS_RTS, 0, 0},
                        Case{IBV_QPS_SQD, 0, 0}, Case{IBV_QPS_ERR, 0, 0}}) {
    Move(qp, c.state);
    EXPECT_EQ(Post(qp, Send(1)), c.send) << c.state;
    EXPECT_EQ(ibv_post_recv(qp, &receive, &bad), c.receive) << c.state;
  }
}

TEST_F(QpTest, AnAttributeThatIsTooLargeDoesNotBecomeASmallOne) {
  ibv_qp* qp = MakeQp(MakeCq());
  ibv_qp_attr attr{};
  const uint32_t number = 0x100 + IBV_MTU_1024;
  std::memcpy(&attr.path_mtu, &number, sizeof number);
  ASSERT_EQ(ModifyQp(qp, &attr, IBV_QP_PATH_MTU), 0) << "the device decides";
  EXPECT_GT(device().qp_changes.back().attributes.path_mtu, IBV_MTU_4096);
}

TEST_F(QpTest, AResetEmptiesTheQueues) {
  ibv_qp* qp = MakeQp(cq_);
  ibv_recv_wr receive{.wr_id = 1, .next = nullptr, .sg_list = &sge_, .num_sge = 1};
  ibv_recv_wr* bad = nullptr;
  for (uint64_t id = 0; id < 8; ++id) {
    ASSERT_EQ(Post(qp, Send(id)), 0);
    ASSERT_EQ(ibv_post_recv(qp, &receive, &bad), 0);
  }
  EXPECT_EQ(ibv_post_recv(qp, &receive, &bad), ENOMEM);
  EXPECT_EQ(ReceiveRecord(qp), 8u);
  device().WriteCqe(cq_->handle, SendCqe(qp, 0), mlx5::CqeOpcode::kRequester);
  Move(qp, IBV_QPS_RESET);
  EXPECT_TRUE(Poll(cq_).empty());
  EXPECT_EQ(SendRecord(qp), 0u);
  EXPECT_EQ(ReceiveRecord(qp), 0u);
  Move(qp, IBV_QPS_RTS);
  for (uint64_t id = 0; id < 8; ++id) ASSERT_EQ(Post(qp, Send(id)), 0);
}

TEST_F(QpTest, ReceivesOfAQueuePairSkipEmptySegments) {
  ibv_qp* qp = MakeQp(cq_);
  ibv_sge sges[2] = {{.addr = 1, .length = 0, .lkey = 9}, sge_};
  ibv_recv_wr wr{.wr_id = 21, .next = nullptr, .sg_list = sges, .num_sge = 2};
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_recv(qp, &wr, &bad), 0);
  const auto* segments = reinterpret_cast<const mlx5::DataSegment*>(Command(qp).receive_ring);
  EXPECT_EQ(segments[0].address, sge_.addr);
  EXPECT_TRUE(segments[1].terminates());
  device().WriteCqe(cq_->handle, ReceiveCqe(qp, nullptr, 0, 5), mlx5::CqeOpcode::kResponderSend);
  const auto polled = Poll(cq_);
  ASSERT_EQ(polled.size(), 1u);
  EXPECT_EQ(polled[0].wr_id, 21u);
  wr.num_sge = 3;
  EXPECT_EQ(ibv_post_recv(qp, &wr, &bad), EINVAL);
}

TEST_F(QpTest, WithAnSrqThereAreNoReceivesOfItsOwn) {
  ibv_srq* srq = MakeSrq(4);
  ibv_qp* qp = MakeQp(cq_, srq);
  EXPECT_EQ(Command(qp).srq, srq->handle);
  EXPECT_EQ(Command(qp).receive_entries, 0u);
  ibv_qp_attr attr;
  ibv_qp_init_attr init;
  ASSERT_EQ(QueryQp(qp, &attr, 0, &init), 0);
  EXPECT_EQ(init.srq, srq);
  EXPECT_EQ(init.cap.max_recv_wr, 0u);
  EXPECT_EQ(init.cap.max_recv_sge, 0u);
  ibv_recv_wr wr{.wr_id = 1, .next = nullptr, .sg_list = &sge_, .num_sge = 1};
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_recv(qp, &wr, &bad), EINVAL);
  EXPECT_EQ(bad, &wr);
}

TEST_F(QpTest, CreationChecksItsParts) {
  ibv_qp_init_attr attr{};
  attr.qp_type = IBV_QPT_RC;
  attr.cap = QpRequest{}.cap;
  attr.send_cq = cq_;
  EXPECT_EQ(CreateQp(pd_, &attr), nullptr);
  EXPECT_EQ(errno, EINVAL);
  attr.recv_cq = cq_;
  attr.cap.max_send_wr = device().profile().limits.max_qp_wr + 1;
  EXPECT_EQ(CreateQp(pd_, &attr), nullptr);
  EXPECT_EQ(errno, EINVAL);
  attr.cap.max_send_wr = 1;
  attr.qp_type = static_cast<ibv_qp_type>(55);
  EXPECT_EQ(CreateQp(pd_, &attr), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(QpTest, WithoutSendOpsThereIsNoExtendedQueuePair) {
  EXPECT_EQ(QpToQpEx(MakeQp(cq_)), nullptr);
}

class WrFunctionsTest : public QpTest {
 protected:
  WrFunctionsTest() {
    ibv_qp_init_attr_ex attr{};
    attr.send_cq = attr.recv_cq = cq_;
    attr.cap = QpRequest{}.cap;
    attr.qp_type = IBV_QPT_RC;
    attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr.pd = pd_;
    attr.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE;
    qp_ = CreateQpEx(context_, &attr);
    Move(qp_, IBV_QPS_RTS);
    ex_ = QpToQpEx(qp_);
    before_ = device().doorbells;
  }
  ibv_qp* qp_;
  ibv_qp_ex* ex_;
  int before_;
};

TEST_F(WrFunctionsTest, ABatchIsPostedByComplete) {
  ibv_wr_start(ex_);
  ex_->wr_id = 1;
  ex_->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send(ex_);
  ibv_wr_set_sge(ex_, 5, 0x1000, 10);
  ex_->wr_id = 2;
  ibv_wr_rdma_write(ex_, 9, 0x2000);
  ibv_wr_set_inline_data(ex_, const_cast<char*>("hello"), 5);
  EXPECT_EQ(SendRecord(qp_), 0u);
  ASSERT_EQ(ibv_wr_complete(ex_), 0);
  EXPECT_EQ(device().doorbells, before_ + 1);
  EXPECT_EQ(SendRecord(qp_), 2u);
  const Wqe send = Read(qp_, 0), write = Read(qp_, 1);
  EXPECT_EQ(send.control().size_units(), 2u);
  EXPECT_EQ(send.At<mlx5::DataSegment>(1).byte_count, 10u);
  EXPECT_TRUE(send.control().has(mlx5::kCompletionOnSuccess));
  EXPECT_EQ(write.At<mlx5::RemoteAddressSegment>(1).rkey, 9u);
  EXPECT_EQ(std::memcmp(write.bytes + 36, "hello", 5), 0);
  device().WriteCqe(cq_->handle, SendCqe(qp_, 1), mlx5::CqeOpcode::kRequester);
  const auto polled = Poll(cq_);
  ASSERT_EQ(polled.size(), 1u);
  EXPECT_EQ(polled[0].wr_id, 2u);
}

TEST_F(WrFunctionsTest, AnErrorUndoesTheWholeBatch) {
  char big[100];
  ibv_wr_start(ex_);
  ibv_wr_send(ex_);
  ibv_wr_set_sge(ex_, 5, 0x1000, 10);
  ibv_wr_send(ex_);
  ibv_wr_set_inline_data(ex_, big, sizeof(big));
  ibv_wr_send(ex_);
  ibv_wr_set_sge(ex_, 5, 0x1000, 10);
  EXPECT_EQ(ibv_wr_complete(ex_), EINVAL);
  EXPECT_EQ(device().doorbells, before_);
  EXPECT_EQ(SendRecord(qp_), 0u);
  for (uint64_t id = 0; id < 8; ++id) ASSERT_EQ(Post(qp_, Send(id)), 0);
}

TEST_F(WrFunctionsTest, AbortForgetsTheBatch) {
  ibv_wr_start(ex_);
  ibv_wr_send(ex_);
  ibv_wr_set_sge(ex_, 5, 0x1000, 10);
  ibv_wr_abort(ex_);
  EXPECT_EQ(device().doorbells, before_);
  ASSERT_EQ(Post(qp_, Send(1)), 0);
  EXPECT_EQ(Read(qp_, 0).control().block_index(), 0);
}

TEST_F(WrFunctionsTest, TooManyInABatchAreNoMemory) {
  ibv_wr_start(ex_);
  for (int i = 0; i < 9; ++i) {
    ibv_wr_send(ex_);
    ibv_wr_set_sge(ex_, 5, 0x1000, 10);
  }
  EXPECT_EQ(ibv_wr_complete(ex_), ENOMEM);
}

TEST_F(WrFunctionsTest, OperationsThatWereNotAskedForAreRefused) {
  ibv_wr_start(ex_);
  ibv_wr_rdma_read(ex_, 1, 2);
  ibv_wr_set_sge(ex_, 5, 0x1000, 10);
  EXPECT_EQ(ibv_wr_complete(ex_), EINVAL);
  ibv_wr_start(ex_);
  ibv_wr_local_inv(ex_, 1);
  EXPECT_EQ(ibv_wr_complete(ex_), EOPNOTSUPP);
}

TEST_F(WrFunctionsTest, BeforeRtsNothingCanBePosted) {
  Move(qp_, IBV_QPS_RTR);
  ibv_wr_start(ex_);
  ibv_wr_send(ex_);
  ibv_wr_set_sge(ex_, 5, 0x1000, 10);
  EXPECT_EQ(ibv_wr_complete(ex_), EINVAL);
}

class ConnectXQpTest : public QpTest {
 protected:
  ConnectXQpTest() : QpTest(kConnectX) {}
};

TEST_F(ConnectXQpTest, SizesAreThoseOfTheMlx5Driver) {
  ibv_qp_init_attr attr{};
  attr.send_cq = attr.recv_cq = cq_;
  attr.qp_type = IBV_QPT_RC;
  attr.cap = {.max_send_wr = 10,
              .max_recv_wr = 1,
              .max_send_sge = 1,
              .max_recv_sge = 1,
              .max_inline_data = 100};
  ibv_qp* qp = CreateQp(pd_, &attr);
  ASSERT_NE(qp, nullptr);
  // 192 bytes before the data and 112 of it: WQEs of 320 bytes, a ring of 4096.
  EXPECT_EQ(attr.cap.max_send_wr, 12u);
  EXPECT_EQ(attr.cap.max_inline_data, 124u);
  EXPECT_EQ(Command(qp).send_blocks, 64u);
  EXPECT_EQ(attr.cap.max_recv_wr, 4u);
  EXPECT_EQ(attr.cap.max_recv_sge, 1u);
}

class RnrTimerWarningTest : public QpTest {
 protected:
  static constexpr int kMask = IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER;

  ~RnrTimerWarningTest() override { log_level = LogLevel::kError; }

  // What a move to RTR with this timer writes to the log.
  std::string LogOf(uint8_t min_rnr_timer, int mask = kMask) {
    ibv_qp* qp = MakeQp(cq_);
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTR;
    attr.min_rnr_timer = min_rnr_timer;
    testing::internal::CaptureStderr();
    EXPECT_EQ(ModifyQp(qp, &attr, mask), 0);
    return testing::internal::GetCapturedStderr();
  }
};

TEST_F(RnrTimerWarningTest, TheLongestTimerIsReportedOnceAndOnlyInTheLogOfWarnings) {
  EXPECT_EQ(LogOf(0), "");
  log_level = LogLevel::kWarn;
  EXPECT_EQ(LogOf(1), "");
  EXPECT_EQ(LogOf(0, IBV_QP_STATE), "") << "the timer was not given";
  const std::string line = LogOf(0);
  EXPECT_NE(line.find("min_rnr_timer 0 means 655 ms"), std::string::npos) << line;
  EXPECT_EQ(line.find('\n'), line.size() - 1) << "one line";
  EXPECT_EQ(LogOf(0), "") << "said before";
}

}  // namespace
}  // namespace simhca::driver
