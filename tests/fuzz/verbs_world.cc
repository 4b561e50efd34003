#include "tests/fuzz/verbs_world.h"

#include <sys/mman.h>

#include <cstdlib>
#include <string>

#include "sim/device/engine.h"
#include "sim/profiles/profile_loader.h"
#include "tests/fuzz/input.h"
#include "tests/unit/device/loopback_fabric.h"

namespace simhca {
namespace fuzz {
namespace {

World* living = nullptr;

// The driver reads its settings once, at the first use.
[[maybe_unused]] const bool settings = [] {
  unsetenv("SIMHCA_PROFILE");
  setenv("SIMHCA_CLOCK", "virtual", 1);
  setenv("SIMHCA_DEVICES", "2", 1);
  setenv("SIMHCA_DEVICE", "simhca1=connectx5", 1);
  return true;
}();

// What the driver starts: it forwards to the devices of the world that lives.
class WorldEngine final : public Engine {
 public:
  size_t device_count() const override { return World::kDevices; }
  Device& device(size_t index) override { return living->device(index); }
  void Quiesce(Duration) override {}
  void Abandon() override {}
  std::string CounterReport() const override { return ""; }
};

const DeviceProfile& ProfileOf(const char* name) {
  const ProfileResult result = FindProfile(name);
  Require(result.profile.has_value(), "built-in profiles load");
  return *new DeviceProfile(*result.profile);
}

}  // namespace

World::World() : progress_(std::make_unique<LoopbackFabric>(), ClockMode::kVirtual) {
  static const DeviceProfile& generic = ProfileOf("generic");
  static const DeviceProfile& connectx5 = ProfileOf("connectx5");
  devices_[0] = std::make_unique<Hca>(generic, 0, progress_);
  devices_[1] = std::make_unique<Hca>(connectx5, 1, progress_);
  living = this;
}

World::~World() { living = nullptr; }

std::byte* Arena::memory() {
  static std::byte* const memory = [] {
    constexpr size_t kGuard = 4096;
    void* mapped =
        mmap(nullptr, kBytes + 2 * kGuard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    Require(mapped != MAP_FAILED, "there is memory");
    auto* start = static_cast<std::byte*>(mapped) + kGuard;
    Require(mprotect(start, kBytes, PROT_READ | PROT_WRITE) == 0, "memory can be used");
    return start;
  }();
  return memory;
}

}  // namespace fuzz

int Engine::Start(const EngineOptions&, std::unique_ptr<Engine>* engine, std::string*) {
  *engine = std::make_unique<fuzz::WorldEngine>();
  return 0;
}

}  // namespace simhca
