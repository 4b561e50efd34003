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
  // Lets time go on until a program could see something: a completion or an event.  False if
  // nothing is under way and nothing ever will be.
  bool Advance() { return progress_.AdvanceToNextVisible(); }

  // The same, at most to `end`; the clock then stands at `end` if nothing could be seen before.
  bool AdvanceTo(Time end) { return progress_.AdvanceToNextVisible(end); }

  CounterSet& counters() { return progress_.counters; }

 private:
  Progress progress_;
  std::vector<std::unique_ptr<Hca>> devices_;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_DEVICE_SIMULATION_H_
