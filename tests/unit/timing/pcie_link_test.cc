#include "sim/timing/pcie_link.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace simhca {
namespace {

constexpr Duration kReadLatency = 550 * kNanosecond;
constexpr Duration kWriteLatency = 250 * kNanosecond;
constexpr uint64_t kGen3x8 = 57'880'000'000;
constexpr uint64_t kGen3x16 = 113'700'000'000;

PcieLink::Config Config(uint64_t rate, uint32_t outstanding = 1024) {
  return {.bits_per_second = rate,
          .max_payload = 256,
          .max_read_request = 512,
          .outstanding_reads = outstanding,
          .read_latency = kReadLatency,
          .write_latency = kWriteLatency,
          .doorbell_latency = 100 * kNanosecond};
}

// Gb/s of payload in `count` transfers of `bytes` that took `elapsed`.
double Gbps(uint64_t count, uint32_t bytes, Duration elapsed) {
  return static_cast<double>(count * bytes * 8) * 1000 / static_cast<double>(elapsed);
}

double WriteGbps(uint64_t rate, uint32_t bytes) {
  PcieLink link(Config(rate));
  constexpr int kCount = 1000;
  Time done = 0;
  for (int i = 0; i < kCount; ++i) done = link.Write(0, bytes);
  return Gbps(kCount, bytes, done - kWriteLatency);
}

double ReadGbps(uint64_t rate, uint32_t bytes, uint32_t outstanding = 1024) {
  PcieLink link(Config(rate, outstanding));
  constexpr int kCount = 10000;
  Time done = 0;
  for (int i = 0; i < kCount; ++i) done = link.Read(0, bytes);
  return Gbps(kCount, bytes, done - kReadLatency);
}

TEST(PcieLinkTest, BandwidthsOfThePcieBenchModel) {
  struct Row {
    uint64_t rate;
    double writes64, reads64, writes256, reads256;  // Gb/s
  };
  for (const Row& row :
       {Row{kGen3x8, 42.10, 44.10, 52.92, 53.69}, Row{kGen3x16, 82.69, 86.63, 103.95, 105.46}}) {
    EXPECT_NEAR(WriteGbps(row.rate, 64), row.writes64, row.writes64 / 100);
    EXPECT_NEAR(ReadGbps(row.rate, 64), row.reads64, row.reads64 / 100);
    EXPECT_NEAR(WriteGbps(row.rate, 256), row.writes256, row.writes256 / 100);
    EXPECT_NEAR(ReadGbps(row.rate, 256), row.reads256, row.reads256 / 100);
  }
}

TEST(PcieLinkTest, LargeTransfersAreCutIntoTlps) {
  PcieLink link(Config(kGen3x16));
  // 1000 bytes: writes of 256, 256, 256, 232; reads of 512 and 488, each answered in two parts.
  link.Write(0, 1000);
  EXPECT_EQ(link.counters().upstream.tlps, 4u);
  EXPECT_EQ(link.counters().upstream.bytes, 1000u + 4 * 24);
  link.Read(0, 1000);
  EXPECT_EQ(link.counters().read_requests, 2u);
  EXPECT_EQ(link.counters().upstream.tlps, 6u);
  EXPECT_EQ(link.counters().upstream.bytes, 1000u + 6 * 24);
  EXPECT_EQ(link.counters().downstream.tlps, 4u);
  EXPECT_EQ(link.counters().downstream.bytes, 1000u + 4 * 20);
  EXPECT_EQ(link.counters().writes, 1u);
  EXPECT_EQ(link.counters().reads, 1u);
}

TEST(PcieLinkTest, ALoneTransferTakesItsLatencyAndItsBytes) {
  PcieLink link(Config(8'000'000'000));  // a byte per nanosecond
  EXPECT_EQ(link.Write(1000, 64), 1000 + 88 * kNanosecond + kWriteLatency);
  EXPECT_EQ(link.Read(kMicrosecond, 64), kMicrosecond + (24 + 84) * kNanosecond + kReadLatency);
  EXPECT_EQ(link.DoorbellArrives(500), 500 + 100 * kNanosecond);
  EXPECT_EQ(link.counters().doorbells, 1u);
}

TEST(PcieLinkTest, NothingTakesNoTime) {
  PcieLink link(Config(kGen3x8));
  EXPECT_EQ(link.Write(77, 0), 77);
  EXPECT_EQ(link.Read(77, 0), 77);
  EXPECT_EQ(link.counters().upstream.tlps, 0u);
}

TEST(PcieLinkTest, TheHeadOfAReadIsThereBeforeTheRest) {
  PcieLink link(Config(8'000'000'000));
  const PcieLink::ReadTimes times = link.ReadWithHead(0, 1024, 64);
  EXPECT_EQ(times.head, (24 + 84) * kNanosecond + kReadLatency);
  // The second request's data follow the first's at once.
  EXPECT_EQ(times.last, (24 + 1024 + 4 * 20) * kNanosecond + kReadLatency);
}

TEST(PcieLinkTest, RequestsInFlightBoundTheReads) {
  // Each takes its latency, its request and its completion.
  const Duration one = kReadLatency + TransferTime(24 + 84, kGen3x16);
  const double bound = Gbps(8, 64, one);
  EXPECT_NEAR(ReadGbps(kGen3x16, 64, 8), bound, bound / 100);
  EXPECT_LT(bound, 8);
}

TEST(PcieLinkTest, TheDirectionsDoNotDisturbEachOther) {
  PcieLink link(Config(8'000'000'000));
  Time written = 0;
  Time read = 0;
  for (int i = 0; i < 100; ++i) {
    written = link.Write(0, 256);
    read = std::max(read, link.Read(0, 256));
  }
  // Upstream also carries the requests, downstream only completions.
  EXPECT_EQ(link.upstream_busy(), 100 * (280 + 24) * kNanosecond);
  EXPECT_EQ(link.downstream_busy(), 100 * 276 * kNanosecond);
  EXPECT_LE(written, 100 * 304 * kNanosecond + kWriteLatency);
  EXPECT_LE(read, 100 * 304 * kNanosecond + 276 * kNanosecond + kReadLatency);
}

TEST(PcieLinkTest, AChainOfReadsMadeAheadDoesNotHoldUpOthers) {
  PcieLink link(Config(kGen3x16, 4));
  Time chain = 0;
  for (int i = 0; i < 50; ++i) chain = link.Read(chain, 64);
  EXPECT_GT(chain, 50 * kReadLatency);
  const Time at = 100 * kNanosecond;
  EXPECT_LT(link.Read(at, 64), at + kReadLatency + 20 * kNanosecond);
  EXPECT_LT(link.Write(at, 64), at + kWriteLatency + 20 * kNanosecond);
}

}  // namespace
}  // namespace simhca
