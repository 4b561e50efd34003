#ifndef SIMHCA_VERBS_SHIM_DRIVER_SRQ_FREE_LIST_H_
#define SIMHCA_VERBS_SHIM_DRIVER_SRQ_FREE_LIST_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/profiles/profile.h"
#include "sim/queues/mlx5/layout.h"

namespace simhca::driver {

// The entries of an SRQ's ring that hold no work request, in the order in which they will be used.
// The order is written into the ring: the device finds the entry after the one it has just taken
// in that one's next_wqe_index.  So an entry can be used only once its successor is fixed, and the
// last one of the list is always kept back.
class SrqFreeList {
 public:
  // Chains all entries 0 -> 1 -> ... -> entries - 1.  `entries` is a power of two, at most 65536.
  SrqFreeList(SrqListOrder order, std::byte* ring, uint32_t stride, uint32_t entries);

  // Whether Take would find an entry.
  bool HasNext() { return head_ != tail_ || Extend(); }
  // The next entry to use.  Only after HasNext.
  uint32_t Take();
  // The entry holds no work request any more: its completion has been polled.
  void Free(uint32_t index);

  // Goes over to a larger ring, to which the present entries have been copied.
  void Grow(std::byte* ring, uint32_t entries);

 private:
  mlx5::SrqNextSegment& Segment(uint32_t index) {
    return *reinterpret_cast<mlx5::SrqNextSegment*>(ring_ + size_t{index} * stride_);
  }
  void Link(uint32_t index, uint32_t next) {
    Segment(index).next_wqe_index = static_cast<uint16_t>(next);
  }
  bool Extend();
  uint32_t FindFree(uint32_t from) const;
  bool IsFree(uint32_t index) const { return (free_[index / 64] >> (index % 64) & 1) != 0; }
  void SetFree(uint32_t index) { free_[index / 64] |= uint64_t{1} << (index % 64); }
  void ClearFree(uint32_t index) { free_[index / 64] &= ~(uint64_t{1} << (index % 64)); }

  const SrqListOrder order_;
  const uint32_t stride_;
  std::byte* ring_;
  uint32_t entries_;
  uint32_t head_ = 0;  // next to use
  uint32_t tail_;      // last of the list
  // kContiguous: entries that are free and not in the list, one bit each.
  std::vector<uint64_t> free_;
};

}  // namespace simhca::driver

#endif  // SIMHCA_VERBS_SHIM_DRIVER_SRQ_FREE_LIST_H_
