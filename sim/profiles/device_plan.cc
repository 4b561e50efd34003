#include "sim/profiles/device_plan.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "sim/profiles/profile_loader.h"

namespace simhca {
namespace {

constexpr std::string_view kNamePrefix = "simhca";

bool Given(const char* text) { return text != nullptr && *text != '\0'; }

// A decimal number that is all of `text` and at most `max`.
bool ParseCount(std::string_view text, uint32_t max, uint32_t* number) {
  const char* end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, *number);
  return status == std::errc() && stop == end && *number <= max;
}

// Applies one "simhca1=profile".
bool ApplyOverride(std::string_view item, DevicePlan* plan) {
  const size_t equals = item.find('=');
  const std::string_view name = item.substr(0, equals);
  const std::optional<uint32_t> index = DeviceIndex(name);
  if (equals == std::string_view::npos || !index) {
    plan->error = "SIMHCA_DEVICE: \"" + std::string(item) +
                  "\"; accepted is DEVICE=PROFILE, for "
                  "instance simhca1=connectx5, separated by commas";
    return false;
  }
  if (*index >= plan->devices.size()) {
    plan->error = "SIMHCA_DEVICE: there is no " + std::string(name) + ", only " +
                  std::to_string(plan->devices.size()) + " device(s); see SIMHCA_DEVICES";
    return false;
  }
  ProfileResult found = FindProfile(item.substr(equals + 1));
  if (!found) {
    plan->error = "SIMHCA_DEVICE: " + found.error;
    return false;
  }
  plan->devices[*index].profile = *std::move(found.profile);
  return true;
}

DevicePlan Refused(std::string error) {
  DevicePlan plan;
  plan.error = std::move(error);
  return plan;
}

}  // namespace

std::string DeviceName(uint32_t index) { return std::string(kNamePrefix) + std::to_string(index); }

std::optional<uint32_t> DeviceIndex(std::string_view name) {
  uint32_t index = 0;
  if (!name.starts_with(kNamePrefix) ||
      !ParseCount(name.substr(kNamePrefix.size()), kMaxDevices - 1, &index)) {
    return std::nullopt;
  }
  return DeviceName(index) == name ? std::optional(index) : std::nullopt;
}

DevicePlan PlanDevices(const char* count, const char* profile, const char* overrides) {
  uint32_t number = 1;
  if (Given(count) && !ParseCount(count, kMaxDevices, &number)) {
    return Refused("SIMHCA_DEVICES: \"" + std::string(count) + "\"; accepted is 0 to " +
                   std::to_string(kMaxDevices));
  }
  const ProfileResult found = FindProfile(Given(profile) ? profile : "generic");
  if (!found) return Refused("SIMHCA_PROFILE: " + found.error);

  DevicePlan plan;
  for (uint32_t i = 0; i < number; ++i) plan.devices.push_back({DeviceName(i), *found.profile});
  std::string_view rest = Given(overrides) ? overrides : "";
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    if (!ApplyOverride(rest.substr(0, comma), &plan)) return Refused(plan.error);
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
  }
  return plan;
}

DevicePlan PlanDevicesFromEnvironment() {
  return PlanDevices(std::getenv("SIMHCA_DEVICES"), std::getenv("SIMHCA_PROFILE"),
                     std::getenv("SIMHCA_DEVICE"));
}

}  // namespace simhca
