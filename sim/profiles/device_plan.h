#ifndef SIMHCA_SIM_PROFILES_DEVICE_PLAN_H_
#define SIMHCA_SIM_PROFILES_DEVICE_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/profiles/profile.h"

namespace simhca {

// A device that a process is to have: port `index` of the fabric.
struct PlannedDevice {
  std::string name;  // simhca0, simhca1, ...
  DeviceProfile profile;
};

struct DevicePlan {
  std::vector<PlannedDevice> devices;
  std::string error;  // not empty: the settings were refused, and why

  bool ok() const { return error.empty(); }
};

inline constexpr uint32_t kMaxDevices = 64;

// What the settings of ./simhca run ask for.  Null or empty means: not given.
//   count      SIMHCA_DEVICES: number of devices, 0..kMaxDevices; 1 if not given
//   profile    SIMHCA_PROFILE: name or path for all devices; generic if not given
//   overrides  SIMHCA_DEVICE: "simhca1=efa,simhca2=./mine.toml", profiles of single devices
DevicePlan PlanDevices(const char* count, const char* profile, const char* overrides);

// The same from the environment of this process.
DevicePlan PlanDevicesFromEnvironment();

std::string DeviceName(uint32_t index);
// The index below kMaxDevices of which this is the name, as DeviceName writes it: not of simhca00.
std::optional<uint32_t> DeviceIndex(std::string_view name);

}  // namespace simhca

#endif  // SIMHCA_SIM_PROFILES_DEVICE_PLAN_H_
