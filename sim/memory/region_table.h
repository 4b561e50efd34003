#ifndef SIMHCA_SIM_MEMORY_REGION_TABLE_H_
#define SIMHCA_SIM_MEMORY_REGION_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace simhca {

// Why an access through a key was refused.
enum class AccessFault : uint8_t { kNone, kKey, kDomain, kPermission, kBounds };

// A registered memory region: `length` bytes at `host`, named `iova` by work requests.
struct Region {
  std::byte* host = nullptr;
  uint64_t iova = 0;
  uint64_t length = 0;
  uint32_t pd = 0;
  uint32_t access = 0;
};

// The memory translation and protection table of one device.  A key is 24 bits of table index and
// 8 bits that change at each reuse of the index, so that a stale key does not open a new region.
class RegionTable {
 public:
  // Returns the key, or 0 when all indices are in use.
  uint32_t Add(const Region& region);

  // False if the key names no region.
  bool Remove(uint32_t key);
  // Removes every region of a protection domain.
  void RemoveDomain(uint32_t pd);

  const Region* Find(uint32_t key) const {
    const uint32_t index = key >> 8;
    if (index >= slots_.size()) return nullptr;
    const Slot& slot = slots_[index];
    return slot.live && slot.tag == (key & 0xff) ? &slot.region : nullptr;
  }

  // Host address of `length` bytes at `address` through `key`, or null with the reason in `fault`.
  // The region must belong to `pd`, grant every flag of `access` and cover the range.
  std::byte* Translate(uint32_t key, uint64_t address, uint64_t length, uint32_t pd,
                       uint32_t access, AccessFault* fault) const {
    const Region* region = Find(key);
    if (region == nullptr) return Refuse(AccessFault::kKey, fault);
    if (region->pd != pd) return Refuse(AccessFault::kDomain, fault);
    if ((region->access & access) != access) return Refuse(AccessFault::kPermission, fault);
    const uint64_t offset = address - region->iova;
    if (address < region->iova || offset > region->length || length > region->length - offset) {
      return Refuse(AccessFault::kBounds, fault);
    }
    return region->host + offset;
  }

  size_t live() const { return live_; }

 private:
  struct Slot {
    Region region;
    uint8_t tag = 0;
    bool live = false;
  };
  static std::byte* Refuse(AccessFault reason, AccessFault* fault) {
    *fault = reason;
    return nullptr;
  }

  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
  size_t live_ = 0;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_MEMORY_REGION_TABLE_H_
