#ifndef SIMHCA_SIM_QUEUES_SCATTER_CURSOR_H_
#define SIMHCA_SIM_QUEUES_SCATTER_CURSOR_H_

#include <cstddef>
#include <cstdint>

#include "sim/memory/region_table.h"
#include "sim/queues/mlx5/layout.h"

namespace simhca {

// Walks the data segments of a work request while a message is copied into or out of them, packet
// by packet.  Keys are checked when a segment is reached, with the protection domain given.
class ScatterCursor {
 public:
  ScatterCursor() = default;
  ScatterCursor(const mlx5::DataSegment* segments, uint32_t count)
      : segments_(segments), count_(count) {}

  // Index of the segment that the next byte belongs to.
  uint32_t segment() const { return index_; }

  // Bytes that all segments hold.
  uint64_t Capacity() const;

  // Copies `length` bytes from `from` into the segments, or from the segments to `to`.  Stops at
  // the first refused segment (its bytes and later ones are not touched) and returns the reason.
  // `length` must not exceed what is left.
  AccessFault Scatter(const RegionTable& regions, uint32_t pd, const std::byte* from,
                      uint64_t length);
  AccessFault Gather(const RegionTable& regions, uint32_t pd, std::byte* to, uint64_t length);

  // Moves on without copying.
  void Skip(uint64_t length);

 private:
  template <typename CopyPiece>
  AccessFault Walk(const RegionTable& regions, uint32_t pd, uint32_t access, uint64_t length,
                   CopyPiece copy_piece);

  const mlx5::DataSegment* segments_ = nullptr;
  uint32_t count_ = 0;
  uint32_t index_ = 0;
  uint64_t offset_ = 0;  // in segment index_
};

}  // namespace simhca

#endif  // SIMHCA_SIM_QUEUES_SCATTER_CURSOR_H_
