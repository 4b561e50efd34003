#include "sim/device/simulation.h"

#include <algorithm>

#include "sim/fabric/private_fabric.h"

namespace simhca {

namespace {

constexpr uint32_t kInFlightPerDevice = 256 * 1024;
constexpr uint32_t kMostInFlight = 64 * 1024 * 1024;

std::unique_ptr<Fabric> MakeFabric(const std::vector<DeviceProfile>& profiles) {
  std::vector<LinkModel> wires;
  for (const DeviceProfile& profile : profiles) wires.push_back(WireOf(profile.costs));
  const size_t in_flight = std::min<size_t>(kMostInFlight, profiles.size() * kInFlightPerDevice);
  return std::make_unique<PrivateFabric>(std::move(wires), static_cast<uint32_t>(in_flight));
}

}  // namespace

Simulation::Simulation(const std::vector<DeviceProfile>& profiles)
    : progress_(MakeFabric(profiles), ClockMode::kVirtual) {
  uint16_t port = 0;
  for (const DeviceProfile& profile : profiles) {
    devices_.push_back(std::make_unique<Hca>(profile, port++, progress_));
  }
}

}  // namespace simhca
