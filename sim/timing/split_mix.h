#ifndef SIMHCA_SIM_TIMING_SPLIT_MIX_H_
#define SIMHCA_SIM_TIMING_SPLIT_MIX_H_

#include <cstdint>

namespace simhca {

// SplitMix64 (Steele, Lea, Flood 2014): what is drawn at random in a simulation, the same sequence
// from the same seed on every machine.
class SplitMix {
 public:
  explicit SplitMix(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t value = state_;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return value ^ (value >> 31);
  }

 private:
  uint64_t state_;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_TIMING_SPLIT_MIX_H_
