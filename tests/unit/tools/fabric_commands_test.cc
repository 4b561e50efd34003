#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "sim/fabric/fabric.h"
#include "sim/tools/commands.h"
#include "sim/fabric/counters.h"

namespace simhca {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// Each test has a directory of its own for its fabrics.
class FabricCommandsTest : public testing::Test {
 protected:
  FabricCommandsTest() {
    char name[] = "/dev/shm/simhca-tools-test-XXXXXX";
    directory_ = mkdtemp(name);
  }
  ~FabricCommandsTest() override { std::filesystem::remove_all(directory_); }

  std::unique_ptr<Fabric> Join(const std::string& name) {
    Fabric::Options options;
    options.name = name;
    options.directory = directory_;
    std::unique_ptr<Fabric> fabric;
    std::string error;
    EXPECT_EQ(Fabric::Join(options, &fabric, &error), 0) << error;
    return fabric;
  }

  // A fabric whose only process was killed.
  void LeaveBehind(const std::string& name) {
    const pid_t child = fork();
    if (child == 0) {
      auto fabric = Join(name);
      _exit(fabric == nullptr ? 1 : 0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }

  std::string directory_;
  std::ostringstream out_;
  std::ostringstream errors_;
};

TEST_F(FabricCommandsTest, StatsSaysWhenNothingIsOpen) {
  EXPECT_EQ(ShowStats("", directory_, out_, errors_), 0);
  EXPECT_THAT(out_.str(), HasSubstr("no simulated device is open"));
}

TEST_F(FabricCommandsTest, StatsShowsTheCountersOfLivingProcesses) {
  const auto fabric = Join("mine");
  CounterSet(fabric->counters()).Add(Counter::kPacketsSent, 1234);
  EXPECT_EQ(ShowStats("", directory_, out_, errors_), 0);
  EXPECT_THAT(out_.str(), HasSubstr("fabric mine: 1 process(es)"));
  EXPECT_THAT(out_.str(), HasSubstr("process " + std::to_string(getpid())));
  EXPECT_THAT(out_.str(), ContainsRegex("packets_sent +1234"));
  EXPECT_THAT(out_.str(), Not(HasSubstr("packets_received")));
}

TEST_F(FabricCommandsTest, StatsOnlyCountsWhatIsAbandoned) {
  LeaveBehind("left");
  EXPECT_EQ(ShowStats("", directory_, out_, errors_), 0);
  EXPECT_THAT(out_.str(), HasSubstr("1 abandoned fabric(s)"));
  EXPECT_THAT(out_.str(), Not(HasSubstr("left")));
}

TEST_F(FabricCommandsTest, StatsOfOneFabricOnly) {
  const auto fabric = Join("mine");
  EXPECT_EQ(ShowStats("mine", directory_, out_, errors_), 0);
  EXPECT_THAT(out_.str(), HasSubstr("fabric mine"));
  EXPECT_EQ(ShowStats("other", directory_, out_, errors_), 1);
  EXPECT_THAT(errors_.str(), HasSubstr("\"other\""));
}

TEST_F(FabricCommandsTest, CleanRemovesOnlyWhatNobodyLivesOn) {
  LeaveBehind("left");
  const auto fabric = Join("mine");
  EXPECT_EQ(CleanFabrics(directory_, out_), 0);
  EXPECT_EQ(out_.str(), "removed fabric left\n");
  out_.str("");
  EXPECT_EQ(CleanFabrics(directory_, out_), 0);
  EXPECT_EQ(out_.str(), "nothing to remove\n");
  EXPECT_EQ(ShowStats("mine", directory_, out_, errors_), 0);
}

}  // namespace
}  // namespace simhca
