#include "sim/profiles/device_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace simhca {
namespace {

using testing::HasSubstr;

TEST(DevicePlanTest, NothingGivenIsOneGenericDevice) {
  const DevicePlan plan = PlanDevices(nullptr, "", nullptr);
  ASSERT_TRUE(plan.ok()) << plan.error;
  ASSERT_EQ(plan.devices.size(), 1u);
  EXPECT_EQ(plan.devices[0].name, "simhca0");
  EXPECT_EQ(plan.devices[0].profile.identity.name, "generic");
}

TEST(DevicePlanTest, SingleDevicesMayHaveOtherProfiles) {
  const DevicePlan plan = PlanDevices("3", "connectx5", "simhca2=generic,simhca0=connectx6dx");
  ASSERT_TRUE(plan.ok()) << plan.error;
  ASSERT_EQ(plan.devices.size(), 3u);
  EXPECT_EQ(plan.devices[0].profile.identity.name, "connectx6dx");
  EXPECT_EQ(plan.devices[1].profile.identity.name, "connectx5");
  EXPECT_EQ(plan.devices[2].profile.identity.name, "generic");
}

TEST(DevicePlanTest, ZeroDevicesArePossible) {
  const DevicePlan plan = PlanDevices("0", nullptr, nullptr);
  EXPECT_TRUE(plan.ok());
  EXPECT_TRUE(plan.devices.empty());
}

TEST(DevicePlanTest, WrongSettingsAreRefusedByName) {
  EXPECT_THAT(PlanDevices("65", nullptr, nullptr).error, HasSubstr("SIMHCA_DEVICES"));
  EXPECT_THAT(PlanDevices("-1", nullptr, nullptr).error, HasSubstr("0 to 64"));
  EXPECT_THAT(PlanDevices("2x", nullptr, nullptr).error, HasSubstr("SIMHCA_DEVICES"));
  EXPECT_THAT(PlanDevices(nullptr, "nothing", nullptr).error, HasSubstr("SIMHCA_PROFILE"));
  EXPECT_THAT(PlanDevices("1", nullptr, "simhca1=generic").error, HasSubstr("no simhca1"));
  EXPECT_THAT(PlanDevices("1", nullptr, "simhca0").error, HasSubstr("DEVICE=PROFILE"));
  EXPECT_THAT(PlanDevices("1", nullptr, "mlx5_0=generic").error, HasSubstr("DEVICE=PROFILE"));
  EXPECT_THAT(PlanDevices("1", nullptr, "simhca00=generic").error, HasSubstr("DEVICE=PROFILE"));
  EXPECT_THAT(PlanDevices("1", nullptr, "simhca0=x").error, HasSubstr("no profile \"x\""));
}

TEST(DevicePlanTest, NamesAndIndexesBelongTogether) {
  for (const uint32_t index : {0u, 1u, 10u, kMaxDevices - 1}) {
    EXPECT_EQ(DeviceIndex(DeviceName(index)), index);
  }
  for (const char* name :
       {"", "simhca", "simhca00", "simhca01", "simhca64", "simhca-1", "simhca0x", "mlx5_0"}) {
    EXPECT_EQ(DeviceIndex(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace simhca
