#include "sim/queues/scatter_cursor.h"

#include <algorithm>
#include <cstring>

#include "sim/memory/access.h"

namespace simhca {

uint64_t ScatterCursor::Capacity() const {
  uint64_t total = 0;
  for (uint32_t i = 0; i < count_ && !segments_[i].terminates(); ++i) {
    total += segments_[i].byte_count;
  }
  return total;
}

template <typename CopyPiece>
AccessFault ScatterCursor::Walk(const RegionTable& regions, uint32_t pd, uint32_t access,
                                uint64_t length, CopyPiece copy_piece) {
  while (length > 0) {
    if (index_ >= count_) return AccessFault::kBounds;
    const mlx5::DataSegment& segment = segments_[index_];
    const uint64_t left = segment.byte_count - offset_;
    const uint64_t piece = std::min(left, length);
    if (piece > 0) {
      AccessFault fault = AccessFault::kNone;
      std::byte* host =
          regions.Translate(segment.lkey, segment.address + offset_, piece, pd, access, &fault);
      if (host == nullptr) return fault;
      copy_piece(host, piece);
      offset_ += piece;
      length -= piece;
    }
    if (offset_ == segment.byte_count) {
      ++index_;
      offset_ = 0;
    }
  }
  return AccessFault::kNone;
}

AccessFault ScatterCursor::Scatter(const RegionTable& regions, uint32_t pd, const std::byte* from,
                                   uint64_t length) {
  return Walk(regions, pd, kLocalWrite, length, [&from](std::byte* host, uint64_t piece) {
    std::memcpy(host, from, piece);
    from += piece;
  });
}

AccessFault ScatterCursor::Gather(const RegionTable& regions, uint32_t pd, std::byte* to,
                                  uint64_t length) {
  return Walk(regions, pd, 0, length, [&to](std::byte* host, uint64_t piece) {
    std::memcpy(to, host, piece);
    to += piece;
  });
}

void ScatterCursor::Skip(uint64_t length) {
  while (length > 0 && index_ < count_) {
    const uint64_t left = segments_[index_].byte_count - offset_;
    const uint64_t piece = std::min(left, length);
    offset_ += piece;
    length -= piece;
    if (offset_ == segments_[index_].byte_count) {
      ++index_;
      offset_ = 0;
    }
  }
}

}  // namespace simhca
