#include "sim/timing/clock.h"

#include <gtest/gtest.h>

#include "sim/timing/timeline.h"

namespace simhca {
namespace {

TEST(TimeTest, TransferTimeIsExactAndRoundsUp) {
  EXPECT_EQ(TransferTime(1250, 100'000'000'000), 100 * kNanosecond);
  EXPECT_EQ(TransferTime(1, 3'000'000'000'000), 3);  // 2.67 ps
  EXPECT_EQ(TransferTime(uint64_t{1} << 31, 8'000'000'000), (int64_t{1} << 31) * kNanosecond);
  EXPECT_EQ(TransferTime(0, 1), 0);
}

TEST(TimeTest, TicksFollowTheDeviceClock) {
  EXPECT_EQ(ToTicks(kSecond, 156'250), 156'250'000u);
  EXPECT_EQ(ToTicks(64 * kNanosecond, 156'250), 10u);
  EXPECT_EQ(ToTicks(1500, 1'000'000), 1u);
  EXPECT_EQ(ToTicks(100 * 86'400 * kSecond, 1'000'000), 8'640'000'000'000'000u);
}

TEST(TimeTest, SaturatingAddStopsAtNever) {
  EXPECT_EQ(SaturatingAdd(3, 4), 7);
  EXPECT_EQ(SaturatingAdd(kNever - 1, 1), kNever);
  EXPECT_EQ(SaturatingAdd(kNever - 1, 2), kNever);
  EXPECT_EQ(SaturatingAdd(5, kNever), kNever);
}

TEST(ClockTest, WallClockCountsFromTheEpochAndNeverGoesBack) {
  const int64_t epoch = WallClock::MonotonicNanoseconds() - 1'000'000'000;
  const WallClock clock(epoch);
  Time last = clock.Now();
  EXPECT_GE(last, kSecond);
  EXPECT_LT(last, 60 * kSecond);
  for (int i = 0; i < 1000; ++i) {
    const Time now = clock.Now();
    EXPECT_GE(now, last);
    last = now;
  }
}

TEST(ClockTest, VirtualClockMovesOnlyForward) {
  VirtualClock clock;
  EXPECT_EQ(clock.Now(), 0);
  clock.AdvanceTo(5 * kMicrosecond);
  clock.AdvanceTo(2 * kMicrosecond);
  EXPECT_EQ(clock.Now(), 5 * kMicrosecond);
}

TEST(ClockTest, ModeNamesRoundTrip) {
  for (ClockMode mode : {ClockMode::kWall, ClockMode::kPaced, ClockMode::kVirtual}) {
    EXPECT_EQ(ParseClockMode(ClockModeName(mode)), mode);
  }
  EXPECT_FALSE(ParseClockMode("Virtual").has_value());
}

TEST(IdleStreakTest, StepsStartAtAHundredNanosecondsAndGrowWithTheStreak) {
  IdleStreak streak;
  for (int i = 0; i < 17; ++i) EXPECT_EQ(streak.NextStep(true), 100 * kNanosecond) << i;
  EXPECT_EQ(streak.length(), 1700 * kNanosecond);
  EXPECT_EQ(streak.NextStep(true), 1700 * kNanosecond / 16);
}

TEST(IdleStreakTest, LongestRnrStallTakesAFewHundredSteps) {
  IdleStreak streak;
  int steps = 0;
  while (streak.length() < 655'360 * kMicrosecond) {
    streak.NextStep(true);
    ++steps;
  }
  EXPECT_GT(steps, 100);
  EXPECT_LT(steps, 300);
}

TEST(IdleStreakTest, NoStepIsLongerThanASecond) {
  IdleStreak streak;
  for (int i = 0; i < 100'000; ++i) ASSERT_LE(streak.NextStep(true), kSecond);
}

TEST(IdleStreakTest, TimeLastsForHoursOfPollingInVain) {
  IdleStreak streak;
  Duration passed = 0;
  for (int i = 0; i < 50'000'000; ++i) passed += streak.NextStep(false);
  EXPECT_LT(passed, 1000 * kSecond);
}

TEST(IdleStreakTest, EveryRetryOfTheLongestAckTimeoutComesToItsEnd) {
  IdleStreak streak;
  Duration passed = 0;
  for (int i = 0; i < 100'000; ++i) passed += streak.NextStep(true);
  EXPECT_GT(passed, 8 * 8797 * kSecond);
  for (int i = 0; i < 50'000'000; ++i) passed += streak.NextStep(true);
  EXPECT_LT(passed, 110'000 * kSecond);
}

TEST(IdleStreakTest, AProductiveCallStartsANewStreak) {
  IdleStreak streak;
  for (int i = 0; i < 100; ++i) streak.NextStep(true);
  streak.Reset();
  EXPECT_EQ(streak.NextStep(true), 100 * kNanosecond);
}

TEST(IdleStreakTest, UndoTakesBackWhatAStepDidNotUse) {
  IdleStreak streak;
  streak.NextStep(true);
  streak.Undo(60 * kNanosecond);
  EXPECT_EQ(streak.length(), 40 * kNanosecond);
}

TEST(TimelineTest, RequestsQueueBehindEachOther) {
  Timeline wire;
  EXPECT_EQ(wire.Reserve(100, 10), 110);
  EXPECT_EQ(wire.Reserve(105, 10), 120);  // waits for the first
  EXPECT_EQ(wire.Reserve(500, 10), 510);  // idle in between
  EXPECT_EQ(wire.next_free(), 510);
  EXPECT_EQ(wire.busy(), 30);
}

TEST(TimeTest, SaturatingAddNeverWrapsAround) {
  EXPECT_EQ(SaturatingAdd(-5 * kMillisecond, 7 * kMillisecond), 2 * kMillisecond);
  EXPECT_EQ(SaturatingAdd(-5, kNever), kNever);
  EXPECT_EQ(SaturatingAdd(kNever, 5), kNever);
  EXPECT_EQ(SaturatingAdd(kNever - 1, 5), kNever);
}

}  // namespace
}  // namespace simhca
