// The device's side of a shared receive queue.

#include <optional>

#include "tests/unit/device/rc_fixture.h"

namespace simhca {
namespace {

class SrqTest : public RcTest {
 protected:
  using RcTest::RcTest;

  void Modify(std::optional<uint32_t> limit) {
    ModifySrqCommand command{};
    command.srq = srq->number;
    command.set_limit = limit.has_value();
    command.limit = limit.value_or(0);
    ASSERT_EQ(rig.hca.ModifySrq(command), 0);
  }
  uint32_t Limit() {
    uint32_t limit = ~0u;
    EXPECT_EQ(rig.hca.QuerySrqLimit(srq->number, &limit), 0);
    return limit;
  }
  void Post(int count) {
    for (int i = 0; i < count; ++i) rig.PostSrq(*srq, rig.address(kTarget), 64, rig.key);
  }
  void SendAndWait(int count) {
    for (int i = 0; i < count; ++i) {
      rig.PostSend(*a, Bytes(WqeOpcode::kSend, 8));
      ExpectSent(WqeOpcode::kSend);
    }
  }

  std::unique_ptr<Rig::Srq> srq = rig.MakeSrq();
  std::unique_ptr<Rig::Qp> a = rig.MakeQp(*send_cq, nullptr);
  std::unique_ptr<Rig::Qp> b = rig.MakeQp(*receive_cq, srq.get());
};

TEST_F(SrqTest, LimitEventFiresOnceBelowTheLimit) {
  rig.Connect(*a, *b);
  Post(10);
  Modify(7);
  EXPECT_EQ(Limit(), 7u);
  SendAndWait(3);
  EXPECT_EQ(rig.CountEvents(EventType::kSrqLimit, srq->number), 0u);
  SendAndWait(1);
  EXPECT_EQ(rig.CountEvents(EventType::kSrqLimit, srq->number), 1u);
  EXPECT_EQ(Limit(), 0u);
  SendAndWait(3);
  EXPECT_EQ(rig.CountEvents(EventType::kSrqLimit, srq->number), 1u);
}

TEST_F(SrqTest, ArmingAboveTheFillFiresAtOnce) {
  Post(2);
  Modify(3);
  EXPECT_EQ(rig.CountEvents(EventType::kSrqLimit, srq->number), 1u);
  EXPECT_EQ(Limit(), 0u);
}

// A device that looks at the limit only when a receive takes an entry.
class LateLimitTest : public SrqTest {
 protected:
  LateLimitTest() : SrqTest(Profile()) {}
  static DeviceProfile Profile() {
    DeviceProfile profile = Rig::GenericProfile();
    profile.features.limit_event_at_once = false;
    return profile;
  }
};

TEST_F(LateLimitTest, ArmingAboveTheFillFiresAtTheNextReceive) {
  rig.Connect(*a, *b);
  Post(2);
  Modify(3);
  EXPECT_EQ(rig.CountEvents(EventType::kSrqLimit, srq->number), 0u);
  EXPECT_EQ(Limit(), 3u);
  SendAndWait(1);
  EXPECT_EQ(rig.CountEvents(EventType::kSrqLimit, srq->number), 1u);
  EXPECT_EQ(Limit(), 0u);
}

TEST_F(SrqTest, LastWqeEventFollowsTheErrorOfAQueuePairOnTheSrq) {
  rig.Connect(*a, *b);
  Post(4);
  QpAttributes error;
  error.state = QpState::kErr;
  ASSERT_EQ(rig.Modify(*b, qp_mask::kState, error), 0);
  EXPECT_EQ(rig.CountEvents(EventType::kSrqLastWqe, b->number), 1u);
  EXPECT_FALSE(rig.Poll(*receive_cq, kMillisecond)) << "an unclaimed WQE was taken";
}

TEST_F(SrqTest, ClaimedWqeIsFlushedWithItsQueuePair) {
  rig.Connect(*a, *b);
  Post(2);
  // The message stays open: its last packet never arrives.
  rig.fabric->lose = [](size_t, const std::byte* bytes) {
    return OperationOf(Bth::Parse(bytes).opcode) == Operation::kSendLast;
  };
  rig.PostSrq(*srq, rig.address(kTarget), 4096, rig.key);
  rig.PostSend(*a, Bytes(WqeOpcode::kSend, 8));
  ExpectSent(WqeOpcode::kSend);
  ASSERT_TRUE(rig.Poll(*receive_cq));
  rig.PostSend(*a, Bytes(WqeOpcode::kSend, 8));
  ExpectSent(WqeOpcode::kSend);
  ASSERT_TRUE(rig.Poll(*receive_cq));
  rig.PostSend(*a, Bytes(WqeOpcode::kSend, 2000));
  rig.Poll(*send_cq, 10 * kMicrosecond);
  QpAttributes error;
  error.state = QpState::kErr;
  ASSERT_EQ(rig.Modify(*b, qp_mask::kState, error), 0);
  const auto cqe = rig.Poll(*receive_cq);
  ASSERT_TRUE(cqe);
  EXPECT_EQ(SyndromeOf(*cqe), Syndrome::kFlushed);
  EXPECT_EQ(uint16_t{cqe->wqe_counter}, 2u);
}

TEST_F(SrqTest, DestroyGivesAClaimedWqeBack) {
  rig.Connect(*a, *b);
  rig.fabric->lose = [](size_t, const std::byte* bytes) {
    return OperationOf(Bth::Parse(bytes).opcode) == Operation::kSendLast;
  };
  rig.PostSrq(*srq, rig.address(kTarget), 4096, rig.key);
  rig.PostSend(*a, Bytes(WqeOpcode::kSend, 2000));
  rig.Poll(*send_cq, 10 * kMicrosecond);
  ReleasedWqe released;
  ASSERT_EQ(rig.hca.DestroyQp(b->number, &released), 0);
  EXPECT_TRUE(released.any);
  EXPECT_EQ(released.index, 0);
}

TEST_F(SrqTest, BusyObjectsAreNotDestroyed) {
  EXPECT_EQ(rig.hca.DestroySrq(srq->number), EBUSY);
  EXPECT_EQ(rig.hca.DestroyCq(send_cq->number), EBUSY);
  EXPECT_EQ(rig.hca.DeallocPd(rig.pd), EBUSY);
  ReleasedWqe released;
  EXPECT_EQ(rig.hca.DestroyQp(b->number, &released), 0);
  EXPECT_EQ(rig.hca.DestroySrq(srq->number), 0);
  EXPECT_EQ(rig.hca.DestroySrq(srq->number), ENOENT);
}

}  // namespace
}  // namespace simhca
