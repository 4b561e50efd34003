#include "sim/timing/event_queue.h"

#include <algorithm>

namespace simhca {
namespace {
constexpr size_t kArity = 4;
}  // namespace

void EventQueue::Schedule(Timer& timer, Time when) {
  if (when == kNever) return Cancel(timer);
  timer.when_ = when;
  const Node node{when, next_sequence_++, &timer};
  if (!timer.armed()) {
    heap_.push_back(node);
    return SiftUp(heap_.size() - 1, node);
  }
  // A later sequence number makes the node later even at the same time.
  const size_t position = timer.position_;
  if (node.Before(heap_[position])) {
    SiftUp(position, node);
  } else {
    SiftDown(position, node);
  }
}

void EventQueue::Cancel(Timer& timer) {
  if (!timer.armed()) return;
  const size_t position = timer.position_;
  timer.position_ = Timer::kNotArmed;
  Remove(position);
}

bool EventQueue::RunNext(Time now) {
  if (heap_.empty() || heap_[0].when > now) return false;
  Timer* timer = heap_[0].timer;
  timer->position_ = Timer::kNotArmed;
  Remove(0);
  timer->callback_(timer->context_, timer->when_);
  return true;
}

size_t EventQueue::RunUntil(Time now) {
  size_t fired = 0;
  while (RunNext(now)) ++fired;
  return fired;
}

void EventQueue::SiftUp(size_t position, const Node& node) {
  while (position > 0) {
    const size_t parent = (position - 1) / kArity;
    if (!node.Before(heap_[parent])) break;
    Place(position, heap_[parent]);
    position = parent;
  }
  Place(position, node);
}

void EventQueue::SiftDown(size_t position, const Node& node) {
  const size_t size = heap_.size();
  for (;;) {
    const size_t first = position * kArity + 1;
    if (first >= size) break;
    const size_t end = std::min(first + kArity, size);
    size_t best = first;
    for (size_t child = first + 1; child < end; ++child) {
      if (heap_[child].Before(heap_[best])) best = child;
    }
    if (!heap_[best].Before(node)) break;
    Place(position, heap_[best]);
    position = best;
  }
  Place(position, node);
}

void EventQueue::Remove(size_t position) {
  const Node last = heap_.back();
  heap_.pop_back();
  if (position == heap_.size()) return;
  if (position > 0 && last.Before(heap_[(position - 1) / kArity])) {
    SiftUp(position, last);
  } else {
    SiftDown(position, last);
  }
}

}  // namespace simhca
