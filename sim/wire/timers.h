#ifndef SIMHCA_SIM_WIRE_TIMERS_H_
#define SIMHCA_SIM_WIRE_TIMERS_H_

#include <cstdint>

#include "sim/timing/time.h"

namespace simhca {

// What a requester waits after an RNR NAK with this timer code, 0..31 (higher bits are ignored).
// The values are those of enum ib_rnr_timeout in Linux; code 0 is the longest, 655.36 ms.
constexpr Duration RnrDelay(uint8_t code) {
  constexpr uint32_t kTensOfMicroseconds[32] = {
      65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
      48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
      2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
  return kTensOfMicroseconds[code & 0x1f] * (10 * kMicrosecond);
}

// ACK timeout of a queue pair's timeout code, 0..31: 4.096 us * 2^code; 0 means that the requester
// waits for ever.
constexpr Duration AckTimeout(uint8_t code) {
  code &= 0x1f;
  return code == 0 ? kNever : (4096 * kNanosecond) << code;
}

// Path MTU of a code 1..5 in bytes: 256, 512, 1024, 2048, 4096.  0 for another code.
constexpr uint32_t PathMtuBytes(uint8_t code) { return code >= 1 && code <= 5 ? 128u << code : 0; }

// The largest code whose MTU is not above `bytes`; 0 below 256.
constexpr uint8_t PathMtuCode(uint32_t bytes) {
  uint8_t code = 0;
  while (code < 5 && PathMtuBytes(static_cast<uint8_t>(code + 1)) <= bytes) ++code;
  return code;
}

}  // namespace simhca

#endif  // SIMHCA_SIM_WIRE_TIMERS_H_
