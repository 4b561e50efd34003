#include "sim/timing/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

namespace simhca {
namespace {

// A timer that writes its number and time into a common log.
struct Probe {
  struct Entry {
    int number;
    Time when;
    bool operator==(const Entry&) const = default;
  };

  Probe(int number, std::vector<Entry>* log) : number(number), log(log) {}
  void Fire(Time when) { log->push_back({number, when}); }

  int number;
  std::vector<Entry>* log;
  Timer timer = Timer::Calling<&Probe::Fire>(this);
};

class EventQueueTest : public testing::Test {
 protected:
  Probe& Add() { return probes_.emplace_back(static_cast<int>(probes_.size()), &log_); }

  std::vector<Probe::Entry> log_;
  std::deque<Probe> probes_;
  EventQueue queue_;
};

TEST_F(EventQueueTest, EmptyQueueHasNoNextTime) {
  EXPECT_TRUE(queue_.empty());
  EXPECT_EQ(queue_.NextTime(), kNever);
  EXPECT_FALSE(queue_.RunNext(kNever));
}

TEST_F(EventQueueTest, TimersFireInOrderOfTime) {
  for (Time when : {30, 10, 20}) queue_.Schedule(Add().timer, when);
  EXPECT_EQ(queue_.NextTime(), 10);
  EXPECT_EQ(queue_.RunUntil(25), 2u);
  EXPECT_EQ(log_, (std::vector<Probe::Entry>{{1, 10}, {2, 20}}));
  EXPECT_TRUE(probes_[0].timer.armed());
  EXPECT_FALSE(probes_[1].timer.armed());
  EXPECT_EQ(queue_.NextTime(), 30);
}

TEST_F(EventQueueTest, EqualTimesFireInScheduleOrder) {
  for (int i = 0; i < 50; ++i) queue_.Schedule(Add().timer, 7);
  queue_.Schedule(probes_[3].timer, 7);  // scheduled again: now the last
  EXPECT_EQ(queue_.RunUntil(7), 50u);
  EXPECT_EQ(log_.back().number, 3);
  log_.pop_back();
  EXPECT_TRUE(std::is_sorted(log_.begin(), log_.end(),
                             [](const auto& a, const auto& b) { return a.number < b.number; }));
}

TEST_F(EventQueueTest, CancelledTimersDoNotFire) {
  for (Time when : {10, 20, 30}) queue_.Schedule(Add().timer, when);
  queue_.Cancel(probes_[1].timer);
  queue_.Cancel(probes_[1].timer);  // again: no effect
  queue_.Schedule(probes_[0].timer, kNever);
  EXPECT_FALSE(probes_[0].timer.armed());
  EXPECT_EQ(queue_.RunUntil(100), 1u);
  EXPECT_EQ(log_, (std::vector<Probe::Entry>{{2, 30}}));
}

TEST_F(EventQueueTest, ReschedulingMovesATimerBothWays) {
  for (Time when : {10, 20, 30}) queue_.Schedule(Add().timer, when);
  queue_.Schedule(probes_[0].timer, 40);
  queue_.Schedule(probes_[2].timer, 5);
  EXPECT_EQ(queue_.size(), 3u);
  queue_.RunUntil(100);
  EXPECT_EQ(log_, (std::vector<Probe::Entry>{{2, 5}, {1, 20}, {0, 40}}));
}

TEST_F(EventQueueTest, ACallbackMayScheduleItself) {
  struct Ticker {
    EventQueue* queue;
    int left;
    std::vector<Time> seen;
    Timer timer = Timer::Calling<&Ticker::Tick>(this);
    void Tick(Time when) {
      EXPECT_FALSE(timer.armed());
      seen.push_back(when);
      if (--left > 0) queue->Schedule(timer, when + 10);
    }
  };
  Ticker ticker{&queue_, 4, {}};
  queue_.Schedule(ticker.timer, 10);
  EXPECT_EQ(queue_.RunUntil(30), 3u);
  EXPECT_EQ(ticker.seen, (std::vector<Time>{10, 20, 30}));
  EXPECT_EQ(queue_.NextTime(), 40);
  queue_.Cancel(ticker.timer);
}

TEST_F(EventQueueTest, ACallbackMayCancelAnotherThatIsDue) {
  struct Canceller {
    EventQueue* queue;
    Timer* victim;
    Timer timer = Timer::Calling<&Canceller::Fire>(this);
    void Fire(Time) { queue->Cancel(*victim); }
  };
  Probe& victim = Add();
  Canceller canceller{&queue_, &victim.timer};
  queue_.Schedule(canceller.timer, 10);
  queue_.Schedule(victim.timer, 10);
  EXPECT_EQ(queue_.RunUntil(10), 1u);
  EXPECT_TRUE(log_.empty());
}

// Against a plain list that is sorted whenever something fires.
TEST_F(EventQueueTest, AgreesWithASortedListUnderRandomUse) {
  struct Pending {
    Time when;
    int order;
    int number;
  };
  std::mt19937 random(1);
  std::vector<Pending> expected;
  for (int i = 0; i < 300; ++i) Add();
  int order = 0;
  Time now = 0;
  for (int step = 0; step < 20000; ++step) {
    const int number = static_cast<int>(random() % probes_.size());
    Timer& timer = probes_[number].timer;
    const uint32_t action = random() % 10;
    if (action < 8) {
      std::erase_if(expected, [&](const Pending& entry) { return entry.number == number; });
      if (action < 6) {
        const Time when = now + random() % 50;
        queue_.Schedule(timer, when);
        expected.push_back({when, order++, number});
      } else {
        queue_.Cancel(timer);
      }
    } else {
      now += random() % 4;
      std::sort(expected.begin(), expected.end(), [](const Pending& a, const Pending& b) {
        return a.when != b.when ? a.when < b.when : a.order < b.order;
      });
      std::vector<Probe::Entry> due;
      while (!expected.empty() && expected.front().when <= now) {
        due.push_back({expected.front().number, expected.front().when});
        expected.erase(expected.begin());
      }
      log_.clear();
      queue_.RunUntil(now);
      ASSERT_EQ(log_, due) << "step " << step;
    }
    ASSERT_EQ(queue_.size(), expected.size()) << "step " << step;
  }
}

}  // namespace
}  // namespace simhca
