#include "sim/memory/region_table.h"

namespace simhca {

namespace {
constexpr uint32_t kMaxRegions = 1u << 24;
// Index 0 stays empty, so that no region's key is small: the terminator key of a scatter list and
// a forgotten (zero) key name nothing.
constexpr uint32_t kFirstIndex = 2;
}  // namespace

uint32_t RegionTable::Add(const Region& region) {
  if (slots_.empty()) slots_.resize(kFirstIndex);
  uint32_t index;
  if (!free_.empty()) {
    index = free_.back();
    free_.pop_back();
  } else {
    if (slots_.size() >= kMaxRegions) return 0;
    index = static_cast<uint32_t>(slots_.size());
    slots_.emplace_back();
  }
  Slot& slot = slots_[index];
  slot.region = region;
  slot.live = true;
  ++slot.tag;
  ++live_;
  return index << 8 | slot.tag;
}

bool RegionTable::Remove(uint32_t key) {
  if (Find(key) == nullptr) return false;
  const uint32_t index = key >> 8;
  slots_[index].live = false;
  free_.push_back(index);
  --live_;
  return true;
}

void RegionTable::RemoveDomain(uint32_t pd) {
  for (uint32_t index = 0; index < slots_.size(); ++index) {
    if (slots_[index].live && slots_[index].region.pd == pd) Remove(index << 8 | slots_[index].tag);
  }
}

}  // namespace simhca
