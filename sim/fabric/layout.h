#ifndef SIMHCA_SIM_FABRIC_LAYOUT_H_
#define SIMHCA_SIM_FABRIC_LAYOUT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "sim/fabric/control.h"
#include "sim/fabric/fabric.h"
#include "sim/fabric/ring.h"

namespace simhca {

// The shared file of a fabric, in this order: FabricHeader, ring directory, owners of number
// blocks, slots of processes, rings.  All but the rings has its pages from the start; a ring has
// pages only while it is in use.
//
// Who may change what:
//   with the fabric's lock held   membership (slots' state and generation), ring directory entries
//                                 between "free" and "in use", who is whose sender
//   any time, atomically          number blocks (claimed from 0, cleared by the owner), "closed"
//                                 flags of rings, flags and words of the slots
inline constexpr uint64_t kFabricMagic = 0x6269666163686d73;  // "smhcafib"
inline constexpr uint32_t kMaxProcesses = 256;
inline constexpr uint32_t kMaxRings = 4096;
inline constexpr uint32_t kRingCells = 4096;  // 256 KiB; a ring of megabytes leaves the caches
inline constexpr uint32_t kNumbersPerBlock = 256;
inline constexpr uint32_t kNumberBlocks = 1 << 16;  // 24-bit numbers

// Who owns a number block: generation of the process in bits 31:8 (never 0), its slot in 7:0.
constexpr uint32_t MakeOwner(uint32_t slot, uint32_t generation) { return generation << 8 | slot; }
constexpr uint32_t OwnerSlot(uint32_t owner) { return owner & 0xff; }
constexpr uint32_t OwnerGeneration(uint32_t owner) { return owner >> 8; }

struct FabricHeader {
  uint64_t magic;  // written last
  uint32_t layout;
  uint32_t exclusive;
  int64_t epoch_ns;
  uint32_t next_generation;  // under the fabric's lock, as the next two
  uint32_t next_slot;
  uint32_t next_ring;
  std::atomic<uint32_t> next_block;
  // Set for good by a process that cannot issue expedited barriers: senders then fence themselves
  // before they look for sleepers.
  std::atomic<uint32_t> senders_fence;
  // A bit for each port that is down.  Written by control clients; processes look when their bell
  // has rung.
  std::atomic<uint64_t> ports_down[kMaxFabricPorts / 64];
};

inline bool IsPortDown(const FabricHeader& header, uint16_t port) {
  return (header.ports_down[port / 64].load() >> (port % 64) & 1) != 0;
}

// A ring: sender's slot in bits 7:0, receiver's in 15:8, and flags.  0 is free.  A ring goes back
// to the free ones when both ends are closed.
using RingEntry = std::atomic<uint32_t>;
inline constexpr uint32_t kRingInUse = 1 << 16;
inline constexpr uint32_t kSenderClosed = 1 << 17;    // nothing more will be written
inline constexpr uint32_t kReceiverClosed = 1 << 18;  // nothing more will be read
constexpr uint32_t RingSender(uint32_t entry) { return entry & 0xff; }
constexpr uint32_t RingReceiver(uint32_t entry) { return entry >> 8 & 0xff; }
constexpr bool RingIsBetween(uint32_t entry, uint32_t sender, uint32_t receiver) {
  return (entry & kRingInUse) != 0 && RingSender(entry) == sender &&
         RingReceiver(entry) == receiver;
}
constexpr bool BothClosed(uint32_t entry) {
  return (entry & (kSenderClosed | kReceiverClosed)) == (kSenderClosed | kReceiverClosed);
}

// A request to a process and its reply; see control.h.  `state` is a sequence number in bits 31:2,
// which the client counts up, and the stage: the client writes a request and posts it, or takes it
// back while it is posted; the process takes it, writes the reply, and says so.
enum class ControlStage : uint32_t { kEmpty, kPosted, kTaken, kAnswered };
constexpr uint32_t MakeControlState(uint32_t sequence, ControlStage stage) {
  return sequence << 2 | static_cast<uint32_t>(stage);
}
constexpr uint32_t SequenceOf(uint32_t state) { return state >> 2; }
constexpr ControlStage StageOf(uint32_t state) { return static_cast<ControlStage>(state & 3); }

struct ControlMailbox {
  std::atomic<uint32_t> state;
  std::atomic<uint32_t> kind;
  std::atomic<uint32_t> port;
  std::atomic<uint32_t> number;
  std::atomic<uint32_t> status;
  std::atomic<uint32_t> count;
  std::atomic<uint32_t> text_bytes;
  char text[kControlTextBytes];
};

// A process.  It lives while it holds the record lock on byte 1 + slot of the lock file.
struct ProcessSlot {
  std::atomic<uint32_t> in_use;
  std::atomic<uint32_t> generation;
  uint32_t pid;
  uint64_t pid_namespace;  // of `pid`; 0: unknown
  char name[16];
  // CLOCK_MONOTONIC nanoseconds when somebody first saw the lock missing; 0: not missing.
  std::atomic<int64_t> missing_since;

  // Futex word: 1 while the process wants to be woken.
  alignas(kCellBytes) std::atomic<uint32_t> want_wake;

  // Counts changes of `inbound`; the process polls it.
  alignas(kCellBytes) std::atomic<uint32_t> inbound_version;
  // Counts requests in `control`; polled too, and therefore in the same line.
  std::atomic<uint32_t> control_bell;

  // By sender's slot: index of the ring plus 1, or 0.
  alignas(kCellBytes) std::atomic<uint16_t> inbound[kMaxProcesses];
  alignas(kCellBytes) std::atomic<uint64_t> counters[kCountersPerProcess];
  std::atomic<uint64_t> heartbeat;  // changes while the process's engine runs
  alignas(kCellBytes) ControlMailbox control;
};

struct FabricLayout {
  alignas(4096) FabricHeader header;
  alignas(4096) RingEntry rings[kMaxRings];
  alignas(4096) std::atomic<uint32_t> owners[kNumberBlocks];
  alignas(4096) ProcessSlot slots[kMaxProcesses];
};

inline constexpr size_t kRingStride = RingBytes(kRingCells);
inline constexpr size_t kFabricFileBytes = sizeof(FabricLayout) + kMaxRings * kRingStride;
constexpr size_t RingOffset(uint32_t ring) { return sizeof(FabricLayout) + ring * kRingStride; }

// Of everything above, so that processes with different builds refuse each other.
inline constexpr uint32_t kLayoutVersion = 5;
constexpr uint32_t LayoutHash() {
  uint32_t hash = 2166136261u;
  for (uint64_t part :
       {uint64_t{kLayoutVersion}, uint64_t{sizeof(ProcessSlot)}, uint64_t{sizeof(FabricLayout)},
        uint64_t{kRingStride}, uint64_t{kMaxRings}, uint64_t{kCountersPerProcess},
        uint64_t{kRecordHeaderBytes}, uint64_t{kMaxPacketBytes}}) {
    hash = (hash ^ static_cast<uint32_t>(part)) * 16777619u;
  }
  return hash;
}

static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(sizeof(FabricLayout) % 4096 == 0 && kRingStride % 4096 == 0);

}  // namespace simhca

#endif  // SIMHCA_SIM_FABRIC_LAYOUT_H_
