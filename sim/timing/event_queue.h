#ifndef SIMHCA_SIM_TIMING_EVENT_QUEUE_H_
#define SIMHCA_SIM_TIMING_EVENT_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "sim/timing/time.h"

namespace simhca {

class EventQueue;

// One thing that is to happen at a time; lives in the object it belongs to.  Must be cancelled
// before it is destroyed, and does not move while armed.
class Timer {
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

  bool armed() const { return position_ != kNotArmed; }
  // Time it is armed for, or was last; kNever before the first.
  Time when() const { return when_; }

 private:
  friend class EventQueue;
  static constexpr uint32_t kNotArmed = std::numeric_limits<uint32_t>::max();

  Time when_ = kNever;
  Callback callback_;
  void* context_;
  uint32_t position_ = kNotArmed;  // in the queue's heap
};

// Pending timers in order of time; equal times fire in the order in which they were scheduled, so
// that a run can be repeated exactly.  A 4-ary heap with the keys in its nodes: one cache line
// holds the children of a node, and the timers themselves are touched only when their node moves.
// Allocates only when more timers are pending than ever before.
class EventQueue {
 public:
  EventQueue() = default;
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  // Arms `timer` for `when`, or moves it there (it then counts as scheduled now).  kNever cancels.
  void Schedule(Timer& timer, Time when);
  // Does nothing if the timer is not armed.
  void Cancel(Timer& timer);

  // Time of the next timer; kNever if there is none.
  Time NextTime() const { return heap_.empty() ? kNever : heap_[0].when; }
  bool empty() const { return heap_.empty(); }
  size_t size() const { return heap_.size(); }

  // Fires the next timer if it is due at `now`; false if none is.
  bool RunNext(Time now);
  // Fires all that are due at `now`, those that callbacks schedule meanwhile included.  Returns
  // how many.
  size_t RunUntil(Time now);

 private:
  struct Node {
    Time when;
    uint64_t sequence;  // order of scheduling
    Timer* timer;
    bool Before(const Node& other) const {
      return when != other.when ? when < other.when : sequence < other.sequence;
    }
  };

  void Place(size_t position, const Node& node) {
    heap_[position] = node;
    node.timer->position_ = static_cast<uint32_t>(position);
  }
  void SiftUp(size_t position, const Node& node);
  void SiftDown(size_t position, const Node& node);
  void Remove(size_t position);

  std::vector<Node> heap_;
  uint64_t next_sequence_ = 0;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_TIMING_EVENT_QUEUE_H_
