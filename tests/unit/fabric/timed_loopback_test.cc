#include "sim/fabric/timed_loopback.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/fabric/recorder.h"

namespace simhca {
namespace {

// 8 Gbit/s are one byte in a nanosecond.
constexpr LinkModel kSlow = {8'000'000'000, kMicrosecond, 50};

void Send(Link& link, uint16_t port, uint32_t length, Time ready, uint8_t mark = 0) {
  const Link::Reservation room = link.Reserve(2, length);
  ASSERT_EQ(room.status, Link::Status::kReady);
  memset(room.bytes, mark, length);
  PacketAddress address;
  address.source_port = port;
  link.Commit(address, ready);
}

TEST(TimedLoopback, PacketArrivesAfterTheWireAndPropagation) {
  TimedLoopback link({kSlow}, {}, 0);
  EXPECT_EQ(link.NextArrival(), kNever);
  Send(link, 0, 100, 10 * kMicrosecond);
  const Time arrival = 10 * kMicrosecond + 150 * kNanosecond + kMicrosecond;
  EXPECT_EQ(link.NextArrival(), arrival);
  Recorder recorder;
  EXPECT_EQ(link.Poll(recorder, 10, arrival - 1), 0u);
  EXPECT_EQ(link.Poll(recorder, 10, arrival), 1u);
  EXPECT_EQ(link.NextArrival(), kNever);
}

TEST(TimedLoopback, PacketsOfOnePortWaitForTheWire) {
  TimedLoopback link({kSlow}, {}, 0);
  Send(link, 0, 950, 0);
  Send(link, 0, 950, 0);
  Recorder recorder;
  EXPECT_EQ(link.Poll(recorder, 10, 2 * kMicrosecond), 1u);
  EXPECT_EQ(link.NextArrival(), 3 * kMicrosecond);
}

TEST(TimedLoopback, PortsHaveWiresOfTheirOwn) {
  TimedLoopback link({kSlow, {16'000'000'000, 0, 0}}, {}, 0);
  Send(link, 0, 950, 0, 1);
  Send(link, 1, 1000, 0, 2);
  Send(link, 7, 1000, 0, 3);  // as the last
  Recorder recorder;
  EXPECT_EQ(link.Poll(recorder, 10, kNever), 3u);
  EXPECT_EQ(recorder.packets[0].bytes[0], std::byte{2});  // 500 ns
  EXPECT_EQ(recorder.packets[1].bytes[0], std::byte{3});
  EXPECT_EQ(recorder.packets[2].bytes[0], std::byte{1});  // 2 us
}

TEST(TimedLoopback, WithoutAModelPacketsArriveWhenReadyAndInOrder) {
  TimedLoopback link({}, {}, 0);
  for (uint8_t i = 0; i < 100; ++i) Send(link, i % 3, 20, 5, i);
  Recorder recorder;
  EXPECT_EQ(link.Poll(recorder, 1000, 4), 0u);
  EXPECT_EQ(link.Poll(recorder, 1000, 5), 100u);
  for (uint8_t i = 0; i < 100; ++i) EXPECT_EQ(recorder.packets[i].bytes[0], std::byte{i});
}

TEST(TimedLoopback, OnlySoMuchIsInFlight) {
  TimedLoopback link({kSlow}, {}, 0);
  uint32_t sent = 0;
  while (link.Reserve(2, kMaxPacketBytes).status == Link::Status::kReady) {
    link.Commit({}, 0);
    ++sent;
  }
  EXPECT_EQ(sent, TimedLoopback::kMostInFlight / kMaxPacketBytes);
  EXPECT_EQ(link.Reserve(2, kMaxPacketBytes).status, Link::Status::kNoRoom);
  Recorder recorder;
  EXPECT_EQ(link.Poll(recorder, 1, kNever), 1u);
  EXPECT_EQ(link.Reserve(2, kMaxPacketBytes).status, Link::Status::kReady);
}

TEST(TimedLoopback, VoidReservationsTakeNoRoom) {
  TimedLoopback link({kSlow}, {}, 0);
  for (int i = 0; i < 100'000; ++i) {
    ASSERT_EQ(link.Reserve(2, i % 2 == 0 ? 64 : 4096).status, Link::Status::kReady);
  }
  EXPECT_EQ(link.NextArrival(), kNever);
}

TEST(TimedLoopback, NumbersOfNobodyAreUnreachable) {
  std::atomic<uint32_t> owners[2] = {0, 77};
  TimedLoopback link({}, owners, 77);
  EXPECT_EQ(link.Reserve(255, 20).status, Link::Status::kUnreachable);
  EXPECT_EQ(link.Reserve(256, 20).status, Link::Status::kReady);
  EXPECT_EQ(link.Reserve(512, 20).status, Link::Status::kUnreachable);
  EXPECT_EQ(link.Reserve(256, kMaxPacketBytes + 1).status, Link::Status::kUnreachable);
}

}  // namespace
}  // namespace simhca
