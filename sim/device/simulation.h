#ifndef SIMHCA_SIM_DEVICE_SIMULATION_H_
#define SIMHCA_SIM_DEVICE_SIMULATION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/device/hca.h"
#include "sim/device/progress.h"
#include "sim/profiles/profile.h"
#include "sim/timing/time.h"

namespace simhca {

// A simulation of up to kMaxFabricPorts devices on one fabric, all in this process, under virtual
// time and without a verbs shim: whoever drives it writes rings and rings doorbells as a driver
// does.  For one thread.  The same calls give the same times on every machine.
class Simulation {
 public:
  // Device i has profile i and port i.
  explicit Simulation(const std::vector<DeviceProfile>& profiles);

  size_t size() const { return devices_.size(); }
  Hca& device(size_t index) { return *devices_[index]; }

  Time Now() const { return progress_.Now(); }
  // Lets time go on until a program could see something, a completion or an event, but at most to
  // `end`: then the clock stands there, and the result is false.
  bool AdvanceTo(Time end) { return progress_.AdvanceToNextVisible(end); }

  // Calls `serve(index)` for each device that has delivered completions since the last call.
  template <typename Serve>
  void ForEachDelivery(Serve serve) {
    delivered_.swap(progress_.delivered);
    for (const uint16_t port : delivered_) {
      devices_[port]->model()->AnnounceDelivery();
      serve(size_t{port});
    }
    delivered_.clear();
  }

  CounterSet& counters() { return progress_.counters; }

 private:
  std::vector<uint16_t> delivered_;
  Progress progress_;
  std::vector<std::unique_ptr<Hca>> devices_;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_DEVICE_SIMULATION_H_
