// The rings' part of Registry.
#include <errno.h>
#include <sys/mman.h>

#include "sim/fabric/registry.h"

namespace simhca {

int Registry::OpenRing(uint32_t receiver, uint32_t* ring, std::byte** memory) {
  std::unique_lock guard(FabricMutex(), std::try_to_lock);
  if (!lock_) return ESRCH;
  if (!guard || !lock_->TryLock()) return EAGAIN;
  const ProcessSlot& target = process(OwnerSlot(receiver));
  int result = ESRCH;
  if (target.in_use.load() != 0 && target.generation.load() == OwnerGeneration(receiver) &&
      LifeOfLocked(OwnerSlot(receiver)) != Life::kDead) {
    FreeClosedRings();
    // An old ring between the two, which the receiver has still to close, comes first.
    const uint32_t announced = target.inbound[slot_].load();
    const bool old =
        announced != 0 && announced <= kMaxRings &&
        RingIsBetween(layout_->rings[announced - 1].load(), slot_, OwnerSlot(receiver));
    result = old ? EAGAIN : AllocateRing(OwnerSlot(receiver), ring, memory);
  }
  lock_->Unlock();
  return result;
}

int Registry::AllocateRing(uint32_t receiver_slot, uint32_t* ring, std::byte** memory) {
  FabricHeader& header = layout_->header;
  for (uint32_t i = 0; i < kMaxRings; ++i) {
    const uint32_t index = (header.next_ring + i) % kMaxRings;
    if (layout_->rings[index].load() != 0) continue;
    const int file = file_->Get();
    if (file < 0) return -file;
    const int result = RawAllocate(file, RingOffset(index), kRingStride);
    if (result != 0) {
      RawPunchHole(file, RingOffset(index), kRingStride);
      return result;
    }
    *memory = MapRing(index);
    if (*memory == nullptr) {
      RawPunchHole(file, RingOffset(index), kRingStride);
      return ENOMEM;
    }
    *ring = index;
    header.next_ring = (index + 1) % kMaxRings;
    layout_->rings[index].store(kRingInUse | receiver_slot << 8 | slot_);
    ProcessSlot& target = process(receiver_slot);
    target.inbound[slot_].store(static_cast<uint16_t>(index + 1));
    target.inbound_version.fetch_add(1);
    return 0;
  }
  return ENFILE;
}

std::byte* Registry::MapRing(uint32_t ring) {
  const int file = file_->Get();
  if (file < 0) return nullptr;
  void* memory = mmap(nullptr, kRingStride, PROT_READ | PROT_WRITE, MAP_SHARED, file,
                      static_cast<off_t>(RingOffset(ring)));
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

void Registry::UnmapRing(std::byte* memory) { munmap(memory, kRingStride); }

void Registry::CloseRing(uint32_t ring, uint32_t ends) {
  if (ends != 0) layout_->rings[ring].fetch_or(ends);
  rings_to_free_ = true;
}

void Registry::GiveBackRings() {
  if (!rings_to_free_) return;
  std::unique_lock guard(FabricMutex(), std::try_to_lock);
  if (!guard || !lock_->TryLock()) return;
  FreeClosedRings();
  rings_to_free_ = false;
  lock_->Unlock();
}

void Registry::FreeClosedRings() {
  for (uint32_t ring = 0; ring < kMaxRings; ++ring) {
    if (BothClosed(layout_->rings[ring].load())) FreeRing(ring);
  }
}

void Registry::FreeRing(uint32_t ring) {
  const uint32_t entry = layout_->rings[ring].load();
  std::atomic<uint16_t>& inbound = process(RingReceiver(entry)).inbound[RingSender(entry)];
  uint16_t expected = static_cast<uint16_t>(ring + 1);
  inbound.compare_exchange_strong(expected, 0);
  const int file = file_->Get();
  // Not given back, a ring would not be zero when it is used again.
  if (file < 0 || RawPunchHole(file, RingOffset(ring), kRingStride) != 0) return;
  layout_->rings[ring].store(0);
}

}  // namespace simhca
