#include "sim/timing/event_queue.h"

#include <algorithm>

namespace simhca {
namespace {
constexpr size_t kArity = 4;
}  // namespace

void EventQueue::Schedule(Timer& timer, Time when) {
  if (when == kNever) return Cancel(timer);
  timer.when_ = when;
  if (timer.armed()) return Move(timer, when);
  if (!vacant_) return Insert(timer, when);
  vacant_ = false;
  timer.slot_ = heap_[0].slot();
  timers_[timer.slot_] = &timer;
  SiftDown(0, NextNode(when, timer.slot_));
}

void EventQueue::Cancel(Timer& timer) {
  if (!timer.armed()) return;
  if (vacant_) FillRoot();
  const size_t position = positions_[timer.slot_];
  ReturnSlot(timer.slot_);
  timer.slot_ = Timer::kNotArmed;
  Remove(position);
}

bool EventQueue::RunNext(Time now) {
  if (vacant_) FillRoot();
  if (nodes_ == 0 || heap_[0].when > now) return false;
  Timer* timer = timers_[heap_[0].slot()];
  timer->slot_ = Timer::kNotArmed;
  vacant_ = true;
  timer->callback_(timer->context_, timer->when_);
  return true;
}

size_t EventQueue::RunUntil(Time now) {
  size_t fired = 0;
  while (RunNext(now)) ++fired;
  return fired;
}

Time EventQueue::NextTimeBelowRoot() const {
  Time next = kNever;
  const size_t end = std::min(1 + kArity, nodes_);
  for (size_t child = 1; child < end; ++child) next = std::min(next, heap_[child].when);
  return next;
}

uint32_t EventQueue::TakeSlot(Timer& timer) {
  if (free_slot_ == kNoSlot) AddSlot();
  const uint32_t slot = free_slot_;
  free_slot_ = positions_[slot];
  timers_[slot] = &timer;
  timer.slot_ = slot;
  return slot;
}

void EventQueue::ReturnSlot(uint32_t slot) {
  positions_[slot] = free_slot_;
  free_slot_ = slot;
}

// More timers are pending than ever before.
[[gnu::noinline]] void EventQueue::AddSlot() {
  const uint32_t slot = static_cast<uint32_t>(timers_.size());
  timers_.push_back(nullptr);
  positions_.push_back(kNoSlot);
  heap_.emplace_back();
  ReturnSlot(slot);
}

[[gnu::noinline]] void EventQueue::Insert(Timer& timer, Time when) {
  const Node node = NextNode(when, TakeSlot(timer));
  SiftUp(nodes_++, node);
}

[[gnu::noinline]] void EventQueue::Move(Timer& timer, Time when) {
  if (vacant_) FillRoot();
  const size_t position = positions_[timer.slot_];
  const Node node = NextNode(when, timer.slot_);
  if (node.Before(heap_[position])) {
    SiftUp(position, node);
  } else {
    SiftDown(position, node);
  }
}

// Gives up the place of a timer that fired and has no successor.
[[gnu::noinline]] void EventQueue::FillRoot() {
  vacant_ = false;
  ReturnSlot(heap_[0].slot());
  Remove(0);
}

void EventQueue::Remove(size_t position) {
  const Node last = heap_[--nodes_];
  if (position == nodes_) return;
  if (position > 0 && last.Before(heap_[(position - 1) / kArity])) {
    SiftUp(position, last);
  } else {
    SiftDown(position, last);
  }
}

[[gnu::noinline]] size_t EventQueue::EarliestOf(size_t first, size_t end) const {
  size_t best = first;
  for (size_t i = first + 1; i < end; ++i) {
    if (heap_[i].Before(heap_[best])) best = i;
  }
  return best;
}

// Which of four is first is anybody's guess, for the branch predictor too: compares in pairs and
// selects by arithmetic.
[[gnu::always_inline]] inline size_t EventQueue::EarliestOfFour(size_t first) const {
  const Node* nodes = heap_.data() + first;
  const Time a = nodes[0].when, b = nodes[1].when, c = nodes[2].when, d = nodes[3].when;
  const Time ab = b < a ? b : a;
  const Time cd = d < c ? d : c;
  if ((a == b) | (c == d) | (ab == cd)) [[unlikely]] return EarliestOf(first, first + 4);
  const size_t left = first + (b < a ? 1 : 0);
  const size_t right = first + 2 + (d < c ? 1 : 0);
  const size_t choose_right = -static_cast<size_t>(cd < ab);  // all ones or zero
  return left ^ ((left ^ right) & choose_right);
}

// Puts `node`, which belongs at `position` or above, in its place.
void EventQueue::SiftUp(size_t position, Node node) {
  while (position > 0) {
    const size_t parent = (position - 1) / kArity;
    if (!node.Before(heap_[parent])) break;
    Place(position, heap_[parent]);
    position = parent;
  }
  Place(position, node);
}

// Puts `node`, which belongs at `position` or below, in its place.
void EventQueue::SiftDown(size_t position, Node node) {
  const size_t size = nodes_;
  for (size_t first; (first = position * kArity + 1) < size;) {
    const size_t best =
        first + kArity <= size ? EarliestOfFour(first) : EarliestOf(first, size);
    if (!heap_[best].Before(node)) break;
    Place(position, heap_[best]);
    position = best;
  }
  Place(position, node);
}

}  // namespace simhca
