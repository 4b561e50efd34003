#include "sim/fabric/faulty_link.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "sim/fabric/timed_loopback.h"
#include "sim/wire/headers.h"
#include "tests/unit/fabric/recorder.h"

namespace simhca {
namespace {

class FaultyLinkTest : public ::testing::Test {
 protected:
  // Sends packets with PSNs 0, 1, ... through a wire of this plan, one each microsecond.
  Recorder Send(const FaultPlan& plan, uint32_t count, uint64_t seed = 1) {
    TimedLoopback wire({}, {}, 0);
    FaultyLink link(wire, plan, seed, CounterSet(values_));
    Recorder recorder;
    Time now = 0;
    for (uint32_t psn = 0; psn < count; ++psn, now += kMicrosecond) {
      const Link::Reservation room = link.Reserve(2, 64);
      EXPECT_EQ(room.status, Link::Status::kReady);
      std::memset(room.bytes, 0x5a, 64);
      Bth bth;
      bth.psn = psn;
      bth.Emit(room.bytes);
      link.Commit({}, now);
      link.Poll(recorder, 1000, now);
    }
    EXPECT_LE(link.NextArrival() == kNever ? 0 : link.NextArrival(), now + plan.delay);
    link.Poll(recorder, 1000, now + plan.delay);
    EXPECT_EQ(link.NextArrival(), kNever);
    return recorder;
  }
  static std::vector<uint32_t> Psns(const Recorder& recorder) {
    std::vector<uint32_t> psns;
    for (const auto& packet : recorder.packets) {
      psns.push_back(Bth::Parse(packet.bytes.data()).psn);
    }
    return psns;
  }
  uint64_t Count(Counter counter) { return CounterSet(values_).Get(counter); }

