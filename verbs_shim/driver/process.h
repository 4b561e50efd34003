#ifndef SIMHCA_VERBS_SHIM_DRIVER_PROCESS_H_
#define SIMHCA_VERBS_SHIM_DRIVER_PROCESS_H_

#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sim/device/engine.h"
#include "sim/profiles/device_plan.h"
#include "verbs_shim/driver/objects.h"

namespace simhca::driver {

// uverbs numbers and device indices that the kernel does not give out: it has room for 1024.
inline constexpr size_t kFirstUverbsNumber = 10000;

// A device as applications see it.  Lives until the process ends.
struct ListedDevice {
  static constexpr Kind kKind = Kind::kDevice;
  // Real drivers keep private data behind ibv_device and compare the first word of it with their
  // own table: it must be there, and zero.
  static constexpr size_t kPrivateBytes = 64;

  ibv_device verbs{};
  std::byte private_area[kPrivateBytes]{};
  size_t index = 0;  // also the fabric's number of its port
  const DeviceProfile* profile = nullptr;
};

// What this process has of the simulated devices: its settings, read once from the environment,
// and its engine, started at the first open and kept until the process ends.
//   SIMHCA_PROFILE SIMHCA_DEVICES SIMHCA_DEVICE   see sim/profiles/device_plan.h
//   SIMHCA_CLOCK    wall or virtual
//   SIMHCA_FABRIC   name of the fabric
//   SIMHCA_SEED     of all randomness
//   SIMHCA_LOG      see log.h
//   SIMHCA_STATS    1: counters on standard error at exit
// A forked child keeps the settings and the devices and loses the rest: the parent's objects are
// dead there, and the first open starts an engine of its own.
class Process {
 public:
  static Process& Get();

  // Reads the settings if that has not been done.  Returns 0, or EINVAL after one line on
  // standard error; then there are no devices.
  int Configure();

  // After Configure.
  const std::vector<ListedDevice*>& devices() const { return devices_; }

  // The engine's side of a device; starts the engine if need be.  Returns 0 or a positive errno
  // after one line on standard error.
  int Open(const ListedDevice& device, Device** opened);

  const std::string& fabric() const { return options_.fabric; }

  // True for the first caller in the life of the process.
  bool FirstToWarnOfRnrTimer() { return !warned_of_rnr_timer_.exchange(true); }

  // Around a fork.
  void PrepareFork();
  void ParentAfterFork();
  void ChildAfterFork();

  // At exit: delivers what has been sent, reports.  Calls made later still work.
  void Finish();

 private:
  Process() = default;
  std::string ReadSettings();
  void ListDevices(const DevicePlan& plan);

  std::atomic<bool> warned_of_rnr_timer_{false};

  std::mutex mutex_;  // of all below; not taken on the data path
  bool configured_ = false;
  int configure_error_ = 0;
  bool report_counters_ = false;
  EngineOptions options_;
  std::vector<ListedDevice*> devices_;
  std::unique_ptr<Engine> engine_;
  std::vector<Engine*> abandoned_;  // engines of the processes that this one was forked from
};

}  // namespace simhca::driver

#endif  // SIMHCA_VERBS_SHIM_DRIVER_PROCESS_H_
