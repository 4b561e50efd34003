#include "sim/transport/state_table.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace simhca {
namespace {

using namespace qp_mask;

constexpr uint32_t kToRtr =
    kState | kAv | kPathMtu | kDestQpn | kRqPsn | kMaxDestRdAtomic | kMinRnrTimer;

// Rules of ports that a device with one port cannot show.
class TwoPorts : public testing::Test {
 protected:
  TwoPorts() {
    current_.port = 1;
    wanted_.state = QpState::kRtr;
    wanted_.path_mtu = 3;
    wanted_.av.is_global = true;
    wanted_.av.port = 1;
  }
  int Check(QpState state, uint32_t mask) const {
    return CheckModify(QpType::kRc, state, current_, mask, wanted_, limits_);
  }

  const ModifyLimits limits_{.ports = 2,
                             .needs_global_route = true,
                             .max_mtu_code = 5,
                             .pkeys = 1,
                             .gids = 1,
                             .max_rd_atomic = 16,
                             .max_dest_rd_atomic = 16};
  QpAttributes current_;
  QpAttributes wanted_;
};

TEST_F(TwoPorts, ThePathMtuIsAtMostThePorts) {
  ModifyLimits limits = limits_;
  limits.max_mtu_code = 3;
  wanted_.path_mtu = 3;
  EXPECT_EQ(CheckModify(QpType::kRc, QpState::kInit, current_, kToRtr, wanted_, limits), 0);
  wanted_.path_mtu = 4;
  EXPECT_EQ(CheckModify(QpType::kRc, QpState::kInit, current_, kToRtr, wanted_, limits), EINVAL);
}

TEST_F(TwoPorts, ThePathOfRtrUsesThePortGivenAtInit) {
  EXPECT_EQ(Check(QpState::kInit, kToRtr), 0);
  wanted_.av.port = 2;
  EXPECT_EQ(Check(QpState::kInit, kToRtr), EINVAL);
  current_.port = 2;
  EXPECT_EQ(Check(QpState::kInit, kToRtr), 0);
}

TEST_F(TwoPorts, APathGivenWithAPortUsesThatPort) {
  wanted_.state = QpState::kSqd;
  wanted_.port = wanted_.av.port = 2;
  EXPECT_EQ(Check(QpState::kSqd, kAv | kPort), 0);
  wanted_.av.port = 1;
  EXPECT_EQ(Check(QpState::kSqd, kAv | kPort), EINVAL);
}

}  // namespace
}  // namespace simhca