  std::array<std::atomic<uint64_t>, kCountersPerProcess> values_{};
};

TEST_F(FaultyLinkTest, LosesAboutAsManyAsItShould) {
  const size_t arrived = Send({.loss = 0.1}, 10'000).packets.size();
  EXPECT_NEAR(static_cast<double>(arrived), 9000, 150);
  EXPECT_EQ(Count(Counter::kFaultsLost), 10'000 - arrived);
}

TEST_F(FaultyLinkTest, LosesThePacketsThatAreNamed) {
  EXPECT_EQ(Psns(Send({.lose = {1, 3}}, 5)), (std::vector<uint32_t>{1, 3, 4}));
}

TEST_F(FaultyLinkTest, DuplicatesArriveLaterAndUnchanged) {
  const Recorder recorder = Send({.duplicate = 1, .delay = 5 * kMicrosecond}, 100);
  ASSERT_EQ(recorder.packets.size(), 200u);
  std::array<int, 100> copies{};
  for (const uint32_t psn : Psns(recorder)) ++copies[psn];
  for (const int count : copies) EXPECT_EQ(count, 2);
  EXPECT_EQ(Count(Counter::kFaultsDuplicated), 100u);
}

TEST_F(FaultyLinkTest, ReorderedPacketsAreOvertakenAndNotLost) {
  const std::vector<uint32_t> psns = Psns(Send({.reorder = 0.2, .delay = 10 * kMicrosecond}, 1000));
  ASSERT_EQ(psns.size(), 1000u);
  size_t overtaken = 0;
  for (size_t i = 1; i < psns.size(); ++i) overtaken += psns[i] < psns[i - 1];
  EXPECT_GT(overtaken, 50u);
  std::vector<uint32_t> sorted = psns;
  std::sort(sorted.begin(), sorted.end());
  for (uint32_t i = 0; i < 1000; ++i) EXPECT_EQ(sorted[i], i);
}

// FECN and BECN are outside the ICRC: a change of nothing else gets through.
TEST_F(FaultyLinkTest, CorruptedPacketsFailTheirIcrc) {
  const Recorder recorder = Send({.corrupt = 1}, 20'000);
  EXPECT_GT(recorder.packets.size(), 10u);
  EXPECT_EQ(Count(Counter::kFaultsCorrupted), 20'000 - recorder.packets.size());
  for (const auto& packet : recorder.packets) {
    Bth bth = Bth::Parse(packet.bytes.data());
    EXPECT_EQ(bth.dest_qpn, 0u);
    EXPECT_EQ(packet.bytes[20], std::byte{0x5a});
  }
}

TEST_F(FaultyLinkTest, TheSameSeedGivesTheSameFaults) {
  const FaultPlan plan = {.loss = 0.1, .corrupt = 0.1, .duplicate = 0.1, .reorder = 0.1};
  const std::vector<uint32_t> first = Psns(Send(plan, 1000, 7));
  EXPECT_EQ(first, Psns(Send(plan, 1000, 7)));
  EXPECT_NE(first, Psns(Send(plan, 1000, 8)));
}

TEST_F(FaultyLinkTest, PacketsTooShortForAnIcrcPassAsTheyAre) {
  TimedLoopback wire({}, {}, 0);
  FaultyLink link(wire, {.corrupt = 1}, 1, CounterSet(values_));
  const Link::Reservation room = link.Reserve(2, 3);
  std::memset(room.bytes, 1, 3);
  link.Commit({}, 0);
  Recorder recorder;
  EXPECT_EQ(link.Poll(recorder, 10, 0), 1u);
  EXPECT_EQ(recorder.packets.size(), 1u);
}

TEST(FaultPlanTest, ReadsEverySetting) {
  FaultPlan plan;
  EXPECT_EQ(ParseFaultPlan("loss=1%,corrupt=0.25,duplicate=1,reorder=.5%,delay=1.5ms,lose=3,lose=9",
                           &plan),
            "");
  EXPECT_DOUBLE_EQ(plan.loss, 0.01);
  EXPECT_DOUBLE_EQ(plan.corrupt, 0.25);
  EXPECT_DOUBLE_EQ(plan.duplicate, 1);
  EXPECT_DOUBLE_EQ(plan.reorder, 0.005);
  EXPECT_EQ(plan.delay, 1500 * kMicrosecond);
  EXPECT_EQ(plan.lose, (std::vector<uint64_t>{3, 9}));
  EXPECT_TRUE(plan.any());
  EXPECT_FALSE(FaultPlan{}.any());
}

TEST(FaultPlanTest, RefusesEverythingElseAndChangesNothing) {
  for (const char* text : {"",
                           "loss",
                           "loss=",
                           "loss=2",
                           "loss=-1",
                           "loss=101%",
                           "loss=1%%",
                           "loss=nan",
                           "loss=inf",
                           "loss=0.1x",
                           "loss=0.1,",
                           ",loss=0.1",
                           "drop=0.1",
                           "delay=20",
                           "delay=0us",
                           "delay=0ns",
                           "delay=2000ms",
                           "delay=1s",
                           "lose=0",
                           "lose=x",
                           "lose=-1",
                           "lose=99999999999999999999",
                           "loss=1%,loss=2%",
                           "loss=1%,lose=3,loss=1%",
                           "delay=1us,delay=2us"}) {
    FaultPlan plan{.loss = 0.5};
    EXPECT_NE(ParseFaultPlan(text, &plan), "") << text;
    EXPECT_EQ(plan.loss, 0.5) << text;
  }
}

TEST(FaultPlanTest, RefusalsNameTheItemAndItsRange) {
  FaultPlan plan;
  EXPECT_EQ(ParseFaultPlan("lose=1,loss=101%", &plan),
            "'loss=101%' is not a probability of 0 to 1, or of 0% to 100%");
  EXPECT_EQ(ParseFaultPlan("delay=0ns", &plan),
            "'delay=0ns' is not a time of more than 0 and at most 1000ms, such as delay=20us");
  EXPECT_EQ(ParseFaultPlan("lose=0", &plan),
            "'lose=0' is not the number of a packet, counted from 1");
  EXPECT_EQ(ParseFaultPlan("loss=1%,loss=2%", &plan), "'loss=2%': loss has been given before");
}

TEST(SeedTest, IsAnUnsignedNumberOf64Bits) {
  uint64_t seed = 7;
  EXPECT_EQ(ParseSeed("18446744073709551615", &seed), "");
  EXPECT_EQ(seed, UINT64_MAX);
  EXPECT_EQ(ParseSeed("0XfF", &seed), "");
  EXPECT_EQ(seed, 255u);
  EXPECT_EQ(ParseSeed("010", &seed), "") << "decimal, whatever a compiler says";
  EXPECT_EQ(seed, 10u);
  for (const char* text : {"", "0x", "x", "12x", "-1", "+1", " 1", "1 ", "0x-1",
                           "18446744073709551616", "0x10000000000000000"}) {
    EXPECT_NE(ParseSeed(text, &seed), "") << text;
    EXPECT_EQ(seed, 10u) << text;
  }
}

}  // namespace
}  // namespace simhca
