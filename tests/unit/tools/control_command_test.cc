#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <sstream>
#include <vector>

#include "sim/device/engine.h"
#include "sim/fabric/control.h"
#include "sim/fabric/fabric.h"
#include "sim/profiles/profile_loader.h"
#include "sim/queues/interrupt_handler.h"
#include "sim/queues/mlx5/layout.h"
#include "sim/tools/commands.h"

namespace simhca {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint32_t kEventEntries = 16;

class IgnoreInterrupts final : public InterruptHandler {
  void OnInterrupt() override {}
};

// This process is one on the fabric, with an engine of two devices whose background thread answers.
class ControlCommandTest : public testing::Test {
 protected:
  ControlCommandTest() {
    EngineOptions options;
    options.fabric = fabric_;
    options.devices.assign(2, *FindProfile("generic").profile);
    std::string error;
    EXPECT_EQ(Engine::Start(options, &engine_, &error), 0) << error;
  }

  uint32_t OpenDevice(size_t index) {
    uint32_t context = 0;
    EXPECT_EQ(
        engine_->device(index).OpenContext(
            {&ignore_, reinterpret_cast<std::byte*>(events_.data()), kEventEntries}, &context),
        0);
    return context;
  }
  int Run(const std::string& device, std::vector<std::string> words, uint32_t pid = 0) {
    out_.str("");
    errors_.str("");
    return Control({.device = device,
                    .words = std::move(words),
                    .fabric = fabric_,
                    .pid = pid,
                    .milliseconds = 10'000},
                   kFabricDirectory, out_, errors_);
  }
  std::string Me() const { return "process " + std::to_string(getpid()) + " \\(.*\\)"; }
  bool PortUp(size_t index) {
    bool up = false;
    EXPECT_EQ(engine_->device(index).QueryPort(&up), 0);
    return up;
  }

  const std::string fabric_ = "tools-" + std::to_string(getpid());
  IgnoreInterrupts ignore_;
  std::vector<mlx5::Eqe> events_ = std::vector<mlx5::Eqe>(kEventEntries);
  std::unique_ptr<Engine> engine_;
  std::ostringstream out_;
  std::ostringstream errors_;
};

TEST_F(ControlCommandTest, SaysHowManyContextsWereTold) {
  OpenDevice(0);
  OpenDevice(0);
  EXPECT_EQ(Run("simhca0", {"gid-change"}), 0);
  EXPECT_THAT(out_.str(), ContainsRegex("^" + Me() + ": 2 contexts told\n$"));
  EXPECT_THAT(errors_.str(), IsEmpty());
}

TEST_F(ControlCommandTest, NamesTheObjectsOfADevice) {
  OpenDevice(1);
  EXPECT_EQ(Run("simhca1", {"list"}), 0);
  EXPECT_THAT(out_.str(), ContainsRegex(Me() + ", simhca1: port up, 1 context\\(s\\)\n"));
}

TEST_F(ControlCommandTest, TurnsThePortOfOneDevice) {
  EXPECT_EQ(Run("simhca1", {"port", "down"}), 0);
  EXPECT_FALSE(PortUp(1));
  EXPECT_TRUE(PortUp(0));
  std::ostringstream list;
  setenv("SIMHCA_DEVICES", "2", 1);
  EXPECT_EQ(ListDevices(fabric_, kFabricDirectory, list, errors_), 0);
  unsetenv("SIMHCA_DEVICES");
  EXPECT_THAT(list.str(), ContainsRegex("simhca0 .* active .*\nsimhca1 .* down "));
  EXPECT_EQ(Run("simhca1", {"port", "down"}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("was down before"));
  EXPECT_EQ(Run("simhca1", {"port", "up"}), 0);
  EXPECT_TRUE(PortUp(1));
}

TEST_F(ControlCommandTest, APortThatNobodyHasStaysAsItWas) {
  EXPECT_EQ(Run("simhca2", {"port", "down"}), 1);
  EXPECT_THAT(errors_.str(), HasSubstr("no process of the fabric has a device simhca2"));
  Fabric::Options options;
  options.name = fabric_;
  std::unique_ptr<Fabric> fabric;
  std::string error;
  ASSERT_EQ(Fabric::Join(options, &fabric, &error), 0) << error;
  EXPECT_FALSE(fabric->port_down(2));
}

TEST_F(ControlCommandTest, FailsADeviceOnce) {
  OpenDevice(0);
  EXPECT_EQ(Run("simhca0", {"fatal"}), 0);
  EXPECT_TRUE(engine_->device(0).failed());
  EXPECT_FALSE(engine_->device(1).failed());
  EXPECT_EQ(Run("simhca0", {"fatal"}), 1);
  EXPECT_THAT(errors_.str(), HasSubstr("the device has failed before"));
  EXPECT_EQ(Run("simhca0", {"list"}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("simhca0: failed"));
}

TEST_F(ControlCommandTest, RefusesWhatIsNotThere) {
  EXPECT_EQ(Run("simhca0", {"fatal"}), 1);
  EXPECT_THAT(errors_.str(), HasSubstr("no process has simhca0 open"));
  OpenDevice(0);
  EXPECT_EQ(Run("simhca0", {"qp-fatal", "0x123"}), 1);
  EXPECT_THAT(errors_.str(), HasSubstr("simhca0 has no queue pair 0x123"));
  EXPECT_EQ(Run("simhca0", {"srq-error", "all"}), 1);
  EXPECT_THAT(errors_.str(), HasSubstr("simhca0 has no SRQ"));
  EXPECT_EQ(Run("simhca9", {"fatal"}), 1);
  EXPECT_THAT(errors_.str(), HasSubstr("no process of the fabric has a device simhca9"));
  EXPECT_EQ(Run("simhca0", {"fatal"}, 1), 1);
  EXPECT_THAT(errors_.str(), HasSubstr("process 1 is not on fabric"));
}

TEST_F(ControlCommandTest, RefusesWhatMakesNoSense) {
  OpenDevice(0);
  for (const char* device : {"mlx5_0", "simhca", "simhca-1", "simhca0x", "simhca512", ""}) {
    EXPECT_EQ(Run(device, {"fatal"}), 1) << device;
    EXPECT_THAT(errors_.str(), HasSubstr("is not a device")) << device;
  }
  const std::vector<std::vector<std::string>> unknown = {
      {}, {"port"}, {"port", "sideways"}, {"explode"}};
  for (const std::vector<std::string>& words : unknown) {
    EXPECT_EQ(Run("simhca0", words), 1);
    EXPECT_THAT(errors_.str(), HasSubstr("is not a command; known:"));
    EXPECT_THAT(errors_.str(), HasSubstr("qp-fatal QPN|all"));
  }
  const std::vector<std::vector<std::string>> numbers = {{"qp-fatal"},
                                                         {"qp-fatal", "x"},
                                                         {"qp-fatal", "0x1000000"},
                                                         {"qp-fatal", "-1"},
                                                         {"qp-fatal", "1", "2"}};
  for (const std::vector<std::string>& words : numbers) {
    EXPECT_EQ(Run("simhca0", words), 1);
    EXPECT_THAT(errors_.str(), HasSubstr("takes the number of one queue pair, or all"));
  }
  EXPECT_EQ(Run("simhca0", {"fatal", "all"}), 1);
  EXPECT_THAT(errors_.str(), HasSubstr("takes nothing more, not 'all'"));
  EXPECT_EQ(Run("simhca0", {"port", "down"}, static_cast<uint32_t>(getpid())), 1);
  EXPECT_THAT(errors_.str(), HasSubstr("no --pid"));
  EXPECT_TRUE(PortUp(0));
  EXPECT_FALSE(engine_->device(0).failed());
}

TEST_F(ControlCommandTest, RefusesFabricsThatAreNotThere) {
  EXPECT_EQ(Control({.device = "simhca0", .words = {"fatal"}, .fabric = "nobodys"},
                    kFabricDirectory, out_, errors_),
            1);
  EXPECT_THAT(errors_.str(), HasSubstr("there is no fabric 'nobodys'"));
}

TEST_F(ControlCommandTest, SaysWhoDoesNotAnswer) {
  OpenDevice(0);
  Fabric::Options options;
  options.name = fabric_;
  std::unique_ptr<Fabric> silent;  // nobody takes what it is asked
  std::string error;
  ASSERT_EQ(Fabric::Join(options, &silent, &error), 0) << error;
  EXPECT_EQ(
      Control(
          {.device = "simhca0", .words = {"lid-change"}, .fabric = fabric_, .milliseconds = 500},
          kFabricDirectory, out_, errors_),
      1);
  EXPECT_THAT(errors_.str(), ContainsRegex(Me() + " does not answer within 500 ms"));
  EXPECT_THAT(out_.str(), ContainsRegex("1 context told")) << "the others are told all the same";
}

TEST_F(ControlCommandTest, HelpNamesEveryCommand) {
  for (const ControlCommand& command : ControlCommands()) {
    EXPECT_THAT(ControlHelp(), HasSubstr("  " + std::string(command.words)));
  }
}

}  // namespace
}  // namespace simhca
