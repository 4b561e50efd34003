#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "sim/tools/commands.h"

namespace simhca {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class ProfileCommandsTest : public testing::Test {
 protected:
  std::ostringstream out_;
  std::ostringstream errors_;
};

TEST_F(ProfileCommandsTest, ListHasALineForEachProfile) {
  EXPECT_EQ(ListProfiles(out_, errors_), 0);
  EXPECT_THAT(out_.str(), ContainsRegex("generic +0x25a48 +0x5a48 +RoCE, 100 Gb/s"));
  EXPECT_THAT(out_.str(), ContainsRegex("connectx5 +0x02c9 +0x1017"));
}

TEST_F(ProfileCommandsTest, ShowGivesValuesWithTheirSources) {
  EXPECT_EQ(ShowProfile("connectx6dx", out_, errors_), 0);
  EXPECT_THAT(out_.str(), ContainsRegex("limits.max_srq_wr +32767 +public"));
  EXPECT_THAT(out_.str(), ContainsRegex("costs.event_latency +3 us +assumed"));
}

TEST_F(ProfileCommandsTest, DiffGivesOnlyWhatDiffers) {
  EXPECT_EQ(DiffProfiles("connectx5", "connectx6dx", out_, errors_), 0);
  EXPECT_THAT(out_.str(),
              ContainsRegex("limits.hca_core_clock_khz +156250 +1000000 +public ibv_devinfo .*"
                            "public ibv_devinfo"));
  EXPECT_THAT(out_.str(), Not(HasSubstr("max_srq_wr")));
}

TEST_F(ProfileCommandsTest, DiffGivesTheSourcesOfBothValues) {
  EXPECT_EQ(DiffProfiles("generic", "connectib", out_, errors_), 0);
  EXPECT_THAT(out_.str(),
              ContainsRegex("KEY +generic +connectib +SOURCE OF generic +SOURCE OF co"));
  EXPECT_THAT(out_.str(),
              ContainsRegex("limits.max_qp +16384 +262144 +chosen for the simulator +ibv_devinfo"));
}

TEST_F(ProfileCommandsTest, UnknownProfilesAreRefused) {
  EXPECT_EQ(ShowProfile("nothing", out_, errors_), 1);
  EXPECT_EQ(DiffProfiles("generic", "nothing", out_, errors_), 1);
  EXPECT_THAT(out_.str(), IsEmpty());
  EXPECT_THAT(errors_.str(), HasSubstr("\"nothing\""));
}

TEST_F(ProfileCommandsTest, DevicesFollowTheEnvironment) {
  setenv("SIMHCA_DEVICES", "2", 1);
  setenv("SIMHCA_DEVICE", "simhca1=connectx5", 1);
  EXPECT_EQ(ListDevices("no fabric", "/dev/shm", out_, errors_), 0);
  EXPECT_THAT(out_.str(),
              ContainsRegex("simhca0 +generic +RoCE +active +fe80:.*:0001 .*c612:0001\n"));
  EXPECT_THAT(out_.str(),
              ContainsRegex("simhca1 +connectx5 +RoCE +active +fe80:.*:0002 .*c612:0002\n"));
  setenv("SIMHCA_DEVICES", "many", 1);
  EXPECT_EQ(ListDevices("no fabric", "/dev/shm", out_, errors_), 1);
  EXPECT_THAT(errors_.str(), HasSubstr("SIMHCA_DEVICES"));
  unsetenv("SIMHCA_DEVICES");
  unsetenv("SIMHCA_DEVICE");
}

}  // namespace
}  // namespace simhca
