#ifndef SIMHCA_VERBS_SHIM_ROUTE_ROUTE_SPEC_H_
#define SIMHCA_VERBS_SHIM_ROUTE_ROUTE_SPEC_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace simhca::route {

enum class DeviceSource { kSimulator, kHardware };

// One element of a route: the devices of one source, or the one of them with this name.
struct RouteTerm {
  DeviceSource source = DeviceSource::kSimulator;
  std::string device;  // empty: all

  bool Admits(DeviceSource a_source, std::string_view name) const {
    return source == a_source && (device.empty() || device == name);
  }
};

// Which devices a program is shown, in the order of the terms (SIMHCA_ROUTE).
struct RouteSpec {
  bool automatic = false;  // hardware if there is any, else the simulator; no terms
  std::vector<RouteTerm> terms;

  bool Uses(DeviceSource source) const;
};

// Reads `sim`, `hw`, `both` (`sim,hw`), `auto`, or a comma-separated list of `sim`, `hw`,
// `sim:DEVICE` and `hw:DEVICE`.  An empty text is `sim`.  On a mistake returns nullopt and says in
// `error` what is accepted.
std::optional<RouteSpec> ParseRoute(std::string_view text, std::string* error);

}  // namespace simhca::route

#endif  // SIMHCA_VERBS_SHIM_ROUTE_ROUTE_SPEC_H_
