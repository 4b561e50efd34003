#ifndef SIMHCA_SIM_TRANSPORT_DOORBELL_H_
#define SIMHCA_SIM_TRANSPORT_DOORBELL_H_

#include <atomic>
#include <deque>
#include <vector>

namespace simhca {

class QueuePair;

// A queue pair's doorbell register.  As on hardware it is a place in the device and no part of the
// queue pair: it can be rung at any time, also while its queue pair is being destroyed, and then
// rings for nobody.  A ring that finds the engine busy puts the doorbell on the engine's list,
// once, for whoever holds the engine.
class Doorbell {
 public:
  Doorbell() = default;
  Doorbell(const Doorbell&) = delete;
  Doorbell& operator=(const Doorbell&) = delete;

  // The queue pair it rings for; null if that is gone.  Under the engine's lock.
  QueuePair* queue_pair() const { return queue_pair_; }

 private:
  friend class DoorbellList;
  friend class DoorbellPages;
  QueuePair* queue_pair_ = nullptr;
  std::atomic<bool> listed_{false};
  Doorbell* next_ = nullptr;
};

// All doorbells of an engine, in memory that stays while the engine lives.  Under its lock.
class DoorbellPages {
 public:
  Doorbell* Allot(QueuePair* queue_pair) {
    if (free_.empty()) free_.push_back(&doorbells_.emplace_back());
    Doorbell* doorbell = free_.back();
    free_.pop_back();
    doorbell->queue_pair_ = queue_pair;
    return doorbell;
  }

  // Late rings of the doorbell reach nobody, or a later queue pair, which then finds nothing to do.
  void Release(Doorbell* doorbell) {
    doorbell->queue_pair_ = nullptr;
    free_.push_back(doorbell);
  }

 private:
  std::deque<Doorbell> doorbells_;  // never shrinks, and never moves one
  std::vector<Doorbell*> free_;
};

// Doorbells rung while the engine was busy: many threads add, the engine's holder takes all.
class DoorbellList {
 public:
  void Add(Doorbell& doorbell) {
    if (doorbell.listed_.exchange(true, std::memory_order_acq_rel)) return;
    Doorbell* head = head_.load(std::memory_order_relaxed);
    do {
      doorbell.next_ = head;
    } while (!head_.compare_exchange_weak(head, &doorbell, std::memory_order_seq_cst,
                                          std::memory_order_relaxed));
  }

  bool empty() const { return head_.load(std::memory_order_seq_cst) == nullptr; }

  // Calls `serve` for each doorbell added before.  A doorbell may be added again from then on.
  template <typename Serve>
  void TakeAll(Serve serve) {
    if (head_.load(std::memory_order_relaxed) == nullptr) return;
    Doorbell* doorbell = head_.exchange(nullptr, std::memory_order_acq_rel);
    while (doorbell != nullptr) {
      Doorbell* next = doorbell->next_;
      doorbell->listed_.store(false, std::memory_order_release);
      serve(*doorbell);
      doorbell = next;
    }
  }

 private:
  std::atomic<Doorbell*> head_{nullptr};
};

}  // namespace simhca

#endif  // SIMHCA_SIM_TRANSPORT_DOORBELL_H_
