#include "sim/timing/gap_timeline.h"

#include <algorithm>

namespace simhca {

GapTimeline::GapTimeline(Duration shortest_gap)
    : shortest_gap_(std::max<Duration>(shortest_gap, 1)) {
  gaps_.reserve(kMostGaps);
}

Time GapTimeline::Reserve(Time arrival, Duration service) {
  busy_ += service;
  if (arrival >= next_free_) {
    Insert(gaps_.size(), next_free_, arrival);
    return next_free_ = arrival + service;
  }
  auto gap = std::partition_point(gaps_.begin(), gaps_.end(),
                                  [arrival](const Gap& each) { return each.end <= arrival; });
  for (; gap != gaps_.end(); ++gap) {
    const Time begin = std::max(arrival, gap->begin);
    const Time end = begin + service;
    if (end > gap->end) continue;
    const Gap whole = *gap;
    const size_t index = static_cast<size_t>(gap - gaps_.begin());
    gaps_.erase(gap);
    Insert(index, end, whole.end);
    Insert(index, whole.begin, begin);
    return end;
  }
  return next_free_ += service;
}

void GapTimeline::Insert(size_t index, Time begin, Time end) {
  if (end - begin < shortest_gap_) return;
  if (gaps_.size() == kMostGaps) {
    // The earliest is the least likely to be asked for.
    if (index == 0) return;
    gaps_.erase(gaps_.begin());
    --index;
  }
  gaps_.insert(gaps_.begin() + static_cast<std::ptrdiff_t>(index), {begin, end});
}

}  // namespace simhca
