#ifndef SIMHCA_SIM_WIRE_PSN_H_
#define SIMHCA_SIM_WIRE_PSN_H_

#include <cstdint>

namespace simhca {

// Packet sequence numbers: 24 bits, on a circle.
inline constexpr uint32_t kPsnMask = 0xffffff;

constexpr uint32_t PsnAdd(uint32_t psn, uint32_t count) { return (psn + count) & kPsnMask; }
constexpr uint32_t PsnSubtract(uint32_t psn, uint32_t count) { return (psn - count) & kPsnMask; }

// How far `a` is ahead of `b`: in [-2^23, 2^23), negative if it is behind.
constexpr int32_t PsnDistance(uint32_t a, uint32_t b) {
  return static_cast<int32_t>((a - b) << 8) >> 8;
}

}  // namespace simhca

#endif  // SIMHCA_SIM_WIRE_PSN_H_
