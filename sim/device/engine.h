#ifndef SIMHCA_SIM_DEVICE_ENGINE_H_
#define SIMHCA_SIM_DEVICE_ENGINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/device/device.h"
#include "sim/fabric/fault_plan.h"
#include "sim/profiles/profile.h"
#include "sim/timing/clock.h"

namespace simhca {

struct EngineOptions {
  std::string fabric;  // empty: the default of this user
  ClockMode clock = ClockMode::kWall;
  FaultPlan faults;   // of packets that arrive at this process
  uint64_t seed = 1;  // of everything that is drawn
  // File for a trace of what the devices do, under virtual time; empty: none.
  std::string timeline;
  bool background_thread = true;
  // Take messages for the log; may be empty.
  std::function<void(const std::string&)> warn;
  std::function<void(const std::string&)> error;  // connections were lost, and why
  std::vector<DeviceProfile> devices;             // port i of the fabric is devices[i]
};

// The simulated devices of one process: their shared lock, fabric membership, clock, timers and
// background thread.
class Engine {
 public:
  // Returns 0, or a positive errno with an explanation (see Fabric::Join).
  static int Start(const EngineOptions& options, std::unique_ptr<Engine>* engine,
                   std::string* error);

  virtual ~Engine() = default;

  virtual size_t device_count() const = 0;
  virtual Device& device(size_t index) = 0;

  // At exit: joins the background thread, drains what is queued for at most `limit` and leaves the
  // fabric.  Calls made later still work, inline, but reach nobody.
  virtual void Quiesce(Duration limit) = 0;

  // In a forked child: gives up the parent's engine without touching what they share.
  virtual void Abandon() = 0;

  // Counters as "name value" lines, for reports.
  virtual std::string CounterReport() const = 0;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_DEVICE_ENGINE_H_
