#include "sim/timing/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
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

// Few or many in one slot of a high level, with some scheduled when the others are being fired.
TEST_F(EventQueueTest, EqualTimesFarAheadFireInScheduleOrder) {
  for (int count : {2, 8, 9, 300}) {
    const Time when = queue_.empty() && log_.empty() ? kSecond : log_.back().when + kSecond;
    const int first = static_cast<int>(probes_.size());
    for (int i = 0; i < count; ++i) queue_.Schedule(Add().timer, when + i % 2);
    log_.clear();
    ASSERT_TRUE(queue_.RunNext(when));
    queue_.Schedule(Add().timer, when);
    queue_.Schedule(Add().timer, when + 1);
    ASSERT_EQ(queue_.RunUntil(when + 1), static_cast<size_t>(count) + 1);
    ASSERT_EQ(log_.size(), static_cast<size_t>(count) + 2);
    EXPECT_EQ(log_.front().number, first);
    EXPECT_EQ(log_.back(), (Probe::Entry{first + count + 1, when + 1}));
    EXPECT_TRUE(std::is_sorted(log_.begin(), log_.end(), [](const auto& a, const auto& b) {
      return a.when != b.when ? a.when < b.when : a.number < b.number;
    })) << count;
  }
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

TEST_F(EventQueueTest, WhatHasFiredIsNoLongerCounted) {
  for (Time when : {10, 20, 20}) queue_.Schedule(Add().timer, when);
  EXPECT_TRUE(queue_.RunNext(10));
  EXPECT_EQ(queue_.size(), 2u);
  EXPECT_EQ(queue_.NextTime(), 20);
  queue_.Schedule(probes_[0].timer, 15);
  EXPECT_EQ(queue_.size(), 3u);
  EXPECT_EQ(queue_.NextTime(), 15);
  EXPECT_EQ(queue_.RunUntil(100), 3u);
  EXPECT_TRUE(queue_.empty());
  EXPECT_EQ(queue_.NextTime(), kNever);
}

TEST_F(EventQueueTest, ACallbackMayDestroyItsTimer) {
  struct Once {
    std::unique_ptr<Once>* owner;
    Timer timer = Timer::Calling<&Once::Fire>(this);
    void Fire(Time) { owner->reset(); }
  };
  std::unique_ptr<Once> once;
  once = std::unique_ptr<Once>(new Once{&once});
  queue_.Schedule(once->timer, 1);
  queue_.Schedule(Add().timer, 2);
  EXPECT_EQ(queue_.RunUntil(2), 2u);
  EXPECT_EQ(once, nullptr);
  EXPECT_EQ(log_, (std::vector<Probe::Entry>{{0, 2}}));
}

TEST_F(EventQueueTest, OverdueTimersFireInOrderToo) {
  queue_.Schedule(Add().timer, 1000);
  EXPECT_EQ(queue_.RunUntil(1000), 1u);
  for (Time when : {1000, 900, 950, 900, -5}) queue_.Schedule(Add().timer, when);
  EXPECT_EQ(queue_.NextTime(), -5);
  log_.clear();
  EXPECT_EQ(queue_.RunUntil(1000), 5u);
  EXPECT_EQ(log_, (std::vector<Probe::Entry>{{5, -5}, {2, 900}, {4, 900}, {3, 950}, {1, 1000}}));
}

TEST_F(EventQueueTest, AskingForTheNextTimeDoesNotHinderEarlierTimers) {
  queue_.Schedule(Add().timer, 655'360 * kMicrosecond);
  queue_.Schedule(Add().timer, 655'361 * kMicrosecond);
  EXPECT_EQ(queue_.NextTime(), 655'360 * kMicrosecond);
  EXPECT_FALSE(queue_.RunNext(655'359 * kMicrosecond));
  queue_.Schedule(Add().timer, 3);
  EXPECT_EQ(queue_.NextTime(), 3);
  EXPECT_EQ(queue_.RunUntil(kSecond), 3u);
  EXPECT_EQ(log_.front(), (Probe::Entry{2, 3}));
}

TEST_F(EventQueueTest, TheWholeRangeOfTimeIsUsable) {
  std::vector<Time> times = {0, 1, 63, 64, 4095, 4096, kSecond, 100 * 86'400 * kSecond, kNever - 1};
  for (auto time = times.rbegin(); time != times.rend(); ++time) {
    queue_.Schedule(Add().timer, *time);
  }
  for (Time time : times) {
    EXPECT_EQ(queue_.NextTime(), time);
    EXPECT_FALSE(queue_.RunNext(time - 1)) << time;
    EXPECT_TRUE(queue_.RunNext(time)) << time;
    EXPECT_EQ(log_.back().when, time);
  }
  EXPECT_TRUE(queue_.empty());
}

// Against a plain list that is sorted whenever something fires; with delays up to 2^range.
class EventQueueRandomTest : public EventQueueTest, public testing::WithParamInterface<int> {};

TEST_P(EventQueueRandomTest, AgreesWithASortedList) {
  struct Pending {
    Time when;
    int order;
    int number;
  };
  const Time range = Time{1} << GetParam();
  std::mt19937_64 random(GetParam());
  std::vector<Pending> expected;
  for (int i = 0; i < 300; ++i) Add();
  int order = 0;
  Time now = 0;
  for (int step = 0; step < 20000; ++step) {
    const int number = static_cast<int>(random() % probes_.size());
    Timer& timer = probes_[number].timer;
    const uint64_t action = random() % 10;
    if (action < 8) {
      std::erase_if(expected, [&](const Pending& entry) { return entry.number == number; });
      if (action < 6) {
        const Time when = now - range / 16 + static_cast<Time>(random() % range);
        queue_.Schedule(timer, when);
        expected.push_back({when, order++, number});
      } else {
        queue_.Cancel(timer);
      }
    } else {
      now += static_cast<Time>(random() % (range / 8));
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
    if (step % 3 != 0) continue;
    Time next = kNever;
    for (const Pending& entry : expected) next = std::min(next, entry.when);
    ASSERT_EQ(queue_.NextTime(), next) << "step " << step;
    ASSERT_EQ(queue_.size(), expected.size()) << "step " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranges, EventQueueRandomTest, testing::Values(4, 7, 14, 25, 37, 45));

}  // namespace
}  // namespace simhca
