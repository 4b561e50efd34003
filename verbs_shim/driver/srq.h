#ifndef SIMHCA_VERBS_SHIM_DRIVER_SRQ_H_
#define SIMHCA_VERBS_SHIM_DRIVER_SRQ_H_

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "verbs_shim/driver/context.h"
#include "verbs_shim/driver/objects.h"
#include "verbs_shim/driver/pd.h"
#include "verbs_shim/driver/ring_memory.h"
#include "verbs_shim/driver/spin_lock.h"
#include "verbs_shim/driver/srq_free_list.h"

namespace simhca::driver {

// A shared receive queue.
struct Srq {
  static constexpr Kind kKind = Kind::kSrq;

  Srq(Pd* domain) : context(domain->context), pd(domain) {}
  const ibv_srq* Public() const { return &verbs; }

  // A completion of entry `index` has been polled: the entry is free again.  Returns its wr_id.
  uint64_t Complete(uint32_t index) {
    std::lock_guard guard(lock);
    if (!free_list) [[unlikely]]
      return 0;  // destroyed meanwhile
    index &= entries - 1;
    free_list->Free(index);
    --in_use;
    return wr_ids[index];
  }

  // An SRQ without capacity is full: a thread that is about to post finds no room.
  void FreeRings() {
    if (!lock.try_lock_for_a_while()) return;
    capacity = 0;
    ring = RingMemory();
    free_list.reset();
    wr_ids = {};
    lock.unlock();
  }

  ibv_srq verbs{};
  ObjectHeader header;
  Context* const context;
  Pd* const pd;
  uint32_t number = 0;

  SpinLock lock;  // guards all below
  RingMemory ring;
  uint32_t entries = 0;
  uint32_t stride = 0;
  uint32_t max_sge = 0;       // what a work request may have
  uint32_t capacity = 0;      // work requests that fit
  uint32_t query_max_wr = 0;  // what ibv_query_srq says
  uint32_t in_use = 0;        // posted, and completion not yet polled
  uint32_t posted = 0;        // ever, for the doorbell record
  std::optional<SrqFreeList> free_list;
  std::vector<uint64_t> wr_ids;  // by entry
  DoorbellRecordMemory record;

  // After a catastrophic error the SRQ takes no more work requests.
  std::atomic<bool> failed{false};
  std::atomic<uint32_t> events_taken{0};
};

inline Srq* FromVerbs(ibv_srq* srq) { return reinterpret_cast<Srq*>(srq); }

// ---- Inline verb ----

int PostSrqRecv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad_wr);

// ---- Verbs that verbs_context points to ----

ibv_srq* CreateSrqEx(ibv_context* context, ibv_srq_init_attr_ex* attr);
int GetSrqNum(ibv_srq* srq, uint32_t* number);

}  // namespace simhca::driver

#endif  // SIMHCA_VERBS_SHIM_DRIVER_SRQ_H_
