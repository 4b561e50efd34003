#include "verbs_shim/driver/process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <map>
#include <string>

#include "verbs_shim/driver/driver.h"

namespace simhca::driver {
namespace {

using Settings = std::map<std::string, std::string>;

struct Outcome {
  int result = -1;      // of GetDevices
  int devices = -1;     // how many
  std::string message;  // on standard error
};

// The settings are read once in the life of a process, so each case gets a process of its own.
Outcome ListDevicesWith(const Settings& settings) {
  int results[2], messages[2];
  EXPECT_EQ(pipe(results), 0);
  EXPECT_EQ(pipe(messages), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(messages[1], STDERR_FILENO);
    for (const char* name : {"SIMHCA_PROFILE", "SIMHCA_DEVICES", "SIMHCA_DEVICE", "SIMHCA_CLOCK",
                             "SIMHCA_FABRIC", "SIMHCA_SEED", "SIMHCA_FAULTS", "SIMHCA_LOG"}) {
      unsetenv(name);
    }
    for (const auto& [name, value] : settings) setenv(name.c_str(), value.c_str(), 1);
    std::vector<ibv_device*> devices;
    int answer[2];
    answer[0] = GetDevices(&devices);
    answer[1] = static_cast<int>(devices.size());
    _exit(write(results[1], answer, sizeof(answer)) == sizeof(answer) ? 0 : 1);
  }
  close(results[1]);
  close(messages[1]);
  Outcome outcome;
  int answer[2];
  if (read(results[0], answer, sizeof(answer)) == sizeof(answer)) {
    outcome.result = answer[0];
    outcome.devices = answer[1];
  }
  char text[512];
  for (ssize_t bytes; (bytes = read(messages[0], text, sizeof(text))) > 0;) {
    outcome.message.append(text, static_cast<size_t>(bytes));
  }
  close(results[0]);
  close(messages[0]);
  waitpid(child, nullptr, 0);
  return outcome;
}

TEST(SettingsTest, WithoutAnyThereIsOneDevice) {
  const Outcome outcome = ListDevicesWith({});
  EXPECT_EQ(outcome.result, 0);
  EXPECT_EQ(outcome.devices, 1);
  EXPECT_EQ(outcome.message, "");
}

TEST(SettingsTest, TheNumberOfDevicesCanBeChosen) {
  EXPECT_EQ(ListDevicesWith({{"SIMHCA_DEVICES", "5"}}).devices, 5);
  EXPECT_EQ(ListDevicesWith({{"SIMHCA_DEVICES", "0"}}).devices, 0);
}

TEST(SettingsTest, AnEmptySettingIsNone) {
  EXPECT_EQ(ListDevicesWith({{"SIMHCA_CLOCK", ""}, {"SIMHCA_SEED", ""}}).result, 0);
}

TEST(SettingsTest, GoodValuesAreAccepted) {
  const Outcome outcome = ListDevicesWith({{"SIMHCA_CLOCK", "virtual"},
                                           {"SIMHCA_SEED", "0x10"},
                                           {"SIMHCA_LOG", "debug"},
                                           {"SIMHCA_PROFILE", "connectx5"}});
  EXPECT_EQ(outcome.result, 0);
  EXPECT_EQ(outcome.devices, 1);
}

TEST(SettingsTest, ABadValueGetsOneLineThatNamesIt) {
  for (const auto& [name, value] : Settings{{"SIMHCA_CLOCK", "sundial"},
                                            {"SIMHCA_SEED", "12x"},
                                            {"SIMHCA_SEED", "18446744073709551616"},
                                            {"SIMHCA_FAULTS", "loss=101%"},
                                            {"SIMHCA_LOG", "loud"},
                                            {"SIMHCA_DEVICES", "many"},
                                            {"SIMHCA_PROFILE", "nosuchprofile"},
                                            {"SIMHCA_DEVICE", "simhca0"}}) {
    const Outcome outcome = ListDevicesWith({{name, value}});
    EXPECT_EQ(outcome.result, EINVAL) << name;
    EXPECT_EQ(outcome.devices, 0) << name;
    EXPECT_NE(outcome.message.find(value), std::string::npos) << outcome.message;
    EXPECT_EQ(outcome.message.find('\n'), outcome.message.size() - 1) << outcome.message;
  }
}

}  // namespace
}  // namespace simhca::driver
