#include "sim/timing/gap_timeline.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace simhca {
namespace {

TEST(GapTimelineTest, RequestsInOrderQueue) {
  GapTimeline line(1);
  EXPECT_EQ(line.Reserve(100, 10), 110);
  EXPECT_EQ(line.Reserve(100, 10), 120);
  EXPECT_EQ(line.Reserve(105, 10), 130);
  EXPECT_EQ(line.busy(), 30);
  EXPECT_EQ(line.next_free(), 130);
}

TEST(GapTimelineTest, AReservationForLaterLeavesTheTimeBeforeItToOthers) {
  GapTimeline line(1);
  EXPECT_EQ(line.Reserve(1000, 10), 1010);
  EXPECT_EQ(line.Reserve(50, 10), 60);
  EXPECT_EQ(line.Reserve(50, 10), 70);
  EXPECT_EQ(line.Reserve(985, 10), 995);
  EXPECT_EQ(line.Reserve(0, 50), 50);
  EXPECT_EQ(line.next_free(), 1010);
}

TEST(GapTimelineTest, WhatDoesNotFitBeforeAReservationComesAfterIt) {
  GapTimeline line(1);
  EXPECT_EQ(line.Reserve(1000, 10), 1010);
  EXPECT_EQ(line.Reserve(995, 10), 1020);
  EXPECT_EQ(line.Reserve(0, 1000), 1000);
  EXPECT_EQ(line.Reserve(0, 1), 1021);
}

TEST(GapTimelineTest, TimeIsNeverGivenTwice) {
  GapTimeline line(3);
  uint32_t random = 12345;
  std::vector<std::pair<Time, Time>> taken;
  for (int i = 0; i < 2000; ++i) {
    random = random * 1664525 + 1013904223;
    const Time arrival = i * 10 + (random >> 24);
    const Duration service = 1 + (random >> 8) % 15;
    const Time end = line.Reserve(arrival, service);
    ASSERT_GE(end - service, arrival);
    for (const auto& [begin, until] : taken) ASSERT_TRUE(end <= begin || end - service >= until);
    taken.emplace_back(end - service, end);
  }
}

TEST(GapTimelineTest, TheEarliestGapsAreForgotten) {
  GapTimeline line(1);
  for (size_t i = 1; i <= GapTimeline::kMostGaps + 1; ++i) line.Reserve(i * 100, 10);
  // The period before the first reservation is gone, the one after it is not.
  EXPECT_EQ(line.Reserve(0, 10), 120);
}

}  // namespace
}  // namespace simhca
