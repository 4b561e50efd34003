#ifndef SIMHCA_SIM_QUEUES_RECEIVE_QUEUE_H_
#define SIMHCA_SIM_QUEUES_RECEIVE_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "sim/queues/doorbell_record.h"
#include "sim/queues/mlx5/layout.h"
#include "sim/queues/receive_wqe.h"

namespace simhca {

// The device's side of a queue pair's own receive queue: a ring of entries of data segments.
class ReceiveQueue {
 public:
  ReceiveQueue() = default;
  // `entries` is a power of two, or 0 for a queue that never holds anything.
  ReceiveQueue(std::byte* ring, uint32_t entries, uint32_t stride, std::byte* doorbell_record)
      : ring_(ring),
        entries_(entries),
        stride_(stride),
        posted_(doorbell_record, mlx5::kReceiveRecord) {}

  std::optional<ReceiveWqe> Claim() {
    if (entries_ == 0 || static_cast<uint16_t>(posted_.Load()) == claimed_) return std::nullopt;
    const uint16_t index = static_cast<uint16_t>(claimed_ & (entries_ - 1));
    ++claimed_;
    const auto* segments =
        reinterpret_cast<const mlx5::DataSegment*>(ring_ + size_t{index} * stride_);
    return ReceiveWqe{.index = index,
                      .follows_neighbour = true,
                      .buffers = ScatterCursor(segments, stride_ / sizeof(mlx5::DataSegment))};
  }

  uint32_t stride() const { return stride_; }  // bytes of an entry; 0 without a queue
  void Reset() { claimed_ = 0; }

 private:
  std::byte* ring_ = nullptr;
  uint32_t entries_ = 0;
  uint32_t stride_ = 0;
  DoorbellRecord posted_;
  uint16_t claimed_ = 0;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_QUEUES_RECEIVE_QUEUE_H_
