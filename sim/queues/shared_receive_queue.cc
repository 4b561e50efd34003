#include "sim/queues/shared_receive_queue.h"

#include <cerrno>

#include "sim/queues/mlx5/layout.h"

namespace simhca {

SharedReceiveQueue::SharedReceiveQueue(uint32_t srqn, uint32_t pd, const Memory& memory,
                                       EventRing* events, uint32_t max_limit, bool limit_at_once)
    : srqn_(srqn),
      pd_(pd),
      memory_(memory),
      posted_(memory.doorbell_record, 0),
      events_(events),
      max_limit_(max_limit),
      limit_at_once_(limit_at_once) {}

std::optional<ReceiveWqe> SharedReceiveQueue::Claim() {
  if (failed_ || fill() == 0) return std::nullopt;
  std::byte* entry = memory_.ring + size_t{head_} * memory_.stride;
  const auto* next = reinterpret_cast<const mlx5::SrqNextSegment*>(entry);
  const auto* segments = reinterpret_cast<const mlx5::DataSegment*>(entry + sizeof(*next));
  const uint32_t count = memory_.stride / sizeof(mlx5::DataSegment) - 1;
  ReceiveWqe wqe{.index = head_,
                 .follows_neighbour = head_ == ((last_ + 1) & (memory_.entries - 1)),
                 .buffers = ScatterCursor(segments, count)};
  last_ = head_;
  head_ = static_cast<uint16_t>(next->next_wqe_index & (memory_.entries - 1));
  ++claimed_;
  if (limit_ != 0 && fill() < limit_) RaiseLimitEvent();
  return wqe;
}

int SharedReceiveQueue::Modify(const Change& change) {
  if (failed_) return EINVAL;
  const uint32_t max_limit = change.resize ? change.resize->max_limit : max_limit_;
  const uint32_t limit = change.limit.value_or(limit_);
  if (limit > max_limit) return EINVAL;
  if (change.resize && (change.resize->capacity < fill() || change.resize->capacity < limit)) {
    return EINVAL;
  }
  if (change.resize) {
    memory_.ring = change.resize->ring;
    memory_.entries = change.resize->entries;
    max_limit_ = max_limit;
  }
  if (change.limit) {
    limit_ = limit;
    // A queue that ran low between refill and arming would otherwise never wake its owner.
    if (limit_at_once_ && fill() < limit_) RaiseLimitEvent();
  }
  return 0;
}

void SharedReceiveQueue::Fail() {
  failed_ = true;
  limit_ = 0;
  events_->Push(mlx5::EventType::kSrqCatastrophic, srqn_);
}

void SharedReceiveQueue::RaiseLimitEvent() {
  limit_ = 0;
  events_->Push(mlx5::EventType::kSrqLimit, srqn_);
}

}  // namespace simhca
