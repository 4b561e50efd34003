#include "sim/fabric/ring_link.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "sim/fabric/expedited_barrier.h"

namespace simhca {
namespace {

// Packets taken from one sender before the next has its turn.
constexpr uint32_t kTurn = 64;

}  // namespace

RingLink::RingLink(Registry& registry)
    : registry_(registry), mine_(registry.process(registry.slot())) {
  active_.reserve(kMaxProcesses);
  fences_ = !JoinExpeditedBarriers();
  if (!ExpeditedBarrier()) registry.layout().header.senders_fence.store(1);
}

RingLink::~RingLink() {
  for (Outbound& outbound : outbound_) {
    if (outbound.ring && outbound.ring->ring != kPrivateRing) {
      Registry::UnmapRing(outbound.ring->memory);
    }
  }
  for (Inbound& inbound : inbound_) {
    if (inbound && inbound->ring != kPrivateRing) Registry::UnmapRing(inbound->memory);
  }
  if (private_ring_ != nullptr) munmap(private_ring_, RingBytes(kRingCells));
}

// ------------------------------------------------------------------------------ sending

Link::Reservation RingLink::Reserve(uint32_t destination_qpn, uint32_t length) {
  reserved_ = nullptr;
  const uint32_t block = destination_qpn / kNumbersPerBlock;
  if (block >= kNumberBlocks || length == 0 || length > kMaxPacketBytes) {
    return {Status::kUnreachable, nullptr};
  }
  const uint32_t owner = registry_.layout().owners[block].load(std::memory_order_acquire);
  if (owner == 0) return {Status::kUnreachable, nullptr};
  Outbound& outbound = outbound_[OwnerSlot(owner)];
  if (outbound.owner != owner) [[unlikely]] {
    const Status status = Connect(outbound, owner);
    if (status != Status::kReady) return {status, nullptr};
  }
  RingProducer& producer = outbound.ring->end;
  std::byte* const bytes = producer.Reserve(length);
  if (bytes == nullptr) {
    return {producer.corrupt() ? RefuseCorrupt(outbound) : Status::kNoRoom, nullptr};
  }
  reserved_ = &outbound;
  return {Status::kReady, bytes};
}

void RingLink::Commit(const PacketAddress& address, Time) {
  reserved_->ring->end.Commit(address);
  if (!reserved_->dirty) {
    reserved_->dirty = true;
    dirty_[dirty_count_++] = static_cast<uint8_t>(reserved_ - outbound_.data());
  }
  reserved_ = nullptr;
}

void RingLink::Flush() {
  if (dirty_count_ == 0) return;
  // Pairs with BarrierBeforeSleep: either the sleeper's last Poll sees our packets, or we see its
  // flag.
  if (fences_ || registry_.layout().header.senders_fence.load(std::memory_order_relaxed) != 0) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  } else {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  for (uint32_t i = 0; i < dirty_count_; ++i) {
    Outbound& outbound = outbound_[dirty_[i]];
    outbound.dirty = false;
    if (!outbound.ring) continue;
    outbound.ring->end.PrepareNext();
    std::atomic<uint32_t>& want_wake = registry_.process(dirty_[i]).want_wake;
    if (want_wake.load(std::memory_order_relaxed) != 0 && want_wake.exchange(0) != 0) {
      syscall(SYS_futex, &want_wake, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
    }
  }
  dirty_count_ = 0;
}

void RingLink::BarrierBeforeSleep() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (registry_.layout().header.senders_fence.load() == 0) ExpeditedBarrier();
}

Link::Status RingLink::Connect(Outbound& outbound, uint32_t owner) {
  if (expelled_) return Status::kUnreachable;
  // While we have our slot nobody else lives there, whatever the shared memory says.
  const bool to_self = owner == registry_.owner();
  if (!to_self && OwnerSlot(owner) == registry_.slot()) return Status::kUnreachable;
  if (outbound.ring) DropOutbound(outbound, kSenderClosed);
  if (to_self) return ConnectToSelf(outbound);
  uint32_t ring;
  std::byte* memory;
  const int error = registry_.OpenRing(owner, &ring, &memory);
  if (error != 0) return Fail(error);
  outbound.ring.emplace(ring, memory, kRingCells);
  outbound.owner = owner;
  return Status::kReady;
}

Link::Status RingLink::ConnectToSelf(Outbound& outbound) {
  void* memory = mmap(nullptr, RingBytes(kRingCells), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return Fail(ENOMEM);
  private_ring_ = static_cast<std::byte*>(memory);
  const uint32_t slot = registry_.slot();
  inbound_[slot].emplace(kPrivateRing, private_ring_, kRingCells);
  active_.push_back(static_cast<uint8_t>(slot));
  outbound.ring.emplace(kPrivateRing, private_ring_, kRingCells);
  outbound.owner = registry_.owner();
  return Status::kReady;
}

Link::Status RingLink::Fail(int error) {
  if (error == EAGAIN) return Status::kNoRoom;
  if (error == ESRCH) return Status::kUnreachable;
  ++failed_rings_;
  if (error == ENOSPC) {
    last_trouble_ = "no room in the fabric's file system (/dev/shm) for a ring of 260 KiB";
  } else if (error == ENFILE) {
    last_trouble_ = "all " + std::to_string(kMaxRings) + " rings of the fabric are in use";
  } else {
    last_trouble_ = std::string("no memory for a ring: ") + strerror(error);
  }
  return Status::kUnreachable;
}

Link::Status RingLink::RefuseCorrupt(Outbound& outbound) {
  if (outbound.ring->ring == kPrivateRing) return Status::kUnreachable;
  ++corrupt_rings_;
  last_trouble_ = "a process broke the rules of the ring towards it";
  DropOutbound(outbound, kSenderClosed);
  return Status::kUnreachable;
}

void RingLink::DropOutbound(Outbound& outbound, uint32_t ends) {
  registry_.CloseRing(outbound.ring->ring, ends);
  Registry::UnmapRing(outbound.ring->memory);
  outbound.ring.reset();
  outbound.owner = 0;
}

// ---------------------------------------------------------------------------- receiving

uint32_t RingLink::Poll(PacketHandler& handler, uint32_t budget, Time) {
  if (mine_.inbound_version.load(std::memory_order_acquire) != seen_version_) [[unlikely]] {
    AcceptNewRings();
  }
  const uint32_t rings = static_cast<uint32_t>(active_.size());
  uint32_t taken = 0;
  uint32_t corrupt = kMaxProcesses;
  for (uint32_t i = 0; i < rings && taken < budget; ++i) {
    if (next_inbound_ >= rings) next_inbound_ = 0;
    const uint32_t slot = active_[next_inbound_++];
    RingConsumer& consumer = inbound_[slot]->end;
    const uint32_t turn = rings == 1 ? budget : std::min(budget - taken, kTurn);
    taken += consumer.Poll(handler, turn);
    if (consumer.corrupt()) [[unlikely]]
      corrupt = slot;
  }
  if (corrupt != kMaxProcesses && inbound_[corrupt]->ring != kPrivateRing) [[unlikely]] {
    ++corrupt_rings_;
    last_trouble_ = "a process broke the rules of its ring towards us";
    DropInbound(corrupt, kReceiverClosed);
  }
  return taken;
}

void RingLink::AcceptNewRings() {
  seen_version_ = mine_.inbound_version.load(std::memory_order_acquire);
  if (expelled_) return;
  for (uint32_t slot = 0; slot < kMaxProcesses; ++slot) {
    const uint32_t ring = mine_.inbound[slot].load(std::memory_order_acquire);
    if (ring == 0 || ring > kMaxRings || inbound_[slot] || slot == registry_.slot()) continue;
    const uint32_t entry = registry_.layout().rings[ring - 1].load();
    if (RingReceiver(entry) != registry_.slot() || RingSender(entry) != slot ||
        (entry & kReceiverClosed) != 0) {
      continue;
    }
    std::byte* const memory = registry_.MapRing(ring - 1);
    if (memory == nullptr) {
      Fail(ENOMEM);
      --seen_version_;  // again at the next Poll
      continue;
    }
    inbound_[slot].emplace(ring - 1, memory, kRingCells);
    active_.push_back(static_cast<uint8_t>(slot));
  }
}

void RingLink::DropInbound(uint32_t slot, uint32_t ends) {
  registry_.CloseRing(inbound_[slot]->ring, ends);
  Registry::UnmapRing(inbound_[slot]->memory);
  inbound_[slot].reset();
  std::erase(active_, static_cast<uint8_t>(slot));
}

// -------------------------------------------------------------------------------- death

void RingLink::Maintain() {
  if (mine_.inbound_version.load(std::memory_order_acquire) != seen_version_) AcceptNewRings();
  for (uint32_t slot = 0; slot < kMaxProcesses; ++slot) {
    if (slot == registry_.slot()) continue;
    Outbound& outbound = outbound_[slot];
    Inbound& inbound = inbound_[slot];
    if (!outbound.ring && !inbound) continue;
    const bool dead = registry_.LifeOf(slot) == Registry::Life::kDead;
    const auto& rings = registry_.layout().rings;
    if (outbound.ring && (dead || (rings[outbound.ring->ring].load() & kReceiverClosed) != 0)) {
      if (reserved_ == &outbound) reserved_ = nullptr;
      DropOutbound(outbound, dead ? kSenderClosed | kReceiverClosed : kSenderClosed);
    }
    if (inbound && (dead || (rings[inbound->ring].load() & kSenderClosed) != 0) &&
        inbound->end.Empty()) {
      DropInbound(slot, dead ? kSenderClosed | kReceiverClosed : kReceiverClosed);
    }
  }
}

void RingLink::Expel(std::string_view reason) {
  if (expelled_) return;
  expelled_ = true;
  last_trouble_ = reason;
  for (Outbound& outbound : outbound_) {
    if (!outbound.ring || outbound.ring->ring == kPrivateRing) continue;
    Registry::UnmapRing(outbound.ring->memory);
    outbound.ring.reset();
    outbound.owner = 0;
  }
  for (uint32_t slot = 0; slot < kMaxProcesses; ++slot) {
    if (!inbound_[slot] || inbound_[slot]->ring == kPrivateRing) continue;
    Registry::UnmapRing(inbound_[slot]->memory);
    inbound_[slot].reset();
    std::erase(active_, static_cast<uint8_t>(slot));
  }
}

RingLink::Progress RingLink::Towards(uint32_t owner) {
  Outbound& outbound = outbound_[OwnerSlot(owner)];
  if (outbound.owner != owner) return {};
  return {outbound.ring->end.committed(), outbound.ring->end.Consumed()};
}

bool RingLink::DrainedFrom(uint32_t slot) {
  if (mine_.inbound_version.load(std::memory_order_acquire) != seen_version_) AcceptNewRings();
  return !inbound_[slot] || inbound_[slot]->end.Empty();
}

}  // namespace simhca
