#include <cerrno>
#include <numeric>

#include "tests/conformance/fixture.h"

namespace simhca::conformance {
namespace {

class SrqResize : public SrqTest {
 protected:
  void SetUp() override {
    if (!device_.can_resize_srq()) GTEST_SKIP() << "the device cannot resize an SRQ";
  }
};

std::vector<uint64_t> Ids(uint64_t first, size_t count) {
  std::vector<uint64_t> ids(count);
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

TEST_F(SrqResize, Row02PostedReceivesSurviveGrowthInOrder) {
  Rule("SRQ-09");
  CreateSrq(16);
  const Link link = MakeLink({}, srq_.get());
  ASSERT_EQ(0, P(16));
  ASSERT_EQ(0, Resize(64));
  EXPECT_GE(Query().max_wr, 64u);
  ASSERT_EQ(0, P(48)) << "the new room can be used";
  EXPECT_EQ(Ids(0, 64), SendAndReceive(link, 64));
}

TEST_F(SrqResize, Row02GrowthInTheMiddleOfUseKeepsTheOrder) {
  Rule("SRQ-09");
  CreateSrq(16);
  const Link link = MakeLink({}, srq_.get());
  ASSERT_EQ(0, P(16));
  ASSERT_EQ(Ids(0, 11), SendAndReceive(link, 11));
  ASSERT_EQ(0, P(9));
  ASSERT_EQ(0, Resize(40));
  ASSERT_EQ(0, P(10));
  EXPECT_EQ(Ids(11, 24), SendAndReceive(link, 24));
  EXPECT_EQ(0u, CountReceivable());
}

TEST_F(SrqResize, CapacityIsExactAfterResizeOnTheDefaultProfile) {
  Rule("SRQ-09");
  if (!device_.generic()) GTEST_SKIP() << "sizes of other devices are rounded up";
  CreateSrq(16);
  ASSERT_EQ(0, Resize(100));
  EXPECT_EQ(100u, Query().max_wr);
  EXPECT_EQ(0, P(100));
  EXPECT_EQ(ENOMEM, P(1));
}

TEST_F(SrqResize, ShrinkingToWhatIsPostedKeepsIt) {
  Rule("SRQ-09");
  CreateSrq(64);
  const Link link = MakeLink({}, srq_.get());
  ASSERT_EQ(0, P(8));
  ASSERT_EQ(0, Resize(8));
  EXPECT_GE(Query().max_wr, 8u);
  EXPECT_EQ(Ids(0, 8), SendAndReceive(link, 8));
}

TEST_F(SrqResize, Row04ShrinkingBelowThePostedReceivesIsRefused) {
  Rule("SRQ-09");
  CreateSrq(64);
  const Link link = MakeLink({}, srq_.get());
  ASSERT_EQ(0, P(40));
  const uint32_t before = Query().max_wr;
  EXPECT_NE(0, Resize(8));
  EXPECT_EQ(before, Query().max_wr);
  ASSERT_EQ(0, P(capacity_ - 40)) << "the old room can still be used";
  EXPECT_EQ(Ids(0, capacity_), SendAndReceive(link, capacity_));
}

TEST_F(SrqResize, ResizeAboveTheDeviceLimitIsRefused) {
  Rule("SRQ-09");
  CreateSrq(16);
  ASSERT_EQ(0, P(16));
  const uint32_t before = Query().max_wr;
  EXPECT_EQ(EINVAL, Resize(static_cast<uint32_t>(device_.attributes().max_srq_wr) + 1));
  EXPECT_EQ(before, Query().max_wr);
  EXPECT_EQ(16u, CountReceivable());
}

TEST_F(SrqResize, AnArmedLimitSurvivesAResize) {
  Rule("SRQ-09");
  CreateSrq(16);
  const Link link = MakeLink({}, srq_.get());
  ASSERT_EQ(0, P(10));
  ASSERT_EQ(0, SetLimit(7));
  ASSERT_EQ(0, Resize(64));
  EXPECT_EQ(7u, Query().srq_limit);
  SendAndReceive(link, 3);
  EXPECT_EQ(0u, LimitEvents());
  SendAndReceive(link, 1);
  EXPECT_EQ(1u, LimitEvents());
}

TEST_F(SrqResize, LimitAndSizeChangeTogether) {
  Rule("SRQ-09");
  CreateSrq(16);
  const Link link = MakeLink({}, srq_.get());
  ASSERT_EQ(0, P(12));
  ibv_srq_attr attr{};
  attr.max_wr = 64;
  attr.srq_limit = 12;
  ASSERT_EQ(0, ibv_modify_srq(srq_.get(), &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT));
  EXPECT_GE(Query().max_wr, 64u);
  EXPECT_EQ(12u, Query().srq_limit);
  SendAndReceive(link, 1);
  EXPECT_EQ(1u, LimitEvents());
}

// Left out by the program where the device can resize.
class WithoutSrqResize : public SrqTest {};

TEST_F(WithoutSrqResize, Row03ResizeIsRefusedAndNothingChanges) {
  Rule("SRQ-10");
  CreateSrq(16);
  ASSERT_EQ(0, P(capacity_));
  const ibv_srq_attr before = Query();
  EXPECT_EQ(EINVAL, Resize(64));
  EXPECT_EQ(before.max_wr, Query().max_wr);
  EXPECT_EQ(before.max_sge, Query().max_sge);
  EXPECT_EQ(capacity_, CountReceivable());
}

TEST_F(WithoutSrqResize, Row03ResizeTogetherWithALimitChangesNeither) {
  Rule("SRQ-07");
  CreateSrq(16);
  ASSERT_EQ(0, P(10));
  ASSERT_EQ(0, SetLimit(3));
  ibv_srq_attr attr{};
  attr.max_wr = 64;
  attr.srq_limit = 5;
  EXPECT_EQ(EINVAL, ibv_modify_srq(srq_.get(), &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT));
  EXPECT_EQ(3u, Query().srq_limit);
}

}  // namespace
}  // namespace simhca::conformance
