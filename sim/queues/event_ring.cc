#include "sim/queues/event_ring.h"

#include <atomic>
#include <cstring>

namespace simhca {

void EventRing::Raise(const mlx5::Eqe& event) {
  if (path_ != nullptr) {
    path_->Carry(*this, event);
  } else {
    Publish(event);
  }
}

void EventRing::Publish(const mlx5::Eqe& event) {
  mlx5::Eqe& eqe = ring_[producer_ & (entries_ - 1)];
  std::memcpy(static_cast<void*>(&eqe), &event, offsetof(mlx5::Eqe, owner));
  const uint8_t owner = (producer_ & entries_) != 0 ? 1 : 0;
  std::atomic_ref<uint8_t>(eqe.owner).store(owner, std::memory_order_release);
  ++producer_;
  handler_->OnInterrupt();
}

void EventRing::Push(mlx5::EventType type, uint32_t number) {
  mlx5::Eqe event{};
  event.type = type;
  event.number = number;
  Raise(event);
}

void EventRing::PushCqError(uint32_t cqn) {
  mlx5::Eqe event{};
  event.type = mlx5::EventType::kCqError;
  event.cq_error_cqn = cqn;
  event.cq_error_syndrome = 1;  // overrun
  Raise(event);
}

void EventRing::PushPortChange(mlx5::PortChange change) {
  mlx5::Eqe event{};
  event.type = mlx5::EventType::kPortChange;
  event.sub_type = static_cast<uint8_t>(change);
  event.port = 1 << 4;
  Raise(event);
}

}  // namespace simhca
