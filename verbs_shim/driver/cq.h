#ifndef SIMHCA_VERBS_SHIM_DRIVER_CQ_H_
#define SIMHCA_VERBS_SHIM_DRIVER_CQ_H_

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>

#include "sim/queues/mlx5/layout.h"
#include "verbs_shim/driver/context.h"
#include "verbs_shim/driver/objects.h"
#include "verbs_shim/driver/ring_memory.h"
#include "verbs_shim/driver/spin_lock.h"

namespace simhca::driver {

struct Channel;

// A completion queue.  ibv_create_cq and ibv_create_cq_ex make the same object: the beginning of
// ibv_cq_ex is an ibv_cq.
struct Cq {
  static constexpr Kind kKind = Kind::kCq;

  explicit Cq(Context* owner) : context(owner) {}
  const ibv_cq_ex* Public() const { return &verbs; }

  // The entry at the consumer index if the device has written it, else null.
  const mlx5::Cqe* Peek() const {
    const uint32_t index = consumer.load(std::memory_order_relaxed);
    const mlx5::Cqe* cqe = &ring[index & (entries - 1)];
    const uint8_t owner = __atomic_load_n(&cqe->opcode_owner, __ATOMIC_ACQUIRE);
    const bool written = (owner >> 4) != static_cast<uint8_t>(mlx5::CqeOpcode::kInvalid) &&
                         (owner & 1) == mlx5::Cqe::OwnerBit(index, entries);
    return written ? cqe : nullptr;
  }
  void Advance() {
    consumer.store(consumer.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  // Gives what has been consumed back to the device.
  void PublishConsumer() {
    record.Store(mlx5::kConsumerRecord, consumer.load(std::memory_order_relaxed) & 0xffffff);
  }

  // Leaves a ring of one entry that nobody ever writes, for a thread that is about to poll.
  void FreeRings() {
    static mlx5::Cqe never_written = [] {
      mlx5::Cqe cqe{};
      cqe.opcode_owner = static_cast<uint8_t>(mlx5::CqeOpcode::kInvalid) << 4;
      return cqe;
    }();
    if (!lock.try_lock_for_a_while()) return;
    ring = &never_written;
    entries = 1;
    memory = RingMemory();
    lock.unlock();
  }

  ibv_cq_ex verbs{};
  ObjectHeader header;
  Context* const context;
  Channel* channel = nullptr;
  uint32_t number = 0;
  uint64_t wc_flags = 0;
  bool single_threaded = false;

  SpinLock lock;  // guards all below; taken before an SRQ's
  mlx5::Cqe* ring = nullptr;
  uint32_t entries = 0;
  std::atomic<uint32_t> consumer{0};   // changed under the lock, read without by ibv_req_notify_cq
  Qp* last_qp = nullptr;               // that a completion was for: the next one often is too
  const mlx5::Cqe* current = nullptr;  // between start_poll and end_poll
  RingMemory memory;
  DoorbellRecordMemory record;

  std::atomic<uint32_t> arm_sequence{0};  // completion events fetched, for the arm word
  std::atomic<uint32_t> completion_events_taken{0};
  std::atomic<uint32_t> async_events_taken{0};
};

inline Cq* FromVerbs(ibv_cq* cq) { return reinterpret_cast<Cq*>(cq); }
inline Cq* FromVerbs(ibv_cq_ex* cq) { return reinterpret_cast<Cq*>(cq); }

// Removes the completions of a queue pair that is destroyed or reset: those that an SRQ's entry
// belongs to give that back.  Takes the lock.
void Sweep(Cq* cq, const Qp* qp);

// ---- Inline verbs ----

int PollCq(ibv_cq* cq, int num_entries, ibv_wc* wc);
int ReqNotifyCq(ibv_cq* cq, int solicited_only);

// Sets the functions of ibv_cq_ex according to cq->wc_flags.
void FillPollFunctions(Cq* cq);

// ---- Verbs that verbs_context points to ----

ibv_cq_ex* CreateCqEx(ibv_context* context, ibv_cq_init_attr_ex* attr);
int ModifyCq(ibv_cq* cq, ibv_modify_cq_attr* attr);

}  // namespace simhca::driver

#endif  // SIMHCA_VERBS_SHIM_DRIVER_CQ_H_
