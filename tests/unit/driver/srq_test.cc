#include <gtest/gtest.h>

#include <cerrno>

#include "tests/unit/driver/fixture.h"

namespace simhca::driver {
namespace {

class SrqTest : public DriverTest {
 protected:
  const CreateSrqCommand& Command(const ibv_srq* srq) { return device().srqs.at(srq->handle); }
  uint16_t Posted(const ibv_srq* srq) {
    return static_cast<uint16_t>(FakeDevice::Record(Command(srq).doorbell_record, 0));
  }
  const mlx5::DataSegment* Segments(const ibv_srq* srq, uint32_t index) {
    return reinterpret_cast<const mlx5::DataSegment*>(
        Command(srq).ring + index * Command(srq).stride + sizeof(mlx5::SrqNextSegment));
  }
};

TEST_F(SrqTest, ExactlyMaxWrCanBePosted) {
  ibv_srq_init_attr attr{};
  attr.attr = {.max_wr = 10, .max_sge = 3, .srq_limit = 7};
  ibv_srq* srq = CreateSrq(pd_, &attr);
  ASSERT_NE(srq, nullptr);
  EXPECT_EQ(attr.attr.max_wr, 10u);
  EXPECT_EQ(attr.attr.max_sge, 3u);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(PostReceive(srq, i), 0);
  EXPECT_EQ(PostReceive(srq, 10), ENOMEM);
  EXPECT_EQ(Posted(srq), 10);
  ibv_srq_attr answer;
  ASSERT_EQ(QuerySrq(srq, &answer), 0);
  EXPECT_EQ(answer.max_wr, 10u);
  EXPECT_EQ(answer.max_sge, 3u);
}

TEST_F(SrqTest, AnEntryIsFreeOnlyWhenItsCompletionIsPolled) {
  ibv_cq* cq = MakeCq();
  ibv_srq* srq = MakeSrq(2);
  ibv_qp* qp = MakeQp(cq, srq);
  ASSERT_EQ(PostReceive(srq, 41), 0);
  ASSERT_EQ(PostReceive(srq, 42), 0);
  device().WriteCqe(cq->handle, ReceiveCqe(qp, srq, 0, 77), mlx5::CqeOpcode::kResponderSend);
  EXPECT_EQ(PostReceive(srq, 43), ENOMEM);
  const auto polled = Poll(cq);
  ASSERT_EQ(polled.size(), 1u);
  EXPECT_EQ(polled[0].wr_id, 41u);
  EXPECT_EQ(polled[0].byte_len, 77u);
  EXPECT_EQ(polled[0].qp_num, qp->qp_num);
  EXPECT_EQ(polled[0].opcode, IBV_WC_RECV);
  EXPECT_EQ(PostReceive(srq, 43), 0);
  EXPECT_EQ(PostReceive(srq, 44), ENOMEM);
}

TEST_F(SrqTest, ShortScatterListsEndWithATerminator) {
  ibv_srq* srq = MakeSrq(4, 3);
  ibv_sge sges[2] = {{.addr = 0x1000, .length = 16, .lkey = 5},
                     {.addr = 0x2000, .length = 0, .lkey = 6}};
  ibv_recv_wr wr{.wr_id = 1, .next = nullptr, .sg_list = sges, .num_sge = 2};
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_srq_recv(srq, &wr, &bad), 0);
  const mlx5::DataSegment* segments = Segments(srq, 0);
  EXPECT_EQ(segments[0].address, 0x1000u);
  EXPECT_EQ(segments[0].byte_count, 16u);
  EXPECT_EQ(segments[0].lkey, 5u);
  EXPECT_EQ(segments[1].lkey, 6u);
  EXPECT_TRUE(segments[2].terminates());
}

TEST_F(SrqTest, AListStopsAtTheFirstBadWorkRequest) {
  ibv_srq* srq = MakeSrq(8, 1);
  ibv_sge sges[2] = {sge_, sge_};
  ibv_recv_wr third{.wr_id = 3, .next = nullptr, .sg_list = sges, .num_sge = 1};
  ibv_recv_wr second{.wr_id = 2, .next = &third, .sg_list = sges, .num_sge = 2};
  ibv_recv_wr first{.wr_id = 1, .next = &second, .sg_list = sges, .num_sge = 1};
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_srq_recv(srq, &first, &bad), EINVAL);
  EXPECT_EQ(bad, &second);
  EXPECT_EQ(Posted(srq), 1);
}

