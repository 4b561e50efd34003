#include "verbs_shim/driver/srq_sizes.h"

#include <algorithm>
#include <bit>

#include "sim/queues/mlx5/layout.h"

namespace simhca::driver {

namespace {

constexpr uint32_t kMinStride = 32;
constexpr uint32_t kSegmentBytes = sizeof(mlx5::DataSegment);

uint32_t StrideFor(uint32_t max_sge) {
  const auto needed = sizeof(mlx5::SrqNextSegment) + uint64_t{kSegmentBytes} * max_sge;
  return std::max(kMinStride, static_cast<uint32_t>(std::bit_ceil(needed)));
}

}  // namespace

SrqSizes ComputeSrqSizes(const DeviceProfile& profile, uint32_t max_wr, uint32_t max_sge) {
  SrqSizes size;
  size.stride = StrideFor(max_sge);
  if (profile.features.rounding == Rounding::kMlx5) {
    size.entries = static_cast<uint32_t>(std::bit_ceil(uint64_t{max_wr} + 1));
    size.capacity = size.entries - 1;
    size.max_sge = size.stride / kSegmentBytes - 1;
    // Where the device allows it, the mlx5 driver makes the ring twice as large, for entries whose
    // pages were missing.  It cannot be posted to, but query and the limit's range count it.
    const uint64_t with_reserve = 2 * uint64_t{max_wr} + 1;
    const uint64_t allocated =
        with_reserve <= profile.limits.max_srq_wr ? std::bit_ceil(with_reserve) : size.entries;
    size.query_max_wr = static_cast<uint32_t>(allocated - 1);
    size.max_limit = size.query_max_wr;
  } else {
    size.capacity = std::max(max_wr, 1u);
    size.entries = static_cast<uint32_t>(std::bit_ceil(uint64_t{size.capacity} + 1));
    size.max_sge = max_sge;
    size.query_max_wr = size.capacity;
    size.max_limit = size.capacity;
  }
  return size;
}

}  // namespace simhca::driver
