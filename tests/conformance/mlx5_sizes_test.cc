#include <cerrno>

#include "tests/conformance/fixture.h"

namespace simhca::conformance {
namespace {

// Rounding rules of ConnectX-5 and -6 Dx; left out by the program on other devices.
class Mlx5Sizes : public SrqTest {};

TEST_F(Mlx5Sizes, SrqLimitsOfTheDevice) {
  Rule("SRQ-06");
  EXPECT_EQ(32767, device_.attributes().max_srq_wr);
  EXPECT_EQ(31, device_.attributes().max_srq_sge);
  EXPECT_FALSE(device_.can_resize_srq());
}

TEST_F(Mlx5Sizes, SrqCreateRoundsMaxWrUpToAPowerOfTwoLessOne) {
  Rule("SRQ-06");
  constexpr struct {
    uint32_t asked, created, queried;
  } kSizes[] = {{10, 15, 31}, {255, 255, 511}, {256, 511, 1023}, {1, 1, 3}, {16, 31, 63}};
  for (const auto& size : kSizes) {
    SCOPED_TRACE(size.asked);
    CreateSrq(size.asked);
    EXPECT_EQ(size.created, capacity_);
    EXPECT_EQ(size.queried, Query().max_wr);
    EXPECT_EQ(0, P(size.created));
    EXPECT_EQ(ENOMEM, P(1));
  }
}

TEST_F(Mlx5Sizes, TheLargestSrqHasNoReserve) {
  Rule("SRQ-06");
  CreateSrq(32767);
  EXPECT_EQ(32767u, capacity_);
  EXPECT_EQ(32767u, Query().max_wr);
}

TEST_F(Mlx5Sizes, SrqOfSizeZeroTakesNothing) {
  Rule("SRQ-03");
  CreateSrq(0);
  EXPECT_EQ(0u, capacity_);
  EXPECT_EQ(ENOMEM, P(1));
}

TEST_F(Mlx5Sizes, SrqCreateRoundsMaxSgeToTheStride) {
  Rule("SRQ-06");
  constexpr struct {
    uint32_t asked, granted;
  } kSizes[] = {{1, 1}, {2, 3}, {3, 3}, {4, 7}, {7, 7}, {8, 15}, {31, 31}};
  for (const auto& size : kSizes) {
    ibv_srq_attr granted{};
    srq_ = MakeSrq(pd_.get(), 16, size.asked, &granted);
    EXPECT_EQ(size.granted, granted.max_sge) << size.asked;
    EXPECT_EQ(size.granted, Query().max_sge) << size.asked;
  }
}

TEST_F(Mlx5Sizes, LimitMustBeBelowTheAllocatedSize) {
  Rule("SRQ-06");
  CreateSrq(10);
  EXPECT_EQ(EINVAL, SetLimit(32));
  EXPECT_EQ(0, SetLimit(31));
}

TEST_F(Mlx5Sizes, SrqCannotBeResized) {
  Rule("SRQ-10");
  CreateSrq(10);
  EXPECT_EQ(EINVAL, Resize(100));
  EXPECT_EQ(EINVAL, Resize(5));
  EXPECT_EQ(31u, Query().max_wr);
}

TEST_F(Mlx5Sizes, ReceiveCapabilitiesOfAQpOnAnSrqAreZero) {
  Rule("QPC-06");
  CreateSrq(10);
  ibv_qp_cap granted{};
  const Qp qp = MakeQp(device_, pd_.get(), ResponderOptions(srq_.get()), &granted);
  EXPECT_EQ(0u, granted.max_recv_wr);
  EXPECT_EQ(0u, granted.max_recv_sge);
}

TEST_F(Mlx5Sizes, CqSizeIsAPowerOfTwoLessOne) {
  Rule("CQ-02");
  EXPECT_EQ(15, MakeCq(device_, 10)->cqe);
  EXPECT_EQ(15, MakeCq(device_, 15)->cqe);
  EXPECT_EQ(31, MakeCq(device_, 16)->cqe);
}

TEST_F(Mlx5Sizes, QpCapabilitiesFollowTheWorkRequestSize) {
  Rule("QPC-08");
  QpOptions options = RequesterOptions();
  options.cap = {10, 10, 1, 1, 0};
  ibv_qp_cap granted{};
  MakeQp(device_, pd_.get(), options, &granted);
  // A send WQE of 192 bytes of overhead and one segment takes 256; receives of 16 bytes.
  EXPECT_EQ(16u, granted.max_send_wr);
  EXPECT_EQ(256u - 192 - 4, granted.max_inline_data);
  EXPECT_EQ(16u, granted.max_recv_wr);
  EXPECT_EQ(1u, granted.max_recv_sge);

  options.cap = {10, 10, 1, 3, 0};
  options.send_ops = IBV_QP_EX_WITH_SEND;
  MakeQp(device_, pd_.get(), options, &granted);
  EXPECT_EQ(16u, granted.max_send_wr);
  EXPECT_EQ(64u - 16 - 4, granted.max_inline_data);
  EXPECT_EQ(16u, granted.max_recv_wr);
  EXPECT_EQ(4u, granted.max_recv_sge);
}

}  // namespace
}  // namespace simhca::conformance
