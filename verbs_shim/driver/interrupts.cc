#include "verbs_shim/driver/interrupts.h"

#include "verbs_shim/driver/channel.h"
#include "verbs_shim/driver/context.h"
#include "verbs_shim/driver/cq.h"
#include "verbs_shim/driver/qp.h"
#include "verbs_shim/driver/srq.h"

namespace simhca::driver {

namespace {
constexpr uint32_t kNumberMask = 0xffffff;
}  // namespace

Interrupts::Interrupts(Context* context) : context_(context), ring_(kEntries * sizeof(mlx5::Eqe)) {
  if (ring_.data() == nullptr) return;
  auto* entries = reinterpret_cast<mlx5::Eqe*>(ring_.data());
  for (uint32_t i = 0; i < kEntries; ++i) entries[i].owner = 1;
}

void Interrupts::OnInterrupt() {
  const auto* entries = reinterpret_cast<const mlx5::Eqe*>(ring_.data());
  for (;;) {
    const mlx5::Eqe& eqe = entries[consumer_ & (kEntries - 1)];
    const uint8_t owner = __atomic_load_n(&eqe.owner, __ATOMIC_ACQUIRE);
    if ((owner & 1) != mlx5::Cqe::OwnerBit(consumer_, kEntries)) return;
    ++consumer_;
    Deliver(eqe);
  }
}

void Interrupts::Deliver(const mlx5::Eqe& eqe) {
  const uint32_t number = eqe.number & kNumberMask;
  switch (eqe.type) {
    case mlx5::EventType::kCompletion:
      return DeliverCompletion(number);
    case mlx5::EventType::kCqError:
      return DeliverToCq(eqe, eqe.cq_error_cqn & kNumberMask);
    case mlx5::EventType::kSrqCatastrophic:
    case mlx5::EventType::kSrqLimit:
      return DeliverToSrq(eqe, number);
    case mlx5::EventType::kPathMigrated:
    case mlx5::EventType::kCommunicationEstablished:
    case mlx5::EventType::kSendQueueDrained:
    case mlx5::EventType::kWorkQueueCatastrophic:
    case mlx5::EventType::kPathMigrationFailed:
    case mlx5::EventType::kInvalidRequest:
    case mlx5::EventType::kAccessViolation:
    case mlx5::EventType::kSrqLastWqe:
      return DeliverToQp(eqe, number);
    case mlx5::EventType::kInternalError:
    case mlx5::EventType::kPortChange:
      context_->async_events.Push(
          {.type = eqe.type, .sub_type = eqe.sub_type, .port = uint8_t(eqe.port >> 4)});
      return;
  }
}

void Interrupts::DeliverCompletion(uint32_t cqn) {
  Cq* cq = context_->cqs.Find(cqn);
  if (cq == nullptr || cq->channel == nullptr) return;
  cq->channel->events.Push(
      {.type = mlx5::EventType::kCompletion, .object = cq, .taken = &cq->completion_events_taken});
}

void Interrupts::DeliverToCq(const mlx5::Eqe& eqe, uint32_t cqn) {
  Cq* cq = context_->cqs.Find(cqn);
  if (cq == nullptr) return;
  context_->async_events.Push({.type = eqe.type, .object = cq, .taken = &cq->async_events_taken});
}

void Interrupts::DeliverToQp(const mlx5::Eqe& eqe, uint32_t qpn) {
  Qp* qp = context_->qps.Find(qpn);
  if (qp == nullptr) return;
  context_->async_events.Push({.type = eqe.type, .object = qp, .taken = &qp->events_taken});
}

void Interrupts::DeliverToSrq(const mlx5::Eqe& eqe, uint32_t srqn) {
  Srq* srq = context_->srqs.Find(srqn);
  if (srq == nullptr) return;
  if (eqe.type == mlx5::EventType::kSrqCatastrophic) srq->failed.store(true);
  context_->async_events.Push({.type = eqe.type, .object = srq, .taken = &srq->events_taken});
}

}  // namespace simhca::driver
