#ifndef SIMHCA_VERBS_SHIM_DRIVER_RING_MEMORY_H_
#define SIMHCA_VERBS_SHIM_DRIVER_RING_MEMORY_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "sim/queues/big_endian.h"

namespace simhca::driver {

// Memory that the device reads or writes: a ring or a doorbell record.  Zeroed, and aligned so that
// rings start on a page and records do not share a cache line with anything else.
class RingMemory {
 public:
  RingMemory() = default;
  // Empty (data() is null) if there is no memory, or if `bytes` is 0.
  explicit RingMemory(size_t bytes) : size_(bytes) {
    if (bytes == 0) return;
    const size_t alignment = bytes >= kPage ? kPage : kCacheLine;
    void* memory = nullptr;
    if (posix_memalign(&memory, alignment, bytes) != 0) return;
    std::memset(memory, 0, bytes);
    data_ = static_cast<std::byte*>(memory);
  }
  RingMemory(RingMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  RingMemory& operator=(RingMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~RingMemory() { std::free(data_); }

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  static constexpr size_t kPage = 4096;
  static constexpr size_t kCacheLine = 64;

  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// A doorbell record of 32-bit big-endian words.  Whoever sees a stored word also sees all that was
// written to the ring before.
class DoorbellRecordMemory {
 public:
  DoorbellRecordMemory() : memory_(kBytes) {}

  std::byte* data() const { return memory_.data(); }
  void Store(int word, uint32_t value) {
    __atomic_store_n(reinterpret_cast<uint32_t*>(memory_.data()) + word,
                     std::bit_cast<uint32_t>(Be32{value}), __ATOMIC_RELEASE);
  }

 private:
  static constexpr size_t kBytes = 64;
  RingMemory memory_;
};

}  // namespace simhca::driver

#endif  // SIMHCA_VERBS_SHIM_DRIVER_RING_MEMORY_H_