TEST_F(SrqTest, AListThatLoopsEndsWhenTheQueueIsFull) {
  ibv_srq* srq = MakeSrq(5);
  ibv_recv_wr second{.wr_id = 2, .next = nullptr, .sg_list = &sge_, .num_sge = 1};
  ibv_recv_wr first{.wr_id = 1, .next = &second, .sg_list = &sge_, .num_sge = 1};
  second.next = &first;
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_srq_recv(srq, &first, &bad), ENOMEM);
  EXPECT_EQ(bad, &second);
  EXPECT_EQ(Posted(srq), 5);
}

TEST_F(SrqTest, GrowingKeepsWhatIsPostedAndAddsRoom) {
  ibv_cq* cq = MakeCq();
  ibv_srq* srq = MakeSrq(3);
  ibv_qp* qp = MakeQp(cq, srq);
  for (uint64_t id = 0; id < 3; ++id) ASSERT_EQ(PostReceive(srq, id), 0);
  ibv_srq_attr attr{.max_wr = 20, .max_sge = 0, .srq_limit = 5};
  ASSERT_EQ(ModifySrq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0);
  const ModifySrqCommand& change = device().srq_changes.back();
  EXPECT_TRUE(change.resize);
  EXPECT_TRUE(change.set_limit);
  EXPECT_EQ(change.limit, 5u);
  EXPECT_EQ(change.capacity, 20u);
  EXPECT_EQ(change.entries, 32u);
  EXPECT_NE(change.ring, Command(srq).ring);
  // Entry 1 has moved with its contents.
  const auto* moved = reinterpret_cast<const mlx5::DataSegment*>(change.ring + Command(srq).stride +
                                                                 sizeof(mlx5::SrqNextSegment));
  EXPECT_EQ(moved->lkey, sge_.lkey);
  for (uint64_t id = 3; id < 20; ++id) ASSERT_EQ(PostReceive(srq, id), 0) << id;
  EXPECT_EQ(PostReceive(srq, 20), ENOMEM);
  device().WriteCqe(cq->handle, ReceiveCqe(qp, srq, 1), mlx5::CqeOpcode::kResponderSend);
  const auto polled = Poll(cq);
  ASSERT_EQ(polled.size(), 1u);
  EXPECT_EQ(polled[0].wr_id, 1u);
}

