#ifndef SIMHCA_SIM_QUEUES_EVENT_RING_H_
#define SIMHCA_SIM_QUEUES_EVENT_RING_H_

#include <cstdint>

#include "sim/queues/interrupt_handler.h"
#include "sim/queues/mlx5/layout.h"

namespace simhca {

class EventRing;

// Decides when an entry is written, where events take time.
class EventPath {
 public:
  virtual ~EventPath() = default;
  // Calls ring.Publish(event) then.
  virtual void Carry(EventRing& ring, const mlx5::Eqe& event) = 0;
};

// The device's side of an event queue.  Each entry is followed at once by an interrupt, whose
// handler consumes it: the ring cannot overflow.
class EventRing {
 public:
  EventRing() = default;
  // With a `path`, entries are written when that says; else at once.
  EventRing(std::byte* ring, uint32_t entries, InterruptHandler* handler, EventPath* path = nullptr)
      : ring_(reinterpret_cast<mlx5::Eqe*>(ring)),
        entries_(entries),
        handler_(handler),
        path_(path) {}

  void PushCompletion(uint32_t cqn) { Push(mlx5::EventType::kCompletion, cqn); }
  void PushCqError(uint32_t cqn);
  // Of port 1, the only one.
  void PushPortChange(mlx5::PortChange change);
  void PushInternalError() { Push(mlx5::EventType::kInternalError, 0); }
  // Events of QPs and SRQs.
  void Push(mlx5::EventType type, uint32_t number);

  // Writes the entry and raises the interrupt.
  void Publish(const mlx5::Eqe& event);

 private:
  void Raise(const mlx5::Eqe& event);

  mlx5::Eqe* ring_ = nullptr;
  uint32_t entries_ = 0;
  uint32_t producer_ = 0;
  InterruptHandler* handler_ = nullptr;
  EventPath* path_ = nullptr;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_QUEUES_EVENT_RING_H_
