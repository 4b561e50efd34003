#ifndef SIMHCA_TESTS_FUZZ_VERBS_WORLD_H_
#define SIMHCA_TESTS_FUZZ_VERBS_WORLD_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "sim/device/hca.h"
#include "sim/device/progress.h"

namespace simhca::fuzz {

// Two devices under virtual time for the driver to open, without a fabric, a thread or a clock that
// others could see: an input does the same every time.  One at a time; the driver's engine is
// whichever lives.
class World {
 public:
  World();
  ~World();

  static constexpr size_t kDevices = 2;  // simhca0 is generic, simhca1 is connectx5
  Hca& device(size_t index) { return *devices_[index]; }

 private:
  Progress progress_;
  std::unique_ptr<Hca> devices_[kDevices];
};

// The program's memory, with pages around it that nobody may touch.
class Arena {
 public:
  static constexpr size_t kBytes = 16384;
  static std::byte* memory();
};

}  // namespace simhca::fuzz

#endif  // SIMHCA_TESTS_FUZZ_VERBS_WORLD_H_
