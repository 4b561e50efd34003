#ifndef SIMHCA_SIM_QUEUES_EVENT_RING_H_
#define SIMHCA_SIM_QUEUES_EVENT_RING_H_

#include <cstdint>

#include "sim/queues/interrupt_handler.h"
#include "sim/queues/mlx5/layout.h"

namespace simhca {

// The device's side of an event queue.  Each entry is followed at once by an interrupt, whose
// handler consumes it: the ring cannot overflow.
class EventRing {
 public:
  EventRing() = default;
  EventRing(std::byte* ring, uint32_t entries, InterruptHandler* handler)
      : ring_(reinterpret_cast<mlx5::Eqe*>(ring)), entries_(entries), handler_(handler) {}

  void PushCompletion(uint32_t cqn) { Push(mlx5::EventType::kCompletion, cqn); }
  void PushCqError(uint32_t cqn);
  // Of port 1, the only one.
  void PushPortChange(mlx5::PortChange change);
  void PushInternalError() { Push(mlx5::EventType::kInternalError, 0); }
  // Events of QPs and SRQs.
  void Push(mlx5::EventType type, uint32_t number);

 private:
  mlx5::Eqe& Next();
  void Publish(mlx5::Eqe& eqe);

  mlx5::Eqe* ring_ = nullptr;
  uint32_t entries_ = 0;
  uint32_t producer_ = 0;
  InterruptHandler* handler_ = nullptr;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_QUEUES_EVENT_RING_H_
