#ifndef SIMHCA_SIM_TIMING_EVENT_QUEUE_H_
#define SIMHCA_SIM_TIMING_EVENT_QUEUE_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "sim/timing/time.h"

namespace simhca {

class EventQueue;

namespace timing_internal {
// Member of a circular list.
struct ListLink {
  ListLink* next = nullptr;
  ListLink* previous = nullptr;
};
}  // namespace timing_internal

// One thing that is to happen at a time; lives in the object it belongs to.  Must be cancelled
// before it is destroyed, and does not move.
class Timer : private timing_internal::ListLink {
 public:
  // Called with `context` at the time it was armed for, after it was disarmed: the callback may
  // schedule it again, cancel others or destroy the timer.
  using Callback = void (*)(void* context, Time when);

  Timer(Callback callback, void* context) : callback_(callback), context_(context) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // A timer that calls the member function `Method` of `object`:
  //   Timer timer_ = Timer::Calling<&Requester::OnTimeout>(this);
  template <auto Method, typename Object>
  static Timer Calling(Object* object) {
    return Timer([](void* context, Time when) { (static_cast<Object*>(context)->*Method)(when); },
                 object);
  }

  bool armed() const { return next != nullptr; }
  // Time it is armed for, or was last; kNever before the first.
  Time when() const { return when_; }

 private:
  friend class EventQueue;

  Time when_ = kNever;
  Callback callback_;
  void* context_;
  uint32_t slot_ = 0;  // of the queue, while armed
};

// Pending timers in order of time; equal times fire in the order in which they were scheduled, so
// that a run can be repeated exactly.  Never allocates.
//
// A hierarchical timing wheel, exact to the picosecond.  Level n has 256 slots of 256^n
// picoseconds.  A timer lies at the level of the highest 8-bit digit in which its time differs from
// the wheel's position, in the slot of that digit; so all timers of one time are in one list, in
// the order in which they came.  When the position reaches a slot of a higher level with many
// timers, they are spread over the levels below; of a few, the earliest is looked up in place,
// while the position waits.  Scheduling and cancelling are O(1), which suits timers that are armed
// for every message and hardly ever fire.
class EventQueue {
 public:
  EventQueue();
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  // Arms `timer` for `when`, or moves it there (it then counts as scheduled now).  kNever cancels.
  void Schedule(Timer& timer, Time when);
  // Does nothing if the timer is not armed.
  void Cancel(Timer& timer);

  // Time of the next timer; kNever if there is none.  Remembered, but when the earliest timer is
  // gone the next call looks at all timers of one slot: for deciding how long to wait, while
  // RunUntil costs next to nothing when nothing is due.
  Time NextTime() const;
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }

  // Fires the next timer if it is due at `now`; false if none is.
  bool RunNext(Time now) { return now >= earliest_ && size_ != 0 && FireNext(now); }
  // Fires all that are due at `now`, those that callbacks schedule meanwhile included.  Returns
  // how many.
  size_t RunUntil(Time now);

 private:
  using ListLink = timing_internal::ListLink;

  static constexpr int kDigitBits = 8;
  static constexpr uint32_t kSlotsPerLevel = 1 << kDigitBits;
  static constexpr uint32_t kSlots = 8 * kSlotsPerLevel;  // level by level, the lowest first
  static constexpr uint32_t kWordBits = 64;
  // So many timers of one slot are cheaper to look through than to spread (bench/event_queue.cc).
  static constexpr int kFew = 8;

  // The first that has timers: the earliest are there.
  uint32_t FirstSlot() const;
  Time StartOf(uint32_t slot) const;

  bool FireNext(Time now);
  // The first of the earliest in `list`, which is not empty; null if it has more than kFew.
  static Timer* EarliestOfFew(const ListLink& list);
  void Fire(Timer& timer);
  void Spread(uint32_t slot);
  void Insert(Timer& timer);
  void Unlink(Timer& timer);
  void InsertInOrder(Timer& timer);
  void InsertBefore(ListLink& following, Timer& timer, uint32_t slot);
  void MarkEmpty(uint32_t slot);

  // The wheel's position; no timer lies before it, but some may have been due already when they
  // were scheduled.
  Time position_ = 0;
  // No timer is earlier.  The time of one if `earliest_is_exact_`.
  mutable Time earliest_ = kNever;
  mutable bool earliest_is_exact_ = true;
  size_t size_ = 0;
  uint32_t used_words_ = 0;                                // bit n: used_slots_[n] is not 0
  std::array<uint64_t, kSlots / kWordBits> used_slots_{};  // bit n of all: slot n has timers
  std::array<ListLink, kSlots> lists_;                     // sentinels
};

}  // namespace simhca

#endif  // SIMHCA_SIM_TIMING_EVENT_QUEUE_H_
