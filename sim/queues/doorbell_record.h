#ifndef SIMHCA_SIM_QUEUES_DOORBELL_RECORD_H_
#define SIMHCA_SIM_QUEUES_DOORBELL_RECORD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "sim/queues/big_endian.h"

namespace simhca {

// A word of host memory through which driver and device tell each other a running index.  The
// writer publishes everything it wrote before; the reader sees it.
class DoorbellRecord {
 public:
  DoorbellRecord() = default;
  DoorbellRecord(std::byte* record, int word) : word_(reinterpret_cast<uint32_t*>(record) + word) {}

  uint32_t Load() const {
    return Be32FromStored(std::atomic_ref<uint32_t>(*word_).load(std::memory_order_acquire));
  }
  void Store(uint32_t value) {
    std::atomic_ref<uint32_t>(*word_).store(Be32FromStored(value), std::memory_order_release);
  }

 private:
  static uint32_t Be32FromStored(uint32_t value) {
    return std::endian::native == std::endian::little ? ByteSwap(value) : value;
  }
  uint32_t* word_ = nullptr;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_QUEUES_DOORBELL_RECORD_H_
