#ifndef SIMHCA_SIM_TIMING_GAP_TIMELINE_H_
#define SIMHCA_SIM_TIMING_GAP_TIMELINE_H_

#include <cstddef>
#include <vector>

#include "sim/timing/time.h"

namespace simhca {

// A resource that serves one request at a time, like Timeline, for requests that are not made in
// the order of their times: what is reserved for later leaves the time before it to others.  A
// chain of host reads is reserved microseconds ahead, and must not hold up what happens meanwhile.
//
// It remembers the latest kMostGaps idle periods.  What would have fitted into a forgotten one
// comes later.  No allocation after construction.
class GapTimeline {
 public:
  static constexpr size_t kMostGaps = 128;

  // Idle periods shorter than `shortest_gap` are not remembered: nothing is as short as that.
  explicit GapTimeline(Duration shortest_gap);

  // Takes the resource for `service` (>= 0), in one piece, at the first idle period at or after
  // `arrival`.  Returns when the service is complete.
  Time Reserve(Time arrival, Duration service);

  // From here on the resource is idle.
  Time next_free() const { return next_free_; }
  // Sum of all service so far: utilisation is busy() over elapsed time.
  Duration busy() const { return busy_; }

 private:
  struct Gap {
    Time begin;
    Time end;
  };

  // Puts [begin, end) before gaps_[index] unless it is too short.
  void Insert(size_t index, Time begin, Time end);

  const Duration shortest_gap_;
  std::vector<Gap> gaps_;  // in the order of time
  Time next_free_ = 0;
  Duration busy_ = 0;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_TIMING_GAP_TIMELINE_H_
