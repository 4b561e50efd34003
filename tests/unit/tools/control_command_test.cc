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
  // One line, with the problem and where help is.
  void ExpectWrongUsage(const std::string& device, std::vector<std::string> words,
                        const std::string& problem, uint32_t pid = 0) {
    EXPECT_EQ(Run(device, std::move(words), pid), kWrongUsage);
    EXPECT_EQ(errors_.str(), "simhca: ctl: " + problem + " (see ./simhca ctl --help)\n");
    EXPECT_THAT(out_.str(), IsEmpty());
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
  EXPECT_EQ(errors_.str(), "no process of fabric '" + fabric_ + "' has a device simhca2\n");
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
  EXPECT_THAT(errors_.str(), ContainsRegex("^" + Me() + ": simhca0 has failed before\n$"));
  EXPECT_EQ(Run("simhca0", {"list"}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("simhca0: failed"));
}

TEST_F(ControlCommandTest, RefusesWhatIsNotThere) {
  const std::string nobody = "no process of fabric '" + fabric_ + "' has ";
  const std::string me = std::to_string(getpid());
  const std::string hint = ": ./simhca ctl simhca0 list shows what there is\n";
  EXPECT_EQ(Run("simhca0", {"fatal"}), kRefused);
  EXPECT_EQ(errors_.str(), nobody + "simhca0 open\n");
  OpenDevice(0);
  EXPECT_EQ(Run("simhca0", {"qp-fatal", "0x123"}), kRefused);
  EXPECT_EQ(errors_.str(), nobody + "queue pair 0x123 on simhca0" + hint);
  EXPECT_EQ(Run("simhca0", {"srq-error", "7"}, static_cast<uint32_t>(getpid())), kRefused);
  EXPECT_EQ(errors_.str(), "process " + me + " does not have SRQ 7 on simhca0" + hint);
  EXPECT_EQ(Run("simhca0", {"srq-error", "all"}), kRefused);
  EXPECT_EQ(errors_.str(), nobody + "any SRQ on simhca0" + hint);
  EXPECT_EQ(Run("simhca9", {"fatal"}), kRefused);
  EXPECT_EQ(errors_.str(), nobody + "a device simhca9\n");
  EXPECT_EQ(Run("simhca0", {"fatal"}, 1), kRefused);
  EXPECT_EQ(errors_.str(), "process 1 is not on fabric '" + fabric_ + "'\n");
}

TEST_F(ControlCommandTest, RefusesADeviceThatIsNotOneByItsExactName) {
  OpenDevice(0);
  for (const std::string device :
       {"mlx5_0", "simhca", "simhca-1", "simhca0x", "simhca00", "simhca01", "simhca512", ""}) {
    ExpectWrongUsage(device, {"fatal"},
                     "'" + device + "' is not a device: they are simhca0 to simhca63");
  }
  EXPECT_FALSE(engine_->device(0).failed());
}

TEST_F(ControlCommandTest, SaysWhatACommandNeeds) {
  ExpectWrongUsage("simhca0", {}, "no command given");
  ExpectWrongUsage("simhca0", {"port"}, "port takes down or up");
  ExpectWrongUsage("simhca0", {"port", "sideways"}, "port takes down or up, not 'sideways'");
  ExpectWrongUsage("simhca0", {"port", "down", "now"}, "port down takes nothing more, not 'now'");
  ExpectWrongUsage("simhca0", {"fatal", "all"}, "fatal takes nothing more, not 'all'");
  ExpectWrongUsage("simhca0", {"port", "down"},
                   "port down takes no --pid: the port of simhca0 is that of all processes of the "
                   "fabric",
                   static_cast<uint32_t>(getpid()));
  EXPECT_TRUE(PortUp(0));
}

TEST_F(ControlCommandTest, SaysWhichNumberItDoesNotUnderstand) {
  const std::string needs = "qp-fatal takes the number of one queue pair, or all";
  ExpectWrongUsage("simhca0", {"qp-fatal"}, needs);
  for (const std::string number : {"x", "0x1000000", "-1", "0x", ""}) {
    ExpectWrongUsage("simhca0", {"qp-fatal", number}, needs + ", not '" + number + "'");
  }
  ExpectWrongUsage("simhca0", {"qp-fatal", "1", "2"}, needs + ", not '1 2'");
}

TEST_F(ControlCommandTest, ListsTheCommandsThereAre) {
  std::string all;
  for (const ControlCommand& command : ControlCommands()) {
    all += (all.empty() ? "" : ", ") + std::string(command.words);
  }
  ExpectWrongUsage("simhca0", {"explode"}, "'explode' is not a command; known: " + all);
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
  errors_.str("");
  EXPECT_EQ(
      Control({.device = "simhca0", .words = {"list"}, .fabric = fabric_, .milliseconds = 500},
              kFabricDirectory, out_, errors_),
      kRefused);
  EXPECT_THAT(errors_.str(),
              ContainsRegex(Me() + " does not answer within 500 ms: is it stopped.\n$"));
}

TEST(CheckSettingsTest, NamesTheOptionThatIsWrong) {
  std::ostringstream errors;
  EXPECT_EQ(CheckSettings(nullptr, nullptr, errors), kDone);
  EXPECT_EQ(CheckSettings("", "", errors), kDone);
  EXPECT_EQ(CheckSettings("loss=1%", "0x10", errors), kDone);
  EXPECT_THAT(errors.str(), IsEmpty());
  EXPECT_EQ(CheckSettings("loss=101%", "1", errors), kWrongUsage);
  EXPECT_THAT(errors.str(), ContainsRegex("^simhca: run: --faults: 'loss=101%' is .*--help.\n$"));
  errors.str("");
  EXPECT_EQ(CheckSettings("loss=1%", "1x", errors), kWrongUsage);
  EXPECT_THAT(errors.str(), ContainsRegex("^simhca: run: --seed: '1x' is .*--help.\n$"));
}

}  // namespace
}  // namespace simhca
