#ifndef SIMHCA_SIM_PROFILES_BUILTIN_PROFILES_H_
#define SIMHCA_SIM_PROFILES_BUILTIN_PROFILES_H_

#include <span>
#include <string_view>

namespace simhca {

// The text of a *.toml file of this folder, compiled in.
struct BuiltinProfile {
  std::string_view name;
  std::string_view toml;
};

// Sorted by name.
std::span<const BuiltinProfile> BuiltinProfiles();

}  // namespace simhca

#endif  // SIMHCA_SIM_PROFILES_BUILTIN_PROFILES_H_