TEST_F(SrqTest, ARefusedChangeChangesNothing) {
  ibv_srq* srq = MakeSrq(4);
  device().next_error = EINVAL;
  ibv_srq_attr attr{.max_wr = 100, .max_sge = 0, .srq_limit = 99};
  EXPECT_EQ(ModifySrq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
  ibv_srq_attr answer;
  ASSERT_EQ(QuerySrq(srq, &answer), 0);
  EXPECT_EQ(answer.max_wr, 4u);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(PostReceive(srq, i), 0);
  EXPECT_EQ(PostReceive(srq, 4), ENOMEM);
}

TEST_F(SrqTest, ShrinkingOnlyLowersTheCapacity) {
  ibv_srq* srq = MakeSrq(10);
  ibv_srq_attr attr{.max_wr = 2, .max_sge = 0, .srq_limit = 0};
  ASSERT_EQ(ModifySrq(srq, &attr, IBV_SRQ_MAX_WR), 0);
  EXPECT_EQ(device().srq_changes.back().ring, Command(srq).ring);
  EXPECT_EQ(device().srq_changes.back().capacity, 2u);
  EXPECT_EQ(PostReceive(srq, 1), 0);
  EXPECT_EQ(PostReceive(srq, 2), 0);
  EXPECT_EQ(PostReceive(srq, 3), ENOMEM);
}

TEST_F(SrqTest, AClaimedEntryComesBackWhenItsQueuePairGoes) {
  ibv_cq* cq = MakeCq();
  ibv_srq* srq = MakeSrq(1);
  ibv_qp* qp = MakeQp(cq, srq);
  ASSERT_EQ(PostReceive(srq, 1), 0);
  device().released = {.any = true, .index = 0};
  ASSERT_EQ(DestroyQp(qp), 0);
  EXPECT_EQ(PostReceive(srq, 2), 0);
}

TEST_F(SrqTest, CompletionsOfADestroyedQueuePairGiveTheirEntriesBack) {
  ibv_cq* cq = MakeCq();
  ibv_srq* srq = MakeSrq(2);
  ibv_qp* doomed = MakeQp(cq, srq);
  ibv_qp* other = MakeQp(cq, srq);
  ASSERT_EQ(PostReceive(srq, 1), 0);
  ASSERT_EQ(PostReceive(srq, 2), 0);
  device().WriteCqe(cq->handle, ReceiveCqe(doomed, srq, 0), mlx5::CqeOpcode::kResponderSend);
  device().WriteCqe(cq->handle, ReceiveCqe(other, srq, 1), mlx5::CqeOpcode::kResponderSend);
  ASSERT_EQ(DestroyQp(doomed), 0);
  EXPECT_EQ(PostReceive(srq, 3), 0);
  const auto polled = Poll(cq);
  ASSERT_EQ(polled.size(), 1u);
  EXPECT_EQ(polled[0].wr_id, 2u);
}

TEST_F(SrqTest, AfterACatastrophicErrorItTakesNothing) {
  ibv_srq* srq = MakeSrq(4);
  ASSERT_EQ(PostReceive(srq, 1), 0);
  device().RaiseEvent(mlx5::EventType::kSrqCatastrophic, srq->handle);
  EXPECT_EQ(PostReceive(srq, 2), EINVAL);
  EXPECT_EQ(DestroySrq(srq), 0);
}

TEST_F(SrqTest, AFailedSrqIsNeitherModifiedNorQueried) {
  ibv_srq* srq = MakeSrq(4);
  device().RaiseEvent(mlx5::EventType::kSrqCatastrophic, srq->handle);
  const size_t changes = device().srq_changes.size();
  ibv_srq_attr attr{.max_wr = 4, .max_sge = 1, .srq_limit = 1};
  EXPECT_EQ(ModifySrq(srq, &attr, IBV_SRQ_LIMIT), EINVAL);
  EXPECT_EQ(QuerySrq(srq, &attr), EINVAL);
  EXPECT_EQ(device().srq_changes.size(), changes);
  EXPECT_EQ(DestroySrq(srq), 0);
}

TEST_F(SrqTest, SizesBeyondTheDeviceAreRefused) {
  const auto& limits = device().profile().limits;
  EXPECT_EQ(MakeSrq(limits.max_srq_wr + 1), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(MakeSrq(1, limits.max_srq_sge + 1), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_NE(MakeSrq(limits.max_srq_wr, limits.max_srq_sge), nullptr);
}

class ConnectXSrqTest : public ConnectXDriverTest {};

TEST_F(ConnectXSrqTest, SizesAreThoseOfTheMlx5Driver) {
  struct Case {
    uint32_t max_wr, max_sge, created_wr, created_sge, queried_wr, max_limit;
  };
  for (const Case& c :
       {Case{10, 1, 15, 1, 31, 31}, Case{255, 2, 255, 3, 511, 511},
        Case{256, 4, 511, 7, 1023, 1023}, Case{32767, 31, 32767, 31, 32767, 32767}}) {
    ibv_srq_init_attr attr{};
    attr.attr = {.max_wr = c.max_wr, .max_sge = c.max_sge, .srq_limit = 0};
    ibv_srq* srq = CreateSrq(pd_, &attr);
    ASSERT_NE(srq, nullptr) << c.max_wr;
    EXPECT_EQ(attr.attr.max_wr, c.created_wr);
    EXPECT_EQ(attr.attr.max_sge, c.created_sge);
    ibv_srq_attr answer;
    ASSERT_EQ(QuerySrq(srq, &answer), 0);
    EXPECT_EQ(answer.max_wr, c.queried_wr) << c.max_wr;
    EXPECT_EQ(device().srqs.at(srq->handle).max_limit, c.max_limit) << c.max_wr;
    EXPECT_EQ(DestroySrq(srq), 0);
  }
}

TEST_F(ConnectXSrqTest, ResizeIsRefused) {
  ibv_srq* srq = MakeSrq(10);
  ibv_srq_attr attr{.max_wr = 20, .max_sge = 0, .srq_limit = 0};
  EXPECT_EQ(ModifySrq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
  EXPECT_EQ(ModifySrq(srq, &attr, 0), 0);
}

}  // namespace
}  // namespace simhca::driver
