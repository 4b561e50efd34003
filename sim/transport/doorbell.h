#ifndef SIMHCA_SIM_TRANSPORT_DOORBELL_H_
#define SIMHCA_SIM_TRANSPORT_DOORBELL_H_

#include <atomic>

namespace simhca {

// A queue pair's doorbell register.  A ring that finds the engine busy puts the doorbell on the
// engine's list, once, for whoever holds the engine.
class Doorbell {
 public:
  Doorbell() = default;
  Doorbell(const Doorbell&) = delete;
  Doorbell& operator=(const Doorbell&) = delete;

 private:
  friend class DoorbellList;
  std::atomic<bool> listed_{false};
  Doorbell* next_ = nullptr;
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
