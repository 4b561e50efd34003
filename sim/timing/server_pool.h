#ifndef SIMHCA_SIM_TIMING_SERVER_POOL_H_
#define SIMHCA_SIM_TIMING_SERVER_POOL_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/timing/time.h"

namespace simhca {

// A fixed number of equal servers: read requests that may be in flight, misses that may be served
// at a time.  Of the servers that are free at a request's time it takes the one that became free
// last, so that requests made for later do not keep all others waiting.  A few dozen servers; no
// allocation after construction.
class ServerPool {
 public:
  explicit ServerPool(uint32_t servers);  // >= 1

  // Takes a server as soon as one is free at or after `at`; returns when.  Release() must follow
  // before the next Take().
  Time Take(Time at);
  // The server taken last is free again from `until` on.
  void Release(Time until);

 private:
  std::vector<Time> free_;  // when each is free, ascending
  size_t taken_ = 0;
};

// What brings contexts from host memory: each miss takes the same time on one of K servers.
class MissUnit {
 public:
  MissUnit(uint32_t servers, Duration miss) : servers_(servers), miss_(miss) {}

  // A miss noticed at `at`: when the context is on the chip.
  Time Serve(Time at) {
    const Time done = servers_.Take(at) + miss_;
    servers_.Release(done);
    ++served_;
    return done;
  }

  uint64_t served() const { return served_; }

 private:
  ServerPool servers_;
  const Duration miss_;
  uint64_t served_ = 0;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_TIMING_SERVER_POOL_H_
