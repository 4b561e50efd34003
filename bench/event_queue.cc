// The simulator's queue of pending timers against a binary heap and against the scheduler that ns-3
// uses unless told otherwise, by the hold model: with a steady number of pending events, each
// iteration takes the earliest, calls it, and schedules one at a random later time.  All queues see
// the same sequence of delays.  What matters are the ratios; take them from interleaved runs:
//
//   event_queue --benchmark_enable_random_interleaving --benchmark_repetitions=15

#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <queue>
#include <vector>

#ifdef SIMHCA_HAVE_NS3
#include <ns3/event-impl.h>
#include <ns3/map-scheduler.h>
#endif

#include "sim/timing/event_queue.h"

namespace simhca::bench {
namespace {

// Exponentially distributed, with a mean like that of a device's acknowledgement timers.  Drawing
// one costs a nanosecond, so that the queues are what is measured.
class Delays {
 public:
  Delays() {
    for (size_t i = 0; i < kSteps; ++i) {
      const double part = (static_cast<double>(i) + 0.5) / kSteps;
      quantiles_[i] = 1 + static_cast<Time>(-std::log(part) * kMean);
    }
  }
  Time Next() {
    // Marsaglia's xorshift: never repeats within a run.
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return quantiles_[state_ % kSteps] + static_cast<Time>(state_ >> 51);
  }

 private:
  static constexpr double kMean = 10 * kMicrosecond;
  static constexpr size_t kSteps = 1024;

  Time quantiles_[kSteps];
  uint64_t state_ = 88172645463325252;
};

// Each queue is a class with these members:
//   explicit Queue(size_t pending);   that many events, scheduled from time 0
//   void Hold();                      takes the earliest event, whose callback schedules it again
//   Time now() const;                 time of the event taken last

class WheelQueue {
 public:
  explicit WheelQueue(size_t pending) {
    for (size_t i = 0; i < pending; ++i) {
      events_.emplace_back(this);
      queue_.Schedule(events_.back().timer, delays_.Next());
    }
  }
  ~WheelQueue() {
    for (Event& event : events_) queue_.Cancel(event.timer);
  }
  void Hold() { queue_.RunNext(kNever); }
  Time now() const { return now_; }

 private:
  struct Event {
    explicit Event(WheelQueue* owner) : owner(owner) {}
    void Fire(Time when) {
      owner->now_ = when;
      owner->queue_.Schedule(timer, when + owner->delays_.Next());
    }
    WheelQueue* owner;
    Timer timer = Timer::Calling<&Event::Fire>(this);
  };

  Delays delays_;
  Time now_ = 0;
  EventQueue queue_;
  std::deque<Event> events_;
};

class HeapQueue {
 public:
  explicit HeapQueue(size_t pending) {
    for (size_t i = 0; i < pending; ++i) Schedule(delays_.Next());
  }
  void Hold() {
    const Event event = events_.top();
    events_.pop();
    event.callback(event.context, event.when);
  }
  Time now() const { return now_; }

 private:
  struct Event {
    Time when;
    uint64_t sequence;
    Timer::Callback callback;
    void* context;
    bool operator<(const Event& other) const {  // the top is the greatest
      return when != other.when ? when > other.when : sequence > other.sequence;
    }
  };
  static void Fire(void* context, Time when) {
    auto* const self = static_cast<HeapQueue*>(context);
    self->now_ = when;
    self->Schedule(when + self->delays_.Next());
  }
  void Schedule(Time when) { events_.push({when, sequence_++, Fire, this}); }

  Delays delays_;
  Time now_ = 0;
  uint64_t sequence_ = 0;
  std::priority_queue<Event> events_;
};

#ifdef SIMHCA_HAVE_NS3
// ns-3's queue alone: its simulator adds the allocation of every event.
class Ns3Queue {
 public:
  explicit Ns3Queue(size_t pending) : scheduler_(ns3::Create<ns3::MapScheduler>()) {
    for (size_t i = 0; i < pending; ++i) {
      events_.emplace_back(this);
      Schedule(&events_.back(), delays_.Next());
    }
  }
  void Hold() {
    const ns3::Scheduler::Event event = scheduler_->RemoveNext();
    now_ = static_cast<Time>(event.key.m_ts);
    event.impl->Invoke();
  }
  Time now() const { return now_; }

 private:
  class Event : public ns3::EventImpl {
   public:
    explicit Event(Ns3Queue* owner) : owner_(owner) {}

   private:
    void Notify() override { owner_->Schedule(this, owner_->now_ + owner_->delays_.Next()); }
    Ns3Queue* owner_;
  };
  void Schedule(Event* event, Time when) {
    scheduler_->Insert({event, {static_cast<uint64_t>(when), sequence_++, 0}});
  }

  Delays delays_;
  Time now_ = 0;
  uint32_t sequence_ = 0;
  ns3::Ptr<ns3::MapScheduler> scheduler_;
  std::deque<Event> events_;
};
#endif

// Every event of the run took place at the same time in every queue, or the figures mean nothing.
template <typename Queue>
bool AgreesWithTheHeap(size_t pending) {
  Queue queue(pending);
  HeapQueue heap(pending);
  for (size_t i = 0; i < 2 * pending + 1000; ++i) {
    queue.Hold();
    heap.Hold();
    if (queue.now() != heap.now()) return false;
  }
  return true;
}

template <typename Queue>
void Hold(benchmark::State& state) {
  const auto pending = static_cast<size_t>(state.range(0));
  if (!AgreesWithTheHeap<Queue>(pending)) {
    state.SkipWithError("events in another order than the heap's");
    return;
  }
  Queue queue(pending);
  // Past the start, in which no event has been scheduled twice.
  for (size_t i = 0; i < 4 * pending; ++i) queue.Hold();
  for (auto _ : state) queue.Hold();
  state.SetItemsProcessed(state.iterations());
}

template <typename Queue>
void Register(const char* name) {
  benchmark::RegisterBenchmark(name, Hold<Queue>)
      ->ArgName("pending")
      ->Arg(10)
      ->Arg(1000)
      ->Arg(100'000);
}

}  // namespace
}  // namespace simhca::bench

int main(int argc, char** argv) {
  using namespace simhca::bench;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  Register<WheelQueue>("Hold/EventQueue");
  Register<HeapQueue>("Hold/std::priority_queue");
#ifdef SIMHCA_HAVE_NS3
  Register<Ns3Queue>("Hold/ns3::MapScheduler");
#else
  fprintf(
      stderr,
      "event_queue: built without ns-3 (Debian package libns3-dev): its scheduler is left out\n");
#endif
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
