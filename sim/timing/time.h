#ifndef SIMHCA_SIM_TIMING_TIME_H_
#define SIMHCA_SIM_TIMING_TIME_H_

#include <cstdint>
#include <limits>

namespace simhca {

// Picoseconds since the fabric's epoch; 63 bits reach 106 days.
using Time = int64_t;
// Picoseconds between two times.
using Duration = int64_t;

inline constexpr Duration kPicosecond = 1;
inline constexpr Duration kNanosecond = 1000;
inline constexpr Duration kMicrosecond = 1000 * kNanosecond;
inline constexpr Duration kMillisecond = 1000 * kMicrosecond;
inline constexpr Duration kSecond = 1000 * kMillisecond;

// Later than anything that happens.  As a duration: without limit.
inline constexpr Time kNever = std::numeric_limits<Time>::max();

// `time + duration` (>= 0), or kNever where the sum would not fit or either is kNever.
constexpr Time SaturatingAdd(Time time, Duration duration) {
  Time sum = 0;
  const bool never = time == kNever || duration == kNever;
  return never || __builtin_add_overflow(time, duration, &sum) ? kNever : sum;
}

// Whole nanoseconds, rounded towards zero.
constexpr int64_t ToNanoseconds(Duration duration) { return duration / kNanosecond; }
constexpr Duration FromNanoseconds(int64_t nanoseconds) { return nanoseconds * kNanosecond; }

// Time to move `bytes` at `bits_per_second` (> 0), rounded up to a picosecond.  Exact below
// 2 MiB; larger amounts are computed in 128 bits.
constexpr Duration TransferTime(uint64_t bytes, uint64_t bits_per_second) {
  constexpr uint64_t kPicosecondsPerByteBit = uint64_t{8} * kSecond;
  if (bytes < (uint64_t{1} << 21)) {
    return static_cast<Duration>((bytes * kPicosecondsPerByteBit + bits_per_second - 1) /
                                 bits_per_second);
  }
  const unsigned __int128 bits = static_cast<unsigned __int128>(bytes) * kPicosecondsPerByteBit;
  return static_cast<Duration>((bits + bits_per_second - 1) / bits_per_second);
}

// Ticks of a clock of `kilohertz` at `time` (>= 0): what a device's free-running counter shows.
constexpr uint64_t ToTicks(Time time, uint64_t kilohertz) {
  const unsigned __int128 product = static_cast<unsigned __int128>(time) * kilohertz;
  return static_cast<uint64_t>(product / kMillisecond);
}

}  // namespace simhca

#endif  // SIMHCA_SIM_TIMING_TIME_H_
