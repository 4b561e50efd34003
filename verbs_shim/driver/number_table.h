#ifndef SIMHCA_VERBS_SHIM_DRIVER_NUMBER_TABLE_H_
#define SIMHCA_VERBS_SHIM_DRIVER_NUMBER_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "verbs_shim/driver/spin_lock.h"

namespace simhca::driver {

// Finds an object by the 24-bit number that completions and events name it by.  Two loads, no
// lock: lookups may run at any time beside changes.
template <typename Object>
class NumberTable {
 public:
  NumberTable() : leaves_(static_cast<Slot*>(std::calloc(kLeaves, sizeof(Slot)))) {}
  NumberTable(const NumberTable&) = delete;
  NumberTable& operator=(const NumberTable&) = delete;
  ~NumberTable() {
    if (leaves_ == nullptr) return;
    for (size_t i = 0; i < kLeaves; ++i) std::free(leaves_[i].load(std::memory_order_relaxed));
    std::free(leaves_);
  }

  // The object of that number, or null.
  Object* Find(uint32_t number) const {
    if (leaves_ == nullptr) return nullptr;
    const Entry* leaf =
        leaves_[(number >> kLeafBits) & (kLeaves - 1)].load(std::memory_order_acquire);
    if (leaf == nullptr) return nullptr;
    return leaf[number & (kLeafEntries - 1)].load(std::memory_order_acquire);
  }

  // Makes `number` find `object` (null: nothing).  False if there is no memory.
  bool Set(uint32_t number, Object* object) {
    if (leaves_ == nullptr) return false;
    changes_.lock();
    Slot& slot = leaves_[(number >> kLeafBits) & (kLeaves - 1)];
    Entry* leaf = slot.load(std::memory_order_relaxed);
    if (leaf == nullptr) {
      leaf = static_cast<Entry*>(std::calloc(kLeafEntries, sizeof(Entry)));
      slot.store(leaf, std::memory_order_release);
    }
    if (leaf != nullptr) leaf[number & (kLeafEntries - 1)].store(object, std::memory_order_release);
    changes_.unlock();
    return leaf != nullptr;
  }

 private:
  static constexpr int kLeafBits = 12;
  static constexpr size_t kLeafEntries = size_t{1} << kLeafBits;
  static constexpr size_t kLeaves = size_t{1} << (24 - kLeafBits);
  using Entry = std::atomic<Object*>;
  using Slot = std::atomic<Entry*>;

  Slot* leaves_;
  SpinLock changes_;
};

}  // namespace simhca::driver

#endif  // SIMHCA_VERBS_SHIM_DRIVER_NUMBER_TABLE_H_
