#include "sim/timing/event_queue.h"

#include <algorithm>
#include <bit>

namespace simhca {

EventQueue::EventQueue() {
  for (ListLink& list : lists_) list.next = list.previous = &list;
}

void EventQueue::Schedule(Timer& timer, Time when) {
  if (when == kNever) return Cancel(timer);
  Cancel(timer);
  ++size_;
  timer.when_ = when;
  if (when <= earliest_) {
    earliest_ = when;
    earliest_is_exact_ = true;
  }
  Insert(timer);
}

void EventQueue::Cancel(Timer& timer) {
  if (!timer.armed()) return;
  Unlink(timer);
  if (--size_ == 0) {
    earliest_ = kNever;
    earliest_is_exact_ = true;
  } else if (timer.when_ == earliest_) {
    earliest_is_exact_ = false;
  }
}

Time EventQueue::NextTime() const {
  if (earliest_is_exact_) return earliest_;
  const ListLink& list = ListOf(FirstSlot());
  Time earliest = kNever;
  for (const ListLink* link = list.next; link != &list; link = link->next) {
    earliest = std::min(earliest, static_cast<const Timer*>(link)->when_);
  }
  earliest_ = earliest;
  earliest_is_exact_ = true;
  return earliest;
}

size_t EventQueue::RunUntil(Time now) {
  size_t fired = 0;
  while (RunNext(now)) ++fired;
  return fired;
}

EventQueue::Slot EventQueue::FirstSlot() const {
  const int level = std::countr_zero(used_levels_);
  return {level, std::countr_zero(used_slots_[level])};
}

// The digits of the position above the slot's level, the slot's own digit, and zeros.
Time EventQueue::StartOf(Slot slot) const {
  const int shift = slot.level * kDigitBits;
  const uint64_t below = (uint64_t{kSlotsPerLevel} << shift) - 1;
  return static_cast<Time>((static_cast<uint64_t>(position_) & ~below) |
                           static_cast<uint64_t>(slot.index) << shift);
}

bool EventQueue::FireNext(Time now) {
  for (;;) {
    const Slot slot = FirstSlot();
    const ListLink& list = ListOf(slot);
    Timer& first = *static_cast<Timer*>(list.next);
    // At the lowest level a list is in order; a timer that is alone needs no spreading.
    const bool is_earliest = slot.level == 0 || first.next == &list;
    if (!is_earliest) {
      // The position must not pass `now`: what is scheduled next may lie in between.
      const Time start = StartOf(slot);
      if (start > now) {
        if (!earliest_is_exact_) earliest_ = start;
        return false;
      }
      Spread(slot);
      continue;
    }
    earliest_ = first.when_;
    earliest_is_exact_ = first.when_ > now;
    if (first.when_ > now) return false;
    Fire(first);
    return true;
  }
}

void EventQueue::Fire(Timer& timer) {
  position_ = std::max(position_, timer.when_);
  Unlink(timer);
  if (--size_ == 0) {
    earliest_ = kNever;
    earliest_is_exact_ = true;
  }
  timer.callback_(timer.context_, timer.when_);
}

// Moves the position to the start of `slot`, the first of a level above 0, and its timers to where
// they belong from there.
void EventQueue::Spread(Slot slot) {
  position_ = StartOf(slot);
  ListLink& list = ListOf(slot);
  ListLink* link = list.next;
  list.next = list.previous = &list;
  MarkEmpty(slot.level, slot.index);
  while (link != &list) {
    ListLink* following = link->next;
    Insert(*static_cast<Timer*>(link));
    link = following;
  }
}

void EventQueue::Insert(Timer& timer) {
  const Time time = std::max(timer.when_, position_);
  const uint64_t difference = static_cast<uint64_t>(time ^ position_);
  const int level = difference == 0 ? 0 : (std::bit_width(difference) - 1) / kDigitBits;
  const int index = static_cast<int>(time >> (level * kDigitBits)) & (kSlotsPerLevel - 1);
  timer.slot_ = static_cast<uint32_t>(level * kSlotsPerLevel + index);
  ListLink* before = lists_[timer.slot_].previous;
  // Timers that were due when they were scheduled share a slot with those of the position itself.
  while (level == 0 && before != &lists_[timer.slot_] &&
         static_cast<Timer*>(before)->when_ > timer.when_) {
    before = before->previous;
  }
  timer.previous = before;
  timer.next = before->next;
  before->next->previous = &timer;
  before->next = &timer;
  used_slots_[level] |= uint64_t{1} << index;
  used_levels_ |= 1u << level;
}

// Takes the timer out of its list and disarms it.
void EventQueue::Unlink(Timer& timer) {
  timer.previous->next = timer.next;
  timer.next->previous = timer.previous;
  timer.next = nullptr;
  const ListLink& list = lists_[timer.slot_];
  if (list.next == &list) MarkEmpty(timer.slot_ / kSlotsPerLevel, timer.slot_ % kSlotsPerLevel);
}

void EventQueue::MarkEmpty(int level, int index) {
  used_slots_[level] &= ~(uint64_t{1} << index);
  if (used_slots_[level] == 0) used_levels_ &= ~(1u << level);
}

}  // namespace simhca
