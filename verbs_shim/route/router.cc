#include "verbs_shim/route/router.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "verbs_shim/driver/driver.h"
#include "verbs_shim/route/real_library.h"
#include "verbs_shim/route/route_spec.h"

namespace simhca::route {
namespace {

std::optional<RouteSpec> ReadRoute() {
  const char* text = std::getenv("SIMHCA_ROUTE");
  std::string error;
  std::optional<RouteSpec> spec = ParseRoute(text == nullptr ? "" : text, &error);
  if (!spec) std::fprintf(stderr, "simhca: SIMHCA_ROUTE: %s\n", error.c_str());
  return spec;
}

// The process's route; nullopt if SIMHCA_ROUTE is wrong.  Never destroyed: programs call verbs
// from their own exit handlers.
const std::optional<RouteSpec>& Route() {
  static const auto* const route = new std::optional<RouteSpec>(ReadRoute());
  return *route;
}

// Set when route `auto` has found no hardware: nothing is forwarded from then on.
std::atomic<bool> automatic_found_none{false};

// The real library's list; freed with it.
class RealList {
 public:
  RealList() = default;
  RealList(const RealList&) = delete;
  RealList& operator=(const RealList&) = delete;
  ~RealList() { Free(list_); }

  // Returns 0, or a positive errno.
  int Load() {
    static constinit RealVerb<decltype(ibv_get_device_list)> get("ibv_get_device_list",
                                                                 "IBVERBS_1.1");
    auto* call = get.Get();
    if (call == nullptr) return ENOSYS;
    errno = 0;
    list_ = call(&count_);
    if (list_ == nullptr) return errno != 0 ? errno : ENOSYS;
    return 0;
  }

  int count() const { return count_; }
  ibv_device* operator[](int index) const { return list_[index]; }
  ibv_device** release() { return std::exchange(list_, nullptr); }

  static void Free(ibv_device** list) {
    static constinit RealVerb<decltype(ibv_free_device_list)> free_list("ibv_free_device_list",
                                                                        "IBVERBS_1.1");
    if (auto* call = free_list.For(list)) call(list);
  }

 private:
  ibv_device** list_ = nullptr;
  int count_ = 0;
};

void AppendOnce(ibv_device* device, std::vector<ibv_device*>* devices) {
  if (std::find(devices->begin(), devices->end(), device) == devices->end()) {
    devices->push_back(device);
  }
}

void Append(const RouteTerm& term, const std::vector<ibv_device*>& simulated, const RealList& real,
            std::vector<ibv_device*>* devices) {
  for (ibv_device* device : simulated) {
    if (term.Admits(DeviceSource::kSimulator, driver::GetDeviceName(device))) {
      AppendOnce(device, devices);
    }
  }
  for (int i = 0; i < real.count(); ++i) {
    if (term.Admits(DeviceSource::kHardware, real[i]->name)) AppendOnce(real[i], devices);
  }
}

// The devices of `spec` in its order.  Returns 0 or a positive errno.
int Collect(RouteSpec spec, RealList* real, std::vector<ibv_device*>* devices) {
  if (spec.Uses(DeviceSource::kHardware)) {
    const int error = real->Load();
    const bool only_hardware = !spec.Uses(DeviceSource::kSimulator);
    if (error != 0 && only_hardware) return error;
  }
  if (spec.automatic) {
    const bool found = real->count() > 0;
    if (!found) {
      RealList::Free(real->release());
      automatic_found_none = true;
    }
    spec.automatic = false;
    spec.terms = {{found ? DeviceSource::kHardware : DeviceSource::kSimulator, ""}};
  }
  std::vector<ibv_device*> simulated;
  if (spec.Uses(DeviceSource::kSimulator)) {
    if (const int error = driver::GetDevices(&simulated); error != 0) return error;
  }
  for (const RouteTerm& term : spec.terms) Append(term, simulated, *real, devices);
  return 0;
}

}  // namespace

bool ForwardsToHardware() {
  const std::optional<RouteSpec>& route = Route();
  return route && route->Uses(DeviceSource::kHardware) && !automatic_found_none;
}

// The slot before the array holds the real library's list.
ibv_device** ListDevices(int* count) {
  if (count != nullptr) *count = 0;
  if (!Route()) {
    errno = EINVAL;
    return nullptr;
  }
  RealList real;
  std::vector<ibv_device*> devices;
  if (const int error = Collect(*Route(), &real, &devices); error != 0) {
    errno = error;
    return nullptr;
  }
  auto** block = static_cast<void**>(std::calloc(devices.size() + 2, sizeof(void*)));
  if (block == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  block[0] = real.release();
  auto** list = reinterpret_cast<ibv_device**>(block + 1);
  std::copy(devices.begin(), devices.end(), list);
  if (count != nullptr) *count = static_cast<int>(devices.size());
  return list;
}

void FreeDevices(ibv_device** list) {
  if (list == nullptr) return;
  void** block = reinterpret_cast<void**>(list) - 1;
  RealList::Free(static_cast<ibv_device**>(block[0]));
  std::free(block);
}

}  // namespace simhca::route
