#include "sim/timing/receive_fetcher.h"

#include <gtest/gtest.h>

namespace simhca {
namespace {

constexpr uint64_t kRate = 113'700'000'000;
constexpr Duration kLatency = 550 * kNanosecond;
// From a WQE's address being known until the WQE is on the device, on a link that is idle.
constexpr Duration kFetch = kLatency + TransferTime(24, kRate) + TransferTime(64 + 20, kRate);

class ReceiveFetcherTest : public testing::Test {
 protected:
  PcieLink link_{{.bits_per_second = kRate,
                  .max_payload = 256,
                  .max_read_request = 512,
                  .outstanding_reads = 64,
                  .read_latency = kLatency,
                  .write_latency = 250 * kNanosecond,
                  .doorbell_latency = 0}};
  ReceiveFetcher fetcher_{{.prefetch = 8, .wqe_bytes = 64}};
};

TEST_F(ReceiveFetcherTest, AListThatAlwaysJumpsGivesOneEntryPerHostRead) {
  Time previous = fetcher_.Claim(0, false, link_);
  EXPECT_EQ(previous, kFetch);
  for (int i = 0; i < 100; ++i) {
    const Time claimed = fetcher_.Claim(0, false, link_);
    ASSERT_EQ(claimed - previous, kFetch) << i;
    previous = claimed;
  }
  EXPECT_EQ(fetcher_.counters().reads, 101u);
  EXPECT_EQ(fetcher_.counters().waits, 101u);
  EXPECT_EQ(link_.counters().reads, 101u);
}

TEST_F(ReceiveFetcherTest, MessagesThatComeSlowerThanJumpsCanBeFollowedDoNotWait) {
  for (Time now = kMillisecond; now < 2 * kMillisecond; now += kFetch) {
    ASSERT_EQ(fetcher_.Claim(now, false, link_), now);
  }
}

TEST_F(ReceiveFetcherTest, AContiguousListNeverWaitsInSteadyState) {
  fetcher_.Claim(0, false, link_);
  // A message of 4 KiB at 100 Gb/s takes 354 ns.  Room that a claim makes just after a read has
  // begun waits for that read and then for its own: 8 entries last for two host reads at 150 ns.
  Time begin = 0;
  for (const Duration interval : {354 * kNanosecond, 150 * kNanosecond}) {
    const uint64_t reads = fetcher_.counters().reads;
    begin += 10 * kMillisecond;
    for (Time now = begin; now < begin + kMillisecond; now += interval) {
      ASSERT_EQ(fetcher_.Claim(now, true, link_), now);
    }
    // About as many as fit behind one another.
    EXPECT_LE(fetcher_.counters().reads - reads,
              static_cast<uint64_t>(kMillisecond / kLatency) + 1);
  }
}

TEST_F(ReceiveFetcherTest, ABurstFasterThanTheFetcherGetsAReadsWorthPerLatency) {
  Time claimed = 0;
  for (int i = 0; i < 800; ++i) claimed = fetcher_.Claim(0, i != 0, link_);
  EXPECT_GE(claimed, 100 * kFetch);
  EXPECT_LE(claimed, 100 * kFetch * 11 / 10);
  EXPECT_LE(fetcher_.counters().reads, 201u);
}

TEST_F(ReceiveFetcherTest, AfterAnIdlePeriodAsManyAsThePrefetchAreAtHand) {
  // Even those that jump: there was time to follow them.
  Time now = kMillisecond;
  for (int i = 0; i < 8; ++i) ASSERT_EQ(fetcher_.Claim(now, false, link_), now) << i;
  // The next one's read began when the first claim made room.
  EXPECT_EQ(fetcher_.Claim(now, false, link_), now + kFetch);
  now += kMillisecond;
  EXPECT_EQ(fetcher_.Claim(now, false, link_), now);
}

TEST_F(ReceiveFetcherTest, AJumpInAContiguousListIsHiddenByWhatIsAtHand) {
  Time now = kMillisecond;
  for (int i = 0; i < 1000; ++i) {
    now += 354 * kNanosecond;
    ASSERT_EQ(fetcher_.Claim(now, i % 5 != 0, link_), now) << i;
  }
}

TEST_F(ReceiveFetcherTest, AWqePostedIntoAnEmptyListIsReadThen) {
  fetcher_.Post(kMillisecond, 1);
  EXPECT_EQ(fetcher_.Claim(kMillisecond, true, link_), kMillisecond + kFetch);
  fetcher_.Post(2 * kMillisecond, 2);
  EXPECT_EQ(fetcher_.Claim(2 * kMillisecond + 2 * kFetch, true, link_),
            2 * kMillisecond + 2 * kFetch);
  EXPECT_EQ(fetcher_.Claim(2 * kMillisecond + 2 * kFetch, true, link_),
            2 * kMillisecond + 2 * kFetch);
  // Posted 100 ns ago: 100 ns of its read are over.
  fetcher_.Post(3 * kMillisecond, 1);
  EXPECT_EQ(fetcher_.Claim(3 * kMillisecond + 100 * kNanosecond, true, link_),
            3 * kMillisecond + kFetch);
}

TEST_F(ReceiveFetcherTest, TwoListsDoNotWaitForEachOther) {
  ReceiveFetcher other({.prefetch = 8, .wqe_bytes = 64});
  Time first = 0;
  for (int i = 0; i < 50; ++i) first = fetcher_.Claim(0, false, link_);
  Time second = 0;
  for (int i = 0; i < 50; ++i) second = other.Claim(0, false, link_);
  EXPECT_LT(second, first + first / 10);
}

TEST_F(ReceiveFetcherTest, ABusyLinkDoesNotHoldUpWhatWasReadBefore) {
  fetcher_.Claim(0, false, link_);
  Time written = 0;
  for (Time now = kMillisecond; now < 2 * kMillisecond; now += 354 * kNanosecond) {
    // Always 750 ns of writes wait.  A read of 550 ns behind them is over in time if it is made
    // when there is room, but not if it is made at the claim.
    while (written < now + kMicrosecond) written = link_.Write(now, 256);
    ASSERT_EQ(fetcher_.Claim(now, true, link_), now);
  }
}

TEST_F(ReceiveFetcherTest, APrefetchOfOneReadsEachWqeByItself) {
  ReceiveFetcher single({.prefetch = 1, .wqe_bytes = 64});
  Time previous = single.Claim(0, true, link_);
  for (int i = 0; i < 10; ++i) {
    const Time claimed = single.Claim(0, true, link_);
    ASSERT_EQ(claimed - previous, kFetch);
    previous = claimed;
  }
}

}  // namespace
}  // namespace simhca
