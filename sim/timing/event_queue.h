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

  bool armed() const { return slot_ != kNotArmed; }
  // Time it is armed for, or was last; kNever before the first.
  Time when() const { return when_; }

 private:
  friend class EventQueue;
  static constexpr uint32_t kNotArmed = std::numeric_limits<uint32_t>::max();

  Time when_ = kNever;
  Callback callback_;
  void* context_;
  uint32_t slot_ = kNotArmed;  // the queue's number for it
};

// Pending timers in order of time; equal times fire in the order in which they were scheduled, so
// that a run can be repeated exactly.
//
// A 4-ary heap whose nodes hold the keys: the four children of a node are 64 bytes.  A node names
// its timer by a slot number, so that moving it touches two dense arrays and never the timers.  The
// root stays vacant after its timer has fired, since most timers that fire schedule a successor,
// which then takes its place in one pass.  Allocates only when more timers are pending than ever
// before; at most 2^24 may be.
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
  Time NextTime() const {
    if (vacant_) return NextTimeBelowRoot();
    return nodes_ == 0 ? kNever : heap_[0].when;
  }
  bool empty() const { return size() == 0; }
  size_t size() const { return nodes_ - (vacant_ ? 1 : 0); }

  // Fires the next timer if it is due at `now`; false if none is.
  bool RunNext(Time now);
  // Fires all that are due at `now`, those that callbacks schedule meanwhile included.  Returns
  // how many.
  size_t RunUntil(Time now);

 private:
  static constexpr int kSlotBits = 24;
  static constexpr uint32_t kNoSlot = std::numeric_limits<uint32_t>::max();

  struct Node {
    Time when;
    uint64_t order;  // 63:24 counts schedulings, 23:0 slot of the timer

    uint32_t slot() const { return static_cast<uint32_t>(order) & ((1u << kSlotBits) - 1); }
    bool Before(const Node& other) const {
      if (when == other.when) [[unlikely]] return order < other.order;
      return when < other.when;
    }
  };

  Node NextNode(Time when, uint32_t slot) {
    return Node{when, next_sequence_++ << kSlotBits | slot};
  }
  void Place(size_t position, const Node& node) {
    heap_[position] = node;
    positions_[node.slot()] = static_cast<uint32_t>(position);
  }
  Time NextTimeBelowRoot() const;
  uint32_t TakeSlot(Timer& timer);
  void ReturnSlot(uint32_t slot);
  void AddSlot();
  void Insert(Timer& timer, Time when);
  void Move(Timer& timer, Time when);
  void FillRoot();
  void Remove(size_t position);
  size_t EarliestOf(size_t first, size_t end) const;
  size_t EarliestOfFour(size_t first) const;
  void SiftUp(size_t position, Node node);
  void SiftDown(size_t position, Node node);

  std::vector<Node> heap_;           // the first `nodes_`; as long as the vectors by slot
  size_t nodes_ = 0;
  bool vacant_ = false;              // heap_[0] is what has fired; its slot is still taken
  std::vector<Timer*> timers_;       // by slot
  std::vector<uint32_t> positions_;  // by slot: index into heap_; in a free slot, the next free one
  uint32_t free_slot_ = kNoSlot;     // first of the list of free slots
  uint64_t next_sequence_ = 0;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_TIMING_EVENT_QUEUE_H_
