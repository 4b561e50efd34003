#include "sim/queues/event_ring.h"

#include <atomic>
#include <cstring>

namespace simhca {

mlx5::Eqe& EventRing::Next() {
  mlx5::Eqe& eqe = ring_[producer_ & (entries_ - 1)];
  std::memset(static_cast<void*>(&eqe), 0, offsetof(mlx5::Eqe, owner));
  return eqe;
}

void EventRing::Publish(mlx5::Eqe& eqe) {
  const uint8_t owner = (producer_ & entries_) != 0 ? 1 : 0;
  std::atomic_ref<uint8_t>(eqe.owner).store(owner, std::memory_order_release);
  ++producer_;
  handler_->OnInterrupt();
}

void EventRing::Push(mlx5::EventType type, uint32_t number) {
  mlx5::Eqe& eqe = Next();
  eqe.type = type;
  eqe.number = number;
  Publish(eqe);
}

void EventRing::PushCqError(uint32_t cqn) {
  mlx5::Eqe& eqe = Next();
  eqe.type = mlx5::EventType::kCqError;
  eqe.cq_error_cqn = cqn;
  eqe.cq_error_syndrome = 1;  // overrun
  Publish(eqe);
}

void EventRing::PushPortChange(mlx5::PortChange change) {
  mlx5::Eqe& eqe = Next();
  eqe.type = mlx5::EventType::kPortChange;
  eqe.sub_type = static_cast<uint8_t>(change);
  eqe.port = 1 << 4;
  Publish(eqe);
}

}  // namespace simhca
