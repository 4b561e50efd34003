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
  const ListLink& list = lists_[FirstSlot()];
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

uint32_t EventQueue::FirstSlot() const {
  const auto word = static_cast<uint32_t>(std::countr_zero(used_words_));
  return word * kWordBits + static_cast<uint32_t>(std::countr_zero(used_slots_[word]));
}

// The digits of the position above the slot's level, the slot's own digit, and zeros.
Time EventQueue::StartOf(uint32_t slot) const {
  const uint32_t shift = slot / kSlotsPerLevel * kDigitBits;
  const uint64_t digit = slot % kSlotsPerLevel;
  // Two shifts: at the highest level they add up to all of the bits.
  const uint64_t above = static_cast<uint64_t>(position_) >> shift >> kDigitBits;
  return static_cast<Time>((above << kDigitBits | digit) << shift);
}

bool EventQueue::FireNext(Time now) {
  for (;;) {
    const uint32_t slot = FirstSlot();
    // At the lowest level a list is in order.
    Timer* const first = slot < kSlotsPerLevel ? static_cast<Timer*>(lists_[slot].next)
                                               : EarliestOfFew(lists_[slot]);
    if (first == nullptr) {
      // The position must not pass `now`: what is scheduled next may lie in between.
      const Time start = StartOf(slot);
      if (start > now) {
        if (!earliest_is_exact_) earliest_ = start;
        return false;
      }
      Spread(slot);
      continue;
    }
    earliest_ = first->when_;
    earliest_is_exact_ = first->when_ > now;
    if (first->when_ > now) return false;
    Fire(*first);
    return true;
  }
}

Timer* EventQueue::EarliestOfFew(const ListLink& list) {
  ListLink* link = list.next;
  auto* earliest = static_cast<Timer*>(link);
  int count = 1;
  while ((link = link->next) != &list) {
    if (++count > kFew) return nullptr;
    auto* const timer = static_cast<Timer*>(link);
    earliest = timer->when_ < earliest->when_ ? timer : earliest;
  }
  return earliest;
}

void EventQueue::Fire(Timer& timer) {
  Unlink(timer);
  // All others lie in later slots, whichever of its times the position takes.
  const ListLink& list = lists_[timer.slot_];
  if (list.next == &list) position_ = std::max(position_, timer.when_);
  if (--size_ == 0) {
    earliest_ = kNever;
    earliest_is_exact_ = true;
  }
  timer.callback_(timer.context_, timer.when_);
}

// Moves the position to the start of `slot`, the first of a level above 0, and its timers to where
// they belong from there.
void EventQueue::Spread(uint32_t slot) {
  position_ = StartOf(slot);
  ListLink& list = lists_[slot];
  ListLink* link = list.next;
  list.next = list.previous = &list;
  MarkEmpty(slot);
  while (link != &list) {
    ListLink* following = link->next;
    Insert(*static_cast<Timer*>(link));
    link = following;
  }
}

void EventQueue::Insert(Timer& timer) {
  if (timer.when_ <= position_) return InsertInOrder(timer);
  const auto difference = static_cast<uint64_t>(timer.when_ ^ position_);
  // Of the lowest bit of the highest digit that differs.
  const uint32_t shift = (std::bit_width(difference) - 1) & ~(kDigitBits - 1);
  const auto digit = static_cast<uint8_t>(static_cast<uint64_t>(timer.when_) >> shift);
  const uint32_t slot = shift / kDigitBits * kSlotsPerLevel + digit;
  InsertBefore(lists_[slot], timer, slot);
}

// Timers that were due when they were scheduled share a slot with those of the position itself.
void EventQueue::InsertInOrder(Timer& timer) {
  const auto slot = static_cast<uint32_t>(position_ % kSlotsPerLevel);
  ListLink* following = &lists_[slot];
  while (following->previous != &lists_[slot] &&
         static_cast<Timer*>(following->previous)->when_ > timer.when_) {
    following = following->previous;
  }
  InsertBefore(*following, timer, slot);
}

void EventQueue::InsertBefore(ListLink& following, Timer& timer, uint32_t slot) {
  timer.slot_ = slot;
  timer.next = &following;
  timer.previous = following.previous;
  timer.previous->next = &timer;
  following.previous = &timer;
  used_slots_[slot / kWordBits] |= uint64_t{1} << slot % kWordBits;
  used_words_ |= 1u << slot / kWordBits;
}

// Takes the timer out of its list and disarms it.
void EventQueue::Unlink(Timer& timer) {
  timer.previous->next = timer.next;
  timer.next->previous = timer.previous;
  timer.next = nullptr;
  const ListLink& list = lists_[timer.slot_];
  if (list.next == &list) MarkEmpty(timer.slot_);
}

void EventQueue::MarkEmpty(uint32_t slot) {
  uint64_t& word = used_slots_[slot / kWordBits];
  word &= ~(uint64_t{1} << slot % kWordBits);
  if (word == 0) used_words_ &= ~(1u << slot / kWordBits);
}

}  // namespace simhca
