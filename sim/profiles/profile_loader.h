#ifndef SIMHCA_SIM_PROFILES_PROFILE_LOADER_H_
#define SIMHCA_SIM_PROFILES_PROFILE_LOADER_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/profiles/profile.h"

namespace simhca {

// A profile, or why there is none: "FILE:LINE: what is wrong, and what is accepted".
struct ProfileResult {
  std::optional<DeviceProfile> profile;
  std::string error;

  explicit operator bool() const { return profile.has_value(); }
};

// Reads a profile in TOML.  `file_name` is for messages only.  What the text leaves out comes from
// the built-in profile that `base` names, "generic" if there is no such key.  Sections are
// identity, limits, port, features and costs; a value is written plainly, or with its source:
//
//   base = "connectx5"
//   [limits]
//   source = "ibv_devinfo -v"              # of all values of the section that have no other
//   max_qp = 1024
//   [costs]                                # here every value must have a source of its own
//   pcie_read_latency = { value = 550, unit = "ns", source = "assumed" }
ProfileResult ParseProfile(std::string_view toml, std::string_view file_name);

ProfileResult LoadProfileFile(const std::string& path);

// A built-in profile by name; a file if the text contains a slash or ends in ".toml".
ProfileResult FindProfile(std::string_view name_or_path);

// Built into the program: no files are needed at run time.  Sorted.
std::vector<std::string_view> BuiltinProfileNames();

}  // namespace simhca

#endif  // SIMHCA_SIM_PROFILES_PROFILE_LOADER_H_
