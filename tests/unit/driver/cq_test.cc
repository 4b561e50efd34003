#include <gtest/gtest.h>

#include <bit>
#include <cerrno>

#include "tests/unit/driver/fixture.h"

namespace simhca::driver {
namespace {

class CqTest : public DriverTest {
 protected:
  uint32_t Consumer(const ibv_cq* cq) {
    return FakeDevice::Record(device().cqs.at(cq->handle).doorbell_record, mlx5::kConsumerRecord);
  }
  // A send that completes at once.
  void SendAndComplete(ibv_qp* qp, ibv_cq* cq, uint64_t wr_id) {
    ibv_send_wr wr{};
    wr.wr_id = wr_id;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(qp, &wr, &bad), 0);
    device().WriteCqe(cq->handle, SendCqe(qp, block_++), mlx5::CqeOpcode::kRequester);
  }
  uint16_t block_ = 0;
};

TEST_F(CqTest, AnEntryThatIsThereIsTakenWithoutTheDevice) {
  ibv_cq* cq = MakeCq();
  ibv_qp* qp = MakeQp(cq);
  SendAndComplete(qp, cq, 5);
  const int polls = device().polls;
  const auto polled = Poll(cq);
  ASSERT_EQ(polled.size(), 1u);
  EXPECT_EQ(polled[0].wr_id, 5u);
  EXPECT_EQ(polled[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(polled[0].opcode, IBV_WC_SEND);
  EXPECT_EQ(device().polls, polls);
  EXPECT_EQ(Consumer(cq), 1u);
}

TEST_F(CqTest, AnEmptyPollRunsTheDeviceAndLooksAgain) {
  ibv_cq* cq = MakeCq();
  ibv_qp* qp = MakeQp(cq);
  EXPECT_TRUE(Poll(cq).empty());
  EXPECT_EQ(device().polls, 1);
  device().on_poll = [&] {
    device().on_poll = nullptr;
    SendAndComplete(qp, cq, 6);
  };
  EXPECT_EQ(Poll(cq).size(), 1u);
  EXPECT_EQ(device().polls, 2);
}

TEST_F(CqTest, EntriesAreRecognisedInEveryRoundOfTheRing) {
  ibv_cq* cq = MakeCq(4);
  ibv_qp* qp = MakeQp(cq);
  for (uint64_t id = 0; id < 50; ++id) {
    SendAndComplete(qp, cq, id);
    const auto polled = Poll(cq);
    ASSERT_EQ(polled.size(), 1u) << id;
    EXPECT_EQ(polled[0].wr_id, id);
    EXPECT_TRUE(Poll(cq).empty()) << id;
  }
  EXPECT_EQ(Consumer(cq), 50u);
}

TEST_F(CqTest, AskedForNothingItGivesNothing) {
  ibv_cq* cq = MakeCq();
  ibv_wc wc;
  EXPECT_EQ(ibv_poll_cq(cq, 0, &wc), 0);
  EXPECT_EQ(ibv_poll_cq(cq, -1, &wc), 0);
}

TEST_F(CqTest, ErrorsHaveStatusVendorErrorAndWrId) {
  ibv_cq* cq = MakeCq();
  ibv_srq* srq = MakeSrq(4);
  ibv_qp* qp = MakeQp(cq, srq);
  ASSERT_EQ(PostReceive(srq, 91), 0);
  device().WriteErrorCqe(cq->handle, ReceiveCqe(qp, srq, 0), mlx5::CqeOpcode::kResponderError,
                         mlx5::Syndrome::kLocalLength);
  const auto polled = Poll(cq);
  ASSERT_EQ(polled.size(), 1u);
  EXPECT_EQ(polled[0].status, IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(polled[0].vendor_err, 0x77u);
  EXPECT_EQ(polled[0].wr_id, 91u);
  EXPECT_EQ(polled[0].qp_num, qp->qp_num);
  EXPECT_NE(polled[0].opcode & IBV_WC_RECV, 0);
}

TEST_F(CqTest, EverySyndromeHasItsStatus) {
  ibv_cq* cq = MakeCq();
  ibv_qp* qp = MakeQp(cq);
  const std::pair<uint8_t, ibv_wc_status> cases[] = {
      {0x01, IBV_WC_LOC_LEN_ERR},    {0x02, IBV_WC_LOC_QP_OP_ERR},
      {0x04, IBV_WC_LOC_PROT_ERR},   {0x05, IBV_WC_WR_FLUSH_ERR},
      {0x06, IBV_WC_MW_BIND_ERR},    {0x10, IBV_WC_BAD_RESP_ERR},
      {0x11, IBV_WC_LOC_ACCESS_ERR}, {0x12, IBV_WC_REM_INV_REQ_ERR},
      {0x13, IBV_WC_REM_ACCESS_ERR}, {0x14, IBV_WC_REM_OP_ERR},
      {0x15, IBV_WC_RETRY_EXC_ERR},  {0x16, IBV_WC_RNR_RETRY_EXC_ERR},
      {0x22, IBV_WC_REM_ABORT_ERR},  {0x99, IBV_WC_GENERAL_ERR}};
  for (const auto& [syndrome, status] : cases) {
    device().WriteErrorCqe(cq->handle, SendCqe(qp, 0), mlx5::CqeOpcode::kRequesterError,
                           static_cast<mlx5::Syndrome>(syndrome));
    const auto polled = Poll(cq);
    ASSERT_EQ(polled.size(), 1u);
    EXPECT_EQ(polled[0].status, status) << int(syndrome);
  }
}

TEST_F(CqTest, ReceiveFlagsAndImmediateComeFromTheEntry) {
  ibv_cq* cq = MakeCq();
  ibv_srq* srq = MakeSrq(4);
  ibv_qp* qp = MakeQp(cq, srq);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(PostReceive(srq, i), 0);
  mlx5::Cqe cqe = ReceiveCqe(qp, srq, 0);
  cqe.immediate = 0x11223344;  // bytes as they came
  cqe.flags_rqpn = 1u << 28 | 0x4321;
  device().WriteCqe(cq->handle, cqe, mlx5::CqeOpcode::kResponderWriteImmediate);
  cqe = ReceiveCqe(qp, srq, 1);
  cqe.immediate = std::bit_cast<uint32_t>(Be32{0xabcd});
  device().WriteCqe(cq->handle, cqe, mlx5::CqeOpcode::kResponderSendInvalidate);
  const auto polled = Poll(cq);
  ASSERT_EQ(polled.size(), 2u);
  EXPECT_EQ(polled[0].opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(polled[0].wc_flags, unsigned{IBV_WC_WITH_IMM | IBV_WC_GRH});
  EXPECT_EQ(polled[0].imm_data, 0x11223344u);
  EXPECT_EQ(polled[0].src_qp, 0x4321u);
  EXPECT_EQ(polled[1].wc_flags, unsigned{IBV_WC_WITH_INV});
  EXPECT_EQ(polled[1].invalidated_rkey, 0xabcdu);
}

TEST_F(CqTest, DestroyingAQueuePairRemovesItsCompletionsAndKeepsTheOthers) {
  ibv_cq* cq = MakeCq(8);
  ibv_qp* doomed = MakeQp(cq);
  ibv_qp* kept = MakeQp(cq);
  // Advance so that the entries straddle the end of the ring.
  for (int i = 0; i < 6; ++i) {
    SendAndComplete(kept, cq, i);
    Poll(cq);
  }
  for (uint64_t id = 100; id < 105; ++id) {
    if (id % 2 == 0) {
      SendAndComplete(kept, cq, id);
    } else {
      device().WriteCqe(cq->handle, SendCqe(doomed, 0), mlx5::CqeOpcode::kRequester);
    }
  }
  ASSERT_EQ(DestroyQp(doomed), 0);
  auto polled = Poll(cq);
  ASSERT_EQ(polled.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(polled[i].wr_id, 100u + 2 * i);
  EXPECT_EQ(Consumer(cq), 11u);
  SendAndComplete(kept, cq, 200);
  polled = Poll(cq);
  ASSERT_EQ(polled.size(), 1u);
  EXPECT_EQ(polled[0].wr_id, 200u);
}

TEST_F(CqTest, ResizingKeepsTheEntriesThatWait) {
  ibv_cq* cq = MakeCq(4);
  ibv_qp* qp = MakeQp(cq);
  for (uint64_t id = 1; id <= 3; ++id) SendAndComplete(qp, cq, id);
  EXPECT_EQ(ResizeCq(cq, 2), EINVAL);
  EXPECT_EQ(cq->cqe, 4);
  EXPECT_EQ(ResizeCq(cq, 0), EINVAL);
  ASSERT_EQ(ResizeCq(cq, 100), 0);
  EXPECT_EQ(cq->cqe, 100);
  SendAndComplete(qp, cq, 4);
  const auto polled = Poll(cq);
  ASSERT_EQ(polled.size(), 4u);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(polled[i].wr_id, i + 1u);
}

TEST_F(CqTest, ArmWordsNameTheConsumerAndTheEventsFetched) {
  ibv_cq* cq = MakeCq();
  ibv_qp* qp = MakeQp(cq);
  SendAndComplete(qp, cq, 1);
  Poll(cq);
  ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
  EXPECT_EQ(device().arm_words.back(), 1u);
  ASSERT_EQ(ibv_req_notify_cq(cq, 1), 0);
  EXPECT_EQ(device().arm_words.back(), mlx5::kArmSolicitedOnly | 1u);
}

TEST_F(CqTest, SizesAndVectorsOutOfRangeAreRefused) {
  EXPECT_EQ(CreateCq(context_, 0, nullptr, nullptr, 0), nullptr);
  EXPECT_EQ(errno, EINVAL);
  const int max_cqe = static_cast<int>(device().profile().limits.max_cqe);
  EXPECT_EQ(CreateCq(context_, max_cqe + 1, nullptr, nullptr, 0), nullptr);
  EXPECT_EQ(CreateCq(context_, 1, nullptr, nullptr, context_->num_comp_vectors), nullptr);
  EXPECT_EQ(CreateCq(context_, 1, nullptr, nullptr, -1), nullptr);
  ibv_cq* cq = CreateCq(context_, max_cqe, nullptr, nullptr, context_->num_comp_vectors - 1);
  ASSERT_NE(cq, nullptr);
  EXPECT_EQ(cq->cqe, max_cqe);
}

TEST_F(CqTest, ExtendedPollingReadsOneEntryAfterTheOther) {
  ibv_cq_init_attr_ex attr{};
  attr.cqe = 16;
  attr.wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
  ibv_cq_ex* cq = ibv_create_cq_ex(context_, &attr);
  ASSERT_NE(cq, nullptr);
  EXPECT_TRUE(device().cqs.at(cq->handle).timestamps);
  EXPECT_EQ(cq->read_src_qp, nullptr);
  ASSERT_NE(cq->read_byte_len, nullptr);
  ibv_srq* srq = MakeSrq(4);
  ibv_qp* qp = MakeQp(ibv_cq_ex_to_cq(cq), srq);
  ibv_poll_cq_attr poll{};
  EXPECT_EQ(ibv_start_poll(cq, &poll), ENOENT);
  for (uint16_t i = 0; i < 2; ++i) {
    ASSERT_EQ(PostReceive(srq, 10 + i), 0);
    mlx5::Cqe cqe = ReceiveCqe(qp, srq, i, 100 + i);
    cqe.timestamp = 1000 + i;
    device().WriteCqe(cq->handle, cqe, mlx5::CqeOpcode::kResponderSend);
  }
  ASSERT_EQ(ibv_start_poll(cq, &poll), 0);
  EXPECT_EQ(cq->wr_id, 10u);
  EXPECT_EQ(cq->status, IBV_WC_SUCCESS);
  EXPECT_EQ(ibv_wc_read_opcode(cq), IBV_WC_RECV);
  EXPECT_EQ(ibv_wc_read_byte_len(cq), 100u);
  EXPECT_EQ(ibv_wc_read_completion_ts(cq), 1000u);
  ASSERT_EQ(ibv_next_poll(cq), 0);
  EXPECT_EQ(cq->wr_id, 11u);
  EXPECT_EQ(ibv_wc_read_byte_len(cq), 101u);
  EXPECT_EQ(Consumer(ibv_cq_ex_to_cq(cq)), 0u);  // entries are read until end_poll
  EXPECT_EQ(ibv_next_poll(cq), ENOENT);
  ibv_end_poll(cq);
  EXPECT_EQ(Consumer(ibv_cq_ex_to_cq(cq)), 2u);
  poll.comp_mask = 1;
  EXPECT_EQ(ibv_start_poll(cq, &poll), EINVAL);
}

TEST_F(CqTest, UnknownExtensionsAreRefused) {
  ibv_cq_init_attr_ex attr{};
  attr.cqe = 16;
  attr.comp_mask = 1u << 20;
  EXPECT_EQ(ibv_create_cq_ex(context_, &attr), nullptr);
  EXPECT_EQ(errno, EINVAL);
  attr.comp_mask = 0;
  attr.wc_flags = IBV_WC_EX_WITH_TM_INFO;
  EXPECT_EQ(ibv_create_cq_ex(context_, &attr), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

class ConnectXCqTest : public ConnectXDriverTest {};

TEST_F(ConnectXCqTest, SizesAreRoundedAsByTheMlx5Driver) {
  EXPECT_EQ(MakeCq(1)->cqe, 1);
  EXPECT_EQ(MakeCq(10)->cqe, 15);
  EXPECT_EQ(MakeCq(16)->cqe, 31);
}

}  // namespace
}  // namespace simhca::driver
