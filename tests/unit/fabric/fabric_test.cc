// Packets, numbers and wake-ups between processes of a fabric.
#include "sim/fabric/fabric.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <set>
#include <thread>

#include "tests/unit/fabric/fabric_fixture.h"

namespace simhca {
namespace {

class FabricTest : public FabricFixture {};

TEST_F(FabricTest, ProcessReachesItself) {
  const auto fabric = MustJoin();
  const uint32_t number = fabric->AllocateNumber();
  EXPECT_EQ(Send(*fabric, number, kMaxPacketBytes), Link::Status::kReady);
  Recorder recorder;
  EXPECT_EQ(fabric->link().Poll(recorder, 10, 0), 1u);
  EXPECT_EQ(recorder.packets[0].bytes.size(), kMaxPacketBytes);
  EXPECT_EQ(Info().rings, 0u) << "a process needs no shared ring for itself";
}

TEST_F(FabricTest, NumberThatNobodyOwnsIsUnreachable) {
  const auto fabric = MustJoin();
  const uint32_t number = fabric->AllocateNumber();
  EXPECT_EQ(Send(*fabric, 0), Link::Status::kUnreachable);
  EXPECT_EQ(Send(*fabric, number + kNumbersPerBlock), Link::Status::kUnreachable);
  EXPECT_EQ(Send(*fabric, 0xffffffff), Link::Status::kUnreachable);
  EXPECT_EQ(fabric->PeerOf(number + kNumbersPerBlock).state, Peer::State::kUnknown);
  EXPECT_EQ(fabric->PeerOf(number).state, Peer::State::kAlive);
}

TEST_F(FabricTest, PacketsGoBothWaysBetweenProcesses) {
  constexpr uint64_t kPackets = 5000;
  const auto fabric = MustJoin();
  const uint32_t mine = fabric->AllocateNumber();
  PeerProcess peer({"echo", name, std::to_string(mine), std::to_string(kPackets)});
  const uint32_t theirs = ReadNumber(peer);
  uint64_t sent = 0, received = 0;
  ASSERT_TRUE(Eventually([&] {
    for (int i = 0; i < 500 && received < kPackets; ++i) {
      // The echo wants room for every answer.
      if (sent < kPackets && sent - received < 20) {
        const Link::Reservation room = fabric->link().Reserve(theirs, LengthOfPacket(sent));
        if (room.status == Link::Status::kReady) {
          FillPacket(sent, room.bytes, LengthOfPacket(sent));
          PacketAddress address;
          address.source_port = sent++ % 512;
          fabric->link().Commit(address, 0);
          fabric->link().Flush();
        }
      }
      Recorder recorder;
      fabric->link().Poll(recorder, 16, 0);
      for (const auto& packet : recorder.packets) {
        EXPECT_TRUE(IsPacket(received, packet.bytes.data(), packet.bytes.size()));
        EXPECT_EQ(packet.address.destination_port, received % 512);
        ++received;
      }
    }
    return received == kPackets;
  }));
  EXPECT_EQ(peer.Finish(), 0);
}

TEST_F(FabricTest, SendersShareABudget) {
  const auto first = MustJoin(), second = MustJoin(), receiver = MustJoin();
  const uint32_t number = receiver->AllocateNumber();
  for (int i = 0; i < 300; ++i) {
    ASSERT_EQ(Send(*first, number, 30), Link::Status::kReady);
    ASSERT_EQ(Send(*second, number, 40), Link::Status::kReady);
  }
  Recorder recorder;
  EXPECT_EQ(receiver->link().Poll(recorder, 128, 0), 128u);
  size_t of_first = 0;
  for (const auto& packet : recorder.packets) of_first += packet.bytes.size() == 30;
  EXPECT_GE(of_first, 32u);
  EXPECT_LE(of_first, 96u);
}

TEST_F(FabricTest, FullRingRefusesAndTheOthersGoOn) {
  const auto sender = MustJoin(), full = MustJoin(), other = MustJoin();
  const uint32_t number = full->AllocateNumber();
  int sent = 0;
  while (Send(*sender, number, 4096) == Link::Status::kReady) ++sent;
  EXPECT_GE(sent, 56);
  EXPECT_LE(sent, 64) << "256 KiB are the most in flight";
  EXPECT_EQ(Send(*sender, number, 4096), Link::Status::kNoRoom);
  EXPECT_FALSE(sender->PeerOf(number).drained());
  EXPECT_EQ(Send(*sender, other->AllocateNumber()), Link::Status::kReady);
  Recorder recorder;
  EXPECT_EQ(full->link().Poll(recorder, 1000, 0), static_cast<uint32_t>(sent));
  full->link().Poll(recorder, 1000, 0);
  EXPECT_EQ(Send(*sender, number, 4096), Link::Status::kReady);
}

TEST_F(FabricTest, NumbersOfSeveralProcessesNeverMeet) {
  constexpr int kEach = 1000;
  PeerProcess first({"numbers", name, std::to_string(kEach)});
  PeerProcess second({"numbers", name, std::to_string(kEach)});
  std::set<uint32_t> numbers;
  for (int i = 0; i < kEach + 1; ++i) {
    numbers.insert(ReadNumber(first));
    numbers.insert(ReadNumber(second));
  }
  EXPECT_EQ(numbers.size(), 2 * (kEach + 1u));
  EXPECT_GT(*numbers.begin(), 1u);
  EXPECT_EQ(first.Finish(), 0);
  EXPECT_EQ(second.Finish(), 0);
}

// ------------------------------------------------------------------------------ wake-ups

TEST_F(FabricTest, PacketWakesASleeper) {
  const auto fabric = MustJoin();
  PeerProcess peer({"hold", name});
  const uint32_t theirs = ReadNumber(peer);
  peer.WriteLine("wait");
  ASSERT_EQ(peer.ReadLine(), "waiting");
  usleep(20'000);  // most likely asleep; if it is not yet, the test says the same
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(Send(*fabric, theirs), Link::Status::kReady);
  EXPECT_EQ(peer.ReadLine(), "1");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(4));
  EXPECT_EQ(peer.Finish(), 0);
}

// Both sides sleep whenever they find nothing, at every possible moment: a wake-up that is lost
// shows as a round of five seconds.
TEST_F(FabricTest, NoWakeUpIsLost) {
  constexpr int kRounds = 3000;
  const auto fabric = MustJoin();
  const uint32_t mine = fabric->AllocateNumber();
  PeerProcess peer({"sleepy-echo", name, std::to_string(mine), std::to_string(kRounds)});
  const uint32_t theirs = ReadNumber(peer);
  std::chrono::steady_clock::duration longest{};
  for (int i = 0; i < kRounds; ++i) {
    const auto start = std::chrono::steady_clock::now();
    ASSERT_EQ(Send(*fabric, theirs), Link::Status::kReady);
    Recorder recorder;
    while (fabric->link().Poll(recorder, 1, 0) == 0) {
      fabric->WantWake(true);
      if (fabric->link().Poll(recorder, 1, 0) != 0) break;
      fabric->Sleep(5 * kSecond);
    }
    longest = std::max(longest, std::chrono::steady_clock::now() - start);
  }
  EXPECT_LT(longest, std::chrono::seconds(4));
  EXPECT_EQ(peer.Finish(), 0);
}

TEST_F(FabricTest, WakeBeforeSleepIsNotLost) {
  const auto fabric = MustJoin();
  const uint32_t number = fabric->AllocateNumber();
  fabric->WantWake(true);
  ASSERT_EQ(Send(*fabric, number), Link::Status::kReady);
  EXPECT_FALSE(fabric->wake_wanted());
  fabric->Sleep(kNever);  // returns
  fabric->WantWake(true);
  fabric->Wake();
  fabric->Sleep(kNever);
}

TEST_F(FabricTest, SleepEndsWithItsTimeout) {
  const auto fabric = MustJoin();
  fabric->WantWake(true);
  const auto start = std::chrono::steady_clock::now();
  fabric->Sleep(20 * kMillisecond);
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(15));
  EXPECT_TRUE(fabric->wake_wanted());
}

TEST_F(FabricTest, WakeReachesASleepingThread) {
  const auto fabric = MustJoin();
  fabric->WantWake(true);
  std::thread sleeper([&] {
    while (fabric->wake_wanted()) fabric->Sleep(kNever);
  });
  usleep(10'000);
  fabric->Wake();
  sleeper.join();
}

// -------------------------------------------------------------------------- virtual time

TEST_F(FabricTest, SecondProcessOnAVirtualFabricIsRefused) {
  std::unique_ptr<Fabric> fabric, second;
  ASSERT_EQ(Join(&fabric, /*exclusive=*/true), 0) << error;
  PeerProcess peer({"hold", name});
  const std::string answer = peer.ReadLine();
  EXPECT_EQ(answer.find("error " + std::to_string(EBUSY)), 0u) << answer;
  EXPECT_NE(answer.find("virtual time"), std::string::npos) << answer;
  EXPECT_EQ(Join(&second), EBUSY);
  EXPECT_EQ(Join(&second, /*exclusive=*/true), EBUSY);
}

TEST_F(FabricTest, SharedFabricIsRefusedToVirtualTime) {
  const auto fabric = MustJoin();
  std::unique_ptr<Fabric> second;
  EXPECT_EQ(Join(&second, /*exclusive=*/true), EBUSY);
  EXPECT_NE(error.find("virtual time"), std::string::npos) << error;
}

TEST_F(FabricTest, VirtualFabricCarriesPacketsOverItsWire) {
  Fabric::Options options;
  options.name = name;
  options.exclusive = true;
  options.wires = {{8'000'000'000, kMicrosecond, 80}};
  std::unique_ptr<Fabric> fabric;
  ASSERT_EQ(Fabric::Join(options, &fabric, &error), 0) << error;
  const uint32_t number = fabric->AllocateNumber();
  ASSERT_EQ(Send(*fabric, number, 20), Link::Status::kReady);
  EXPECT_EQ(fabric->link().NextArrival(), kMicrosecond + 100 * kNanosecond);
  EXPECT_EQ(fabric->PeerOf(number).state, Peer::State::kAlive);
  EXPECT_TRUE(fabric->PeerOf(number).drained()) << "in virtual time all engines run";
  Recorder recorder;
  EXPECT_EQ(fabric->link().Poll(recorder, 1, kMicrosecond), 0u);
  EXPECT_EQ(fabric->link().Poll(recorder, 1, 2 * kMicrosecond), 1u);
  EXPECT_EQ(Send(*fabric, number + 512), Link::Status::kUnreachable);
}

// ------------------------------------------------------------------------------- refusals

TEST_F(FabricTest, BadNamesAreRefused) {
  for (const std::string& bad :
       {std::string("a/b"), std::string("a b"), std::string("x.lock"), std::string(65, 'x')}) {
    Fabric::Options options;
    options.name = bad;
    std::unique_ptr<Fabric> fabric;
    EXPECT_EQ(Fabric::Join(options, &fabric, &error), EINVAL) << bad;
    EXPECT_NE(error.find(bad), std::string::npos);
  }
}

TEST_F(FabricTest, FabricOfAnotherVersionInUseIsRefused) {
  const auto fabric = MustJoin();
  const int file = open(FabricPath("/dev/shm", name).c_str(), O_RDWR);
  const uint32_t other = LayoutHash() + 1;
  ASSERT_EQ(pwrite(file, &other, sizeof other, offsetof(FabricHeader, layout)), 4);
  close(file);
  std::unique_ptr<Fabric> second;
  EXPECT_EQ(Join(&second), EPROTO);
  EXPECT_NE(error.find("version"), std::string::npos) << error;
}

TEST_F(FabricTest, FilesThatOthersMayReadAreRefused) {
  const std::string path = FabricPath("/dev/shm", name);
  close(open(path.c_str(), O_RDWR | O_CREAT, 0600));
  chmod(path.c_str(), 0644);
  std::unique_ptr<Fabric> fabric;
  EXPECT_EQ(Join(&fabric), EPERM);
  unlink(path.c_str());
}

TEST_F(FabricTest, CorruptRingIsDroppedAndCounted) {
  const auto victim = MustJoin(), honest = MustJoin();
  const uint32_t number = victim->AllocateNumber();
  std::unique_ptr<Registry> hostile;
  ASSERT_EQ(Registry::Join("/dev/shm", name, false, &hostile, &error), 0) << error;
  uint32_t ring;
  std::byte* memory;
  const uint32_t owner = hostile->layout().owners[number / kNumbersPerBlock].load();
  ASSERT_EQ(hostile->OpenRing(owner, &ring, &memory), 0);
  memset(memory + kRingControlBytes, 0xff, 4096);
  Recorder recorder;
  ASSERT_EQ(Send(*honest, number), Link::Status::kReady);
  EXPECT_EQ(victim->link().Poll(recorder, 100, 0), 1u);
  EXPECT_EQ(victim->trouble().corrupt_rings, 1u);
  EXPECT_NE(victim->trouble().last, "");
  EXPECT_EQ(victim->link().Poll(recorder, 100, 0), 0u);
  EXPECT_EQ(victim->trouble().corrupt_rings, 1u);
  ASSERT_EQ(Send(*honest, number), Link::Status::kReady);
  EXPECT_EQ(victim->link().Poll(recorder, 100, 0), 1u);
  Registry::UnmapRing(memory);
}

TEST_F(FabricTest, NobodyElseIsReachedInOurOwnSlot) {
  const auto fabric = MustJoin();
  std::unique_ptr<Registry> hostile;
  ASSERT_EQ(Registry::Join("/dev/shm", name, false, &hostile, &error), 0) << error;
  const uint32_t number = fabric->AllocateNumber();
  ASSERT_EQ(Send(*fabric, number), Link::Status::kReady);
  const uint32_t owner = hostile->layout().owners[number / kNumbersPerBlock].load();
  const uint32_t block = number / kNumbersPerBlock + 1;
  hostile->layout().owners[block] = MakeOwner(OwnerSlot(owner), OwnerGeneration(owner) + 1);
  EXPECT_EQ(Send(*fabric, block * kNumbersPerBlock), Link::Status::kUnreachable);
  ASSERT_EQ(Send(*fabric, number), Link::Status::kReady);
  Recorder recorder;
  EXPECT_EQ(fabric->link().Poll(recorder, 100, 0), 2u);
  EXPECT_EQ(fabric->trouble().corrupt_rings, 0u);
}

TEST_F(FabricTest, EpochIsNeverInTheFuture) {
  const auto first = MustJoin();
  std::unique_ptr<Registry> hostile;
  ASSERT_EQ(Registry::Join("/dev/shm", name, false, &hostile, &error), 0) << error;
  for (const int64_t written : {INT64_MIN, INT64_MAX}) {
    hostile->layout().header.epoch_ns = written;
    const auto second = MustJoin();
    EXPECT_GE(second->epoch_ns(), 0);
    EXPECT_LE(second->epoch_ns(), MonotonicNanoseconds());
    EXPECT_NE(first->epoch_ns(), written);
  }
}

TEST_F(FabricTest, SenderWhoseRingWasDroppedOpensAnother) {
  const auto victim = MustJoin(), sender = MustJoin();
  const uint32_t number = victim->AllocateNumber();
  ASSERT_EQ(Send(*sender, number), Link::Status::kReady);
  Recorder recorder;
  ASSERT_EQ(victim->link().Poll(recorder, 100, 0), 1u);
  std::unique_ptr<Registry> observer;
  ASSERT_EQ(Registry::Join("/dev/shm", name, false, &observer, &error), 0) << error;
  std::byte* const memory = observer->MapRing(0);
  memset(memory + kRingControlBytes, 0xff, 4096);
  victim->link().Poll(recorder, 100, 0);
  ASSERT_EQ(victim->trouble().corrupt_rings, 1u);
  sender->Maintain();
  ASSERT_TRUE(Eventually([&] { return Send(*sender, number) == Link::Status::kReady; }));
  EXPECT_EQ(victim->link().Poll(recorder, 100, 0), 1u);
  Registry::UnmapRing(memory);
}

// ------------------------------------- what a hostile process may write anywhere in the fabric

TEST_F(FabricTest, OwnSlotInAnotherLifeIsUnreachable) {
  const auto fabric = MustJoin();
  const uint32_t number = fabric->AllocateNumber();
  ASSERT_EQ(Send(*fabric, number), Link::Status::kReady);
  std::unique_ptr<Registry> hostile;
  ASSERT_EQ(Registry::Join("/dev/shm", name, false, &hostile, &error), 0) << error;
  auto& owner = hostile->layout().owners[number / kNumbersPerBlock];
  const uint32_t truth = owner.exchange(owner.load() + (5 << 8));
  EXPECT_EQ(Send(*fabric, number), Link::Status::kUnreachable);
  owner.store(truth);
  EXPECT_EQ(Send(*fabric, number), Link::Status::kReady);
}

TEST_F(FabricTest, RingWhoseDirectoryEntryWasOverwrittenIsReplaced) {
  const auto receiver = MustJoin(), sender = MustJoin();
  const uint32_t number = receiver->AllocateNumber();
  ASSERT_EQ(Send(*sender, number), Link::Status::kReady);
  Recorder recorder;
  ASSERT_EQ(receiver->link().Poll(recorder, 100, 0), 1u);
  std::unique_ptr<Registry> hostile;
  ASSERT_EQ(Registry::Join("/dev/shm", name, false, &hostile, &error), 0) << error;
  for (const uint32_t garbage : {0u, 0xffffffffu, uint32_t{kRingInUse}}) {
    for (RingEntry& entry : hostile->layout().rings) {
      if (entry.load() != 0) entry.store(garbage);
    }
    sender->Maintain();
    receiver->Maintain();
    recorder.packets.clear();
    EXPECT_TRUE(Eventually([&] {
      if (recorder.packets.empty()) Send(*sender, number);
      receiver->Maintain();
      sender->Maintain();
      receiver->link().Poll(recorder, 100, 0);
      return !recorder.packets.empty();
    })) << garbage;
  }
}

TEST_F(FabricTest, AnnouncementOfARingThatIsNotThereBlocksNobody) {
  const auto receiver = MustJoin(), sender = MustJoin();
  const uint32_t number = receiver->AllocateNumber();
  std::unique_ptr<Registry> hostile;
  ASSERT_EQ(Registry::Join("/dev/shm", name, false, &hostile, &error), 0) << error;
  for (ProcessSlot& slot : hostile->layout().slots) {
    for (auto& inbound : slot.inbound) inbound.store(0xfff0);
  }
  EXPECT_EQ(Send(*sender, number), Link::Status::kReady);
  Recorder recorder;
  EXPECT_EQ(receiver->link().Poll(recorder, 100, 0), 1u);
}

TEST_F(FabricTest, TimeDoesNotFollowWhatOthersWrite) {
  const auto fabric = MustJoin();
  const int64_t epoch = fabric->epoch_ns();
  std::unique_ptr<Registry> hostile;
  ASSERT_EQ(Registry::Join("/dev/shm", name, false, &hostile, &error), 0) << error;
  hostile->layout().header.epoch_ns = INT64_MIN;
  EXPECT_EQ(fabric->epoch_ns(), epoch);
}

}  // namespace
}  // namespace simhca
