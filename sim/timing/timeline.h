#ifndef SIMHCA_SIM_TIMING_TIMELINE_H_
#define SIMHCA_SIM_TIMING_TIMELINE_H_

#include <algorithm>

#include "sim/timing/time.h"

namespace simhca {

// A resource of the device model that serves one request at a time, first come first served: a
// PCIe direction, the packet pipeline, the wire.  O(1), no allocation.
class Timeline {
 public:
  // Takes the resource for `service` (>= 0) as soon as it is free at or after `arrival`.  Returns
  // when the service is complete.
  Time Reserve(Time arrival, Duration service) {
    next_free_ = std::max(arrival, next_free_) + service;
    busy_ += service;
    return next_free_;
  }

  // From here on the resource is idle.
  Time next_free() const { return next_free_; }
  // Sum of all service so far: utilisation is busy() over elapsed time.
  Duration busy() const { return busy_; }

 private:
  Time next_free_ = 0;
  Duration busy_ = 0;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_TIMING_TIMELINE_H_
