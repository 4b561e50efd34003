#ifndef SIMHCA_VERBS_SHIM_DRIVER_WORK_QUEUES_H_
#define SIMHCA_VERBS_SHIM_DRIVER_WORK_QUEUES_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "sim/queues/mlx5/layout.h"
#include "verbs_shim/driver/ring_memory.h"

namespace simhca::driver {

// The driver's side of a send queue: a ring of 64-byte blocks, of which a work request takes one
// or more.  Posting happens under the queue pair's lock, completing under that of the CQ.
struct SendQueue {
  struct Slot {
    uint64_t wr_id;
    uint32_t wr_number;  // running number of the work request that starts in this block
  };

  bool Full() const { return posted - completed.load(std::memory_order_acquire) >= max_wr; }
  std::byte* Block(uint32_t running_index) const {
    return memory.data() + size_t{running_index & (blocks - 1)} * mlx5::kSendBlockBytes;
  }
  Slot& SlotOf(uint32_t running_index) const { return slots[running_index & (blocks - 1)]; }

  // The completion of the work request that starts at `block` has been polled: it and all before
  // it are free (man ibv_post_send).  Returns its wr_id.
  uint64_t Complete(uint16_t block) {
    const Slot& slot = SlotOf(block);
    completed.store(slot.wr_number + 1, std::memory_order_release);
    return slot.wr_id;
  }

  void Reset() {
    next_block = posted = 0;
    completed.store(0, std::memory_order_relaxed);
  }

  void Free() {
    max_wr = blocks = 0;
    memory = RingMemory();
    slots.reset();
  }

  RingMemory memory;
  uint32_t blocks = 0;  // a power of two; 0: no send queue
  uint32_t max_wr = 0;
  uint32_t max_sge = 0;
  uint32_t max_inline = 0;
  std::unique_ptr<Slot[]> slots;  // by block

  uint32_t next_block = 0;  // running count of blocks used
  uint32_t posted = 0;      // running count of work requests
  std::atomic<uint32_t> completed{0};
};

// The driver's side of a queue pair's own receive queue.
struct ReceiveQueue {
  bool Full() const { return posted - completed.load(std::memory_order_acquire) >= max_wr; }
  std::byte* Entry(uint32_t running_index) const {
    return memory.data() + size_t{running_index & (entries - 1)} * stride;
  }
  uint64_t Complete(uint16_t slot) {
    const uint64_t wr_id = wr_ids[slot & (entries - 1)];
    completed.store(completed.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    return wr_id;
  }
  void Reset() {
    posted = 0;
    completed.store(0, std::memory_order_relaxed);
  }

  void Free() {
    max_wr = entries = 0;
    memory = RingMemory();
    wr_ids.reset();
  }

  RingMemory memory;
  uint32_t entries = 0;  // a power of two; 0: no receive queue
  uint32_t stride = 0;
  uint32_t max_wr = 0;
  uint32_t max_sge = 0;
  std::unique_ptr<uint64_t[]> wr_ids;

  uint32_t posted = 0;
  std::atomic<uint32_t> completed{0};
};

}  // namespace simhca::driver

#endif  // SIMHCA_VERBS_SHIM_DRIVER_WORK_QUEUES_H_
