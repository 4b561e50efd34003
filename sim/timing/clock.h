#ifndef SIMHCA_SIM_TIMING_CLOCK_H_
#define SIMHCA_SIM_TIMING_CLOCK_H_

#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/timing/time.h"

namespace simhca {

enum class ClockMode : uint8_t {
  kWall,     // no device model; timers and timestamps follow the monotonic clock
  kPaced,    // model on; a completion appears no earlier than its modelled time
  kVirtual,  // model on; time jumps from event to event
};

// "wall", "paced", "virtual": the names on the command line.
constexpr std::string_view ClockModeName(ClockMode mode) {
  switch (mode) {
    case ClockMode::kWall:
      return "wall";
    case ClockMode::kPaced:
      return "paced";
    case ClockMode::kVirtual:
      return "virtual";
  }
  return "?";
}

constexpr std::optional<ClockMode> ParseClockMode(std::string_view name) {
  for (ClockMode mode : {ClockMode::kWall, ClockMode::kPaced, ClockMode::kVirtual}) {
    if (name == ClockModeName(mode)) return mode;
  }
  return std::nullopt;
}

// Tells the fabric's time.  Only an engine reads a clock; everything below is given times.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time Now() const = 0;
};

// CLOCK_MONOTONIC, counted from the fabric's epoch so that all its processes agree.
class WallClock final : public Clock {
 public:
  // `epoch_ns`: CLOCK_MONOTONIC nanoseconds that are time zero.
  explicit WallClock(int64_t epoch_ns) : epoch_ns_(epoch_ns) {}

  Time Now() const override { return FromNanoseconds(MonotonicNanoseconds() - epoch_ns_); }

  // Does not enter the kernel.
  static int64_t MonotonicNanoseconds() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  }

  // The same to within a few milliseconds, for a fraction of the cost.
  static int64_t CoarseNanoseconds() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  }

 private:
  const int64_t epoch_ns_;
};

// Stands still until told to advance, by one thread at a time.  Starts at zero.
class VirtualClock final : public Clock {
 public:
  Time Now() const override { return now_.load(std::memory_order_relaxed); }
  // Times in the past are ignored: the clock never goes back.
  void AdvanceTo(Time time) { now_.store(std::max(Now(), time), std::memory_order_relaxed); }

 private:
  std::atomic<Time> now_{0};  // any thread may ask
};

// How far virtual time may move at each idle call: 100 ns at first, and 1/16 of the time that the
// streak has lasted, so that a stall of any length takes few calls and yet a caller can act within
// about 6 % of a chosen delay.  Never more than a second at once: a sender may be retrying all that
// time, and other threads wait meanwhile.
//
// Time has 106 days, and must last for a program that polls for hours in vain while its other
// threads do something else: steps stay small where nothing is due, and become small again beyond
// the longest stall that anything can be waited for.
class IdleStreak {
 public:
  // The largest step of the idle call that is being made, which is then counted as taken.  A step
  // that ends early is corrected with Undo.  `something_due`: a packet or a timer, perhaps hours
  // ahead.
  Duration NextStep(bool something_due) {
    const bool stalled = something_due && length_ < kLongestStall;
    const Duration step =
        std::clamp(length_ / 16, kShortestStep, stalled ? kLongestStep : kLongestVainStep);
    length_ += step;
    return step;
  }

  // The last step was cut short by `unused`.
  void Undo(Duration unused) { length_ -= std::min(unused, length_); }

  // A productive call: the next streak starts anew.
  void Reset() { length_ = 0; }

  Duration length() const { return length_; }

 private:
  static constexpr Duration kShortestStep = 100 * kNanosecond;
  static constexpr Duration kLongestStep = kSecond;
  static constexpr Duration kLongestVainStep = 10 * kMicrosecond;
  // 8 ACK timeouts of the largest code are 70,369 seconds.
  static constexpr Duration kLongestStall = 100'000 * kSecond;
  Duration length_ = 0;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_TIMING_CLOCK_H_
