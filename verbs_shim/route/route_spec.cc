#include "verbs_shim/route/route_spec.h"

#include <algorithm>

namespace simhca::route {
namespace {

constexpr char kAccepted[] =
    "accepted are sim, hw, both, auto, or a list of sim, hw, sim:DEVICE and hw:DEVICE";

std::optional<RouteTerm> ParseTerm(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view source = text.substr(0, colon);
  RouteTerm term;
  if (source == "hw") {
    term.source = DeviceSource::kHardware;
  } else if (source != "sim") {
    return std::nullopt;
  }
  if (colon != std::string_view::npos) {
    term.device = text.substr(colon + 1);
    if (term.device.empty()) return std::nullopt;
  }
  return term;
}

}  // namespace

bool RouteSpec::Uses(DeviceSource source) const {
  return automatic || std::any_of(terms.begin(), terms.end(), [source](const RouteTerm& term) {
           return term.source == source;
         });
}

std::optional<RouteSpec> ParseRoute(std::string_view text, std::string* error) {
  RouteSpec spec;
  if (text == "auto") {
    spec.automatic = true;
    return spec;
  }
  if (text.empty()) text = "sim";
  if (text == "both") text = "sim,hw";
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    const std::optional<RouteTerm> term = ParseTerm(part);
    if (!term) {
      *error = "'" + std::string(part) + "' is not a route: " + kAccepted;
      return std::nullopt;
    }
    spec.terms.push_back(*term);
    begin = end + 1;
  }
  return spec;
}

}  // namespace simhca::route
