#include "sim/timing/server_pool.h"

#include <algorithm>

namespace simhca {

ServerPool::ServerPool(uint32_t servers) : free_(std::max<uint32_t>(servers, 1), 0) {}

Time ServerPool::Take(Time at) {
  const auto later = std::upper_bound(free_.begin(), free_.end(), at);
  taken_ = later == free_.begin() ? 0 : static_cast<size_t>(later - free_.begin()) - 1;
  return std::max(at, free_[taken_]);
}

void ServerPool::Release(Time until) {
  const auto taken = free_.begin() + static_cast<std::ptrdiff_t>(taken_);
  *taken = until;
  // The others stay in order around it.
  const auto place = std::upper_bound(taken + 1, free_.end(), until);
  if (place != taken + 1) {
    std::rotate(taken, taken + 1, place);
  } else {
    std::rotate(std::upper_bound(free_.begin(), taken, until), taken, taken + 1);
  }
}

}  // namespace simhca
