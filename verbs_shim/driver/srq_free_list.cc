#include "verbs_shim/driver/srq_free_list.h"

#include <bit>

namespace simhca::driver {

SrqFreeList::SrqFreeList(SrqListOrder order, std::byte* ring, uint32_t stride, uint32_t entries)
    : order_(order), stride_(stride), ring_(ring), entries_(entries), tail_(entries - 1) {
  for (uint32_t i = 0; i < entries; ++i) Link(i, (i + 1) & (entries - 1));
  if (order == SrqListOrder::kContiguous) free_.resize((entries + 63) / 64);
}

uint32_t SrqFreeList::Take() {
  const uint32_t index = head_;
  head_ = Segment(index).next_wqe_index;
  return index;
}

void SrqFreeList::Free(uint32_t index) {
  if (order_ == SrqListOrder::kContiguous) {
    SetFree(index);
    return;
  }
  Link(tail_, index);
  tail_ = index;
}

// The first free entry from `from` on; entries_ if there is none.
uint32_t SrqFreeList::FindFree(uint32_t from) const {
  if (from >= entries_) return entries_;
  size_t word = from / 64;
  uint64_t bits = free_[word] & ~uint64_t{0} << (from % 64);
  while (bits == 0) {
    if (++word == free_.size()) return entries_;
    bits = free_[word];
  }
  return static_cast<uint32_t>(word * 64 + std::countr_zero(bits));
}

// Appends the run of neighbouring free entries that comes next after the tail, so that the device
// meets as few jumps as possible.
bool SrqFreeList::Extend() {
  if (order_ != SrqListOrder::kContiguous) return false;
  uint32_t index = FindFree(tail_ + 1);
  if (index == entries_) index = FindFree(0);
  if (index == entries_) return false;
  for (; index < entries_ && IsFree(index); ++index) {
    ClearFree(index);
    Link(tail_, index);
    tail_ = index;
  }
  return true;
}

void SrqFreeList::Grow(std::byte* ring, uint32_t entries) {
  const uint32_t old_entries = entries_;
  ring_ = ring;
  entries_ = entries;
  if (order_ == SrqListOrder::kContiguous) free_.resize((entries + 63) / 64);
  for (uint32_t i = old_entries; i < entries; ++i) Free(i);
}

}  // namespace simhca::driver
