#ifndef SIMHCA_VERBS_SHIM_DRIVER_WQE_WRITER_H_
#define SIMHCA_VERBS_SHIM_DRIVER_WQE_WRITER_H_

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "sim/queues/mlx5/layout.h"
#include "verbs_shim/driver/work_queues.h"

namespace simhca::driver {

// Writes the segments of one send WQE, one after the other, from a send queue's next block on;
// past the end of the ring it goes on at the beginning.
class WqeWriter {
 public:
  WqeWriter() = default;
  explicit WqeWriter(const SendQueue& queue)
      : ring_(queue.memory.data()),
        end_(ring_ + size_t{queue.blocks} * mlx5::kSendBlockBytes),
        at_(queue.Block(queue.next_block)) {}

  // The next segment, to be filled in.  Segments have 16 bytes and rings a multiple of that, so
  // none is split.
  template <typename Segment>
  Segment& Append() {
    static_assert(sizeof(Segment) == kUnit);
    if (at_ == end_) at_ = ring_;
    auto* segment = reinterpret_cast<Segment*>(at_);
    at_ += kUnit;
    bytes_ += kUnit;
    return *segment;
  }

  void AppendData(uint64_t address, uint32_t length, uint32_t lkey) {
    auto& segment = Append<mlx5::DataSegment>();
    segment.byte_count = mlx5::SegmentLength(length);
    segment.lkey = lkey;
    segment.address = address;
  }

  // An inline segment of `total` bytes: a length word, then the bytes, which AppendInline gives in
  // pieces.  EndInline goes on to the next 16-byte boundary.
  void BeginInline(uint32_t total) {
    if (at_ == end_) at_ = ring_;
    const Be32 header = total | mlx5::kInlineFlag;
    std::memcpy(at_, &header, sizeof(header));
    at_ += sizeof(header);
    bytes_ += sizeof(header);
  }
  void AppendInline(const void* data, size_t length) {
    auto* from = static_cast<const std::byte*>(data);
    while (length > 0) {
      if (at_ == end_) at_ = ring_;
      const size_t piece = std::min(length, static_cast<size_t>(end_ - at_));
      std::memcpy(at_, from, piece);
      at_ += piece;
      from += piece;
      length -= piece;
      bytes_ += static_cast<uint32_t>(piece);
    }
  }
  void EndInline() {
    const uint32_t padding = (kUnit - bytes_ % kUnit) % kUnit;
    at_ += padding;
    bytes_ += padding;
  }

  uint32_t units() const { return bytes_ / kUnit; }
  uint32_t blocks() const { return (bytes_ + mlx5::kSendBlockBytes - 1) / mlx5::kSendBlockBytes; }

 private:
  static constexpr uint32_t kUnit = 16;

  std::byte* ring_ = nullptr;
  std::byte* end_ = nullptr;
  std::byte* at_ = nullptr;
  uint32_t bytes_ = 0;
};

}  // namespace simhca::driver

#endif  // SIMHCA_VERBS_SHIM_DRIVER_WQE_WRITER_H_
