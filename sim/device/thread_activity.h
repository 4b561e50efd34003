#ifndef SIMHCA_SIM_DEVICE_THREAD_ACTIVITY_H_
#define SIMHCA_SIM_DEVICE_THREAD_ACTIVITY_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "sim/timing/clock.h"

namespace simhca {

// Which threads got something done with their last verbs call.  Virtual time stands still while
// another thread may be at work between two calls: at most 20 ms of wall time, since it may also
// have gone to wait for something else.  Under the engine's lock.
class ThreadActivity {
 public:
  void NoteProductive() {
    const uint64_t self = ThisThread();
    const int64_t now = WallClock::CoarseNanoseconds();
    for (Entry& entry : busy_) {
      if (entry.thread == self) {
        entry.since_ns = now;
        return;
      }
    }
    busy_.push_back({self, now});
  }

  void NoteIdle() {
    const uint64_t self = ThisThread();
    std::erase_if(busy_, [self](const Entry& entry) { return entry.thread == self; });
  }

  // Whether a thread other than those that were noted as idle may be at work.
  bool AnyBusy() {
    if (busy_.empty()) return false;
    const int64_t oldest = WallClock::CoarseNanoseconds() - kPatienceNs;
    std::erase_if(busy_, [oldest](const Entry& entry) { return entry.since_ns < oldest; });
    return !busy_.empty();
  }

 private:
  static constexpr int64_t kPatienceNs = 20'000'000;
  struct Entry {
    uint64_t thread;
    int64_t since_ns;
  };

  static uint64_t ThisThread() {
    static std::atomic<uint64_t> next{1};
    thread_local const uint64_t id = next.fetch_add(1, std::memory_order_relaxed);
    return id;
  }

  std::vector<Entry> busy_;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_DEVICE_THREAD_ACTIVITY_H_
