// Who is on a fabric: life, death, reclaiming, fork.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/unit/fabric/fabric_fixture.h"

namespace simhca {
namespace {

class MembershipTest : public FabricFixture {};

TEST_F(MembershipTest, LastOneOutRemovesTheFiles) {
  {
    const auto fabric = MustJoin();
    PeerProcess peer({"hold", name});
    ReadNumber(peer);
    EXPECT_EQ(peer.Finish(), 0);
    EXPECT_TRUE(FilesExist());
  }
  EXPECT_FALSE(FilesExist());
}

TEST_F(MembershipTest, FabricThatWasLeftStaysUsable) {
  const auto fabric = MustJoin(), other = MustJoin();
  const uint32_t mine = fabric->AllocateNumber(), theirs = other->AllocateNumber();
  ASSERT_EQ(Send(*fabric, mine), Link::Status::kReady);
  ASSERT_EQ(Send(*fabric, theirs), Link::Status::kReady);
  ASSERT_EQ(Send(*other, mine), Link::Status::kReady);
  fabric->Leave();
  fabric->Leave();
  EXPECT_EQ(Info().processes.size(), 1u);
  EXPECT_EQ(Send(*fabric, theirs), Link::Status::kUnreachable);
  EXPECT_EQ(Send(*other, mine), Link::Status::kUnreachable);
  EXPECT_NE(fabric->PeerOf(theirs).state, Peer::State::kDead);
  fabric->Maintain();
  fabric->WantWake(true);
  fabric->Wake();
  Recorder recorder;
  fabric->link().Poll(recorder, 10, 0);
  recorder.packets.clear();
  EXPECT_EQ(other->link().Poll(recorder, 10, 0), 1u) << "what was sent before arrives";
}

TEST_F(MembershipTest, FilesAreForThisUserOnly) {
  const auto fabric = MustJoin();
  struct stat status;
  ASSERT_EQ(stat(FabricPath("/dev/shm", name).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  ASSERT_EQ(stat(FabricLockPath("/dev/shm", name).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(MembershipTest, WhatAKilledSenderCommittedArrives) {
  constexpr uint64_t kPackets = 100;
  const auto fabric = MustJoin();
  const uint32_t mine = fabric->AllocateNumber();
  PeerProcess peer({"send-and-die", name, std::to_string(mine), std::to_string(kPackets)});
  const uint32_t theirs = ReadNumber(peer);
  EXPECT_EQ(peer.Finish(), 128 + SIGKILL);
  fabric->Maintain();
  EXPECT_EQ(fabric->PeerOf(theirs).state, Peer::State::kAlive) << "its packets come first";
  Recorder recorder;
  fabric->link().Poll(recorder, 1000, 0);
  ASSERT_EQ(recorder.packets.size(), kPackets);
  for (uint64_t i = 0; i < kPackets; ++i) {
    const auto& bytes = recorder.packets[i].bytes;
    EXPECT_TRUE(IsPacket(i, bytes.data(), bytes.size())) << i;
  }
  EXPECT_TRUE(Eventually([&] { return fabric->PeerOf(theirs).state == Peer::State::kDead; }));
  EXPECT_EQ(Info().rings, 1u);
  EXPECT_TRUE(Eventually([&] {
    fabric->Maintain();
    return Info().rings == 0;
  }));
}

TEST_F(MembershipTest, KilledPeerIsSeenDeadAndAStoppedOneAlive) {
  const auto fabric = MustJoin();
  PeerProcess killed({"hold", name}), stopped({"hold", name});
  const uint32_t dead = ReadNumber(killed), alive = ReadNumber(stopped);
  EXPECT_EQ(Send(*fabric, dead), Link::Status::kReady);
  EXPECT_EQ(Send(*fabric, alive), Link::Status::kReady);
  EXPECT_EQ(fabric->PeerOf(dead).state, Peer::State::kAlive);
  kill(stopped.pid(), SIGSTOP);
  killed.Kill();
  EXPECT_TRUE(Eventually([&] { return fabric->PeerOf(dead).state == Peer::State::kDead; }));
  const Peer peer = fabric->PeerOf(alive);
  EXPECT_EQ(peer.state, Peer::State::kAlive);
  EXPECT_FALSE(peer.drained());
  EXPECT_TRUE(Eventually([&] {
    fabric->Maintain();
    return Send(*fabric, dead) == Link::Status::kUnreachable || Info().rings == 1;
  }));
  kill(stopped.pid(), SIGCONT);
}

TEST_F(MembershipTest, LeavingProcessIsUnknownAndItsPacketsArrive) {
  const auto fabric = MustJoin();
  const uint32_t mine = fabric->AllocateNumber();
  PeerProcess peer({"hold", name});
  const uint32_t theirs = ReadNumber(peer);
  peer.WriteLine("send " + std::to_string(mine));
  EXPECT_EQ(peer.ReadLine(), "0");
  EXPECT_EQ(peer.Finish(), 0);
  EXPECT_EQ(fabric->PeerOf(theirs).state, Peer::State::kUnknown);
  EXPECT_EQ(Send(*fabric, theirs), Link::Status::kUnreachable);
  fabric->Maintain();
  Recorder recorder;
  EXPECT_EQ(fabric->link().Poll(recorder, 10, 0), 1u);
}

TEST_F(MembershipTest, NextJoinerReclaimsWhatKilledProcessesLeft) {
  {
    PeerProcess first({"hold", name}), second({"hold", name});
    ReadNumber(first);
    ReadNumber(second);
    EXPECT_EQ(Info().processes.size(), 2u);
    first.Kill();
    second.Kill();
  }
  EXPECT_TRUE(FilesExist());
  EXPECT_TRUE(Info().processes.empty());
  const auto fabric = MustJoin();
  const FabricInfo info = Info();
  ASSERT_EQ(info.processes.size(), 1u);
  EXPECT_EQ(info.processes[0].slot, 0u) << "the fabric is new";
  EXPECT_EQ(info.epoch_ns, fabric->epoch_ns());
}

TEST_F(MembershipTest, KilledVirtualFabricDoesNotRefuseTheNext) {
  const pid_t child = fork();
  if (child == 0) {
    std::unique_ptr<Fabric> fabric;
    if (Join(&fabric, /*exclusive=*/true) != 0) _exit(1);
    raise(SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  MustJoin();
}

TEST_F(MembershipTest, LeftoversOfAnotherVersionAreReplaced) {
  const int file = open(FabricPath("/dev/shm", name).c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(write(file, "something else", 14), 14);
  close(file);
  const auto fabric = MustJoin();
  EXPECT_EQ(Info().processes.size(), 1u);
}

TEST_F(MembershipTest, SlotsAndRingsAreUsedAgain) {
  const auto fabric = MustJoin();
  const uint32_t mine = fabric->AllocateNumber();
  Recorder recorder;
  for (int i = 0; i < 600; ++i) {
    const auto guest = MustJoin();
    ASSERT_NE(guest, nullptr) << i;
    const uint32_t theirs = guest->AllocateNumber();
    ASSERT_EQ(Send(*guest, mine), Link::Status::kReady);
    ASSERT_EQ(Send(*fabric, theirs), Link::Status::kReady);
    ASSERT_EQ(guest->link().Poll(recorder, 10, 0), 1u);
    ASSERT_EQ(fabric->link().Poll(recorder, 10, 0), 1u);
    fabric->Maintain();
  }
  fabric->Maintain();
  EXPECT_EQ(Info().rings, 0u);
}

TEST_F(MembershipTest, GenerationsHave24BitsWhateverTheHeaderSays) {
  std::unique_ptr<Registry> first;
  ASSERT_EQ(Registry::Join("/dev/shm", name, false, &first, &error), 0) << error;
  for (const uint32_t written : {0u, 0x1000000u, 0xffffffffu}) {
    first->layout().header.next_generation = written;
    std::unique_ptr<Registry> second;
    ASSERT_EQ(Registry::Join("/dev/shm", name, false, &second, &error), 0) << error;
    EXPECT_NE(OwnerGeneration(second->owner()), 0u);
    EXPECT_EQ(OwnerSlot(second->owner()), second->slot());
    EXPECT_TRUE(second->IsMember());
  }
}

TEST_F(MembershipTest, LeftoverThatWentMissingInTheFutureIsReclaimed) {
  // A slot of a process that is not there, as it might be scribbled over, keeps nobody out.
  {
    std::unique_ptr<Registry> first;
    ASSERT_EQ(Registry::Join("/dev/shm", name, false, &first, &error), 0) << error;
    ProcessSlot& slot = first->process(first->slot() + 1);
    slot.in_use = 1;
    slot.missing_since = INT64_MAX;
  }
  ASSERT_TRUE(FilesExist()) << "whoever is missing may return";
  MustJoin();
}

TEST_F(MembershipTest, OnlySoManyProcessesFit) {
  std::vector<std::unique_ptr<Fabric>> all;
  for (uint32_t i = 0; i < kMaxProcesses; ++i) all.push_back(MustJoin());
  std::unique_ptr<Fabric> more;
  EXPECT_EQ(Join(&more), EMFILE);
  all.pop_back();
  EXPECT_EQ(Join(&more), 0);
}

TEST_F(MembershipTest, OneOfTwoMembershipsEndsWithoutTheOther) {
  auto first = MustJoin();
  const auto second = MustJoin();
  const uint32_t number = second->AllocateNumber();
  PeerProcess peer({"hold", name});
  ReadNumber(peer);
  first.reset();
  ListFabrics();
  peer.WriteLine("state " + std::to_string(number));
  EXPECT_EQ(peer.ReadLine(), std::to_string(static_cast<int>(Peer::State::kAlive)));
}

// ---------------------------------------------------------------------- lost descriptors

TEST_F(MembershipTest, LockIsTakenAgainAfterAllDescriptorsWereClosed) {
  const auto fabric = MustJoin();
  const uint32_t mine = fabric->AllocateNumber();
  PeerProcess peer({"hold", name});
  const uint32_t theirs = ReadNumber(peer);
  peer.WriteLine("close");
  EXPECT_EQ(peer.ReadLine(), "done");
  EXPECT_EQ(fabric->PeerOf(theirs).state, Peer::State::kAlive) << "a moment is not death";
  peer.WriteLine("maintain");
  EXPECT_EQ(peer.ReadLine(), "done");
  usleep(Registry::kGraceNs / 1000 + 50'000);
  EXPECT_EQ(fabric->PeerOf(theirs).state, Peer::State::kAlive);
  EXPECT_EQ(Info().processes.size(), 2u);
  peer.WriteLine("send " + std::to_string(mine));
  EXPECT_EQ(peer.ReadLine(), "0") << "its ring is mapped without the old descriptor";
}

TEST_F(MembershipTest, SleeperIsWokenToTakeItsLockAgain) {
  const auto fabric = MustJoin();
  PeerProcess peer({"hold", name});
  const uint32_t theirs = ReadNumber(peer);
  peer.WriteLine("close");
  EXPECT_EQ(peer.ReadLine(), "done");
  peer.WriteLine("wait");
  EXPECT_EQ(peer.ReadLine(), "waiting");
  EXPECT_EQ(fabric->PeerOf(theirs).state, Peer::State::kAlive);
  EXPECT_EQ(peer.ReadLine(), "0");
  usleep(Registry::kGraceNs / 1000 + 50'000);
  EXPECT_EQ(fabric->PeerOf(theirs).state, Peer::State::kAlive);
}

TEST_F(MembershipTest, ProcessTakenForDeadKeepsOffItsOldSlot) {
  const auto fabric = MustJoin();
  const uint32_t mine = fabric->AllocateNumber();
  PeerProcess peer({"hold", name});
  const uint32_t theirs = ReadNumber(peer);
  peer.WriteLine("close");
  EXPECT_EQ(peer.ReadLine(), "done");
  EXPECT_TRUE(Eventually([&] { return fabric->PeerOf(theirs).state == Peer::State::kDead; }));
  const auto third = MustJoin();  // reclaims
  EXPECT_EQ(fabric->PeerOf(theirs).state, Peer::State::kUnknown);
  peer.WriteLine("maintain");
  EXPECT_EQ(peer.ReadLine(), "done");
  peer.WriteLine("send " + std::to_string(mine));
  EXPECT_EQ(peer.ReadLine(), std::to_string(static_cast<int>(Link::Status::kUnreachable)));
  EXPECT_EQ(peer.Finish(), 0);
  EXPECT_EQ(Info().processes.size(), 2u);
}

// ---------------------------------------------------------------------------------- fork

// Runs `body` in a forked child; true if it returned true.
template <typename Body>
bool InChild(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(body() ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  return status == 0;
}

TEST_F(MembershipTest, ForkedChildAbandonsAndJoinsAnew) {
  auto fabric = MustJoin();
  const uint32_t mine = fabric->AllocateNumber();
  ASSERT_EQ(Send(*fabric, mine), Link::Status::kReady);
  EXPECT_TRUE(InChild([&] {
    fabric->Abandon();
    fabric.reset();
    std::unique_ptr<Fabric> own;
    return Join(&own) == 0 && own->PeerOf(mine).state == Peer::State::kAlive &&
           Send(*own, mine, 33) == Link::Status::kReady;
  }));
  Recorder recorder;
  EXPECT_EQ(fabric->link().Poll(recorder, 10, 0), 2u);
  ASSERT_EQ(Info().processes.size(), 1u);
  PeerProcess peer({"hold", name});
  ReadNumber(peer);
  peer.WriteLine("state " + std::to_string(mine));
  EXPECT_EQ(peer.ReadLine(), std::to_string(static_cast<int>(Peer::State::kAlive)));
}

TEST_F(MembershipTest, ChildThatJoinsBeforeItAbandonsSeesItsParentsDeath) {
  int report[2];
  ASSERT_EQ(pipe(report), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    alarm(20);
    std::unique_ptr<Fabric> fabric;
    if (Join(&fabric) != 0) _exit(1);
    const uint32_t number = fabric->AllocateNumber();
    if (fork() == 0) {
      alarm(20);
      std::unique_ptr<Fabric> own;
      char verdict = Join(&own) == 0 ? 'j' : 'x';
      fabric->Abandon();
      kill(getppid(), SIGKILL);
      if (Eventually([&] { return own->PeerOf(number).state == Peer::State::kDead; })) {
        verdict = 'd';
      }
      own.reset();
      [[maybe_unused]] const ssize_t written = write(report[1], &verdict, 1);
      _exit(0);
    }
    pause();
  }
  waitpid(parent, nullptr, 0);
  char verdict = 0;
  ASSERT_EQ(read(report[0], &verdict, 1), 1);
  EXPECT_EQ(verdict, 'd');
  close(report[0]);
  close(report[1]);
}

TEST_F(MembershipTest, ChildThatOnlyDestroysTheFabricDoesNotEndItsParentsMembership) {
  auto fabric = MustJoin();
  EXPECT_TRUE(InChild([&] {
    fabric.reset();
    return true;
  }));
  EXPECT_EQ(Info().processes.size(), 1u);
  EXPECT_TRUE(FilesExist());
}

// -------------------------------------------------------------------------- small /dev/shm

// A file system of `bytes`, in a mount namespace of the calling (child) process.
bool MountSmall(const std::string& directory, const char* bytes) {
  const uid_t user = geteuid();
  if (unshare(CLONE_NEWNS) != 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    const std::string map = std::to_string(user) + " " + std::to_string(user) + " 1";
    const int file = open("/proc/self/uid_map", O_WRONLY);
    const bool mapped = write(file, map.data(), map.size()) == static_cast<ssize_t>(map.size());
    close(file);
    if (!mapped) return false;
  }
  mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  const std::string options = std::string("size=") + bytes;
  return mount("simhca-test", directory.c_str(), "tmpfs", 0, options.c_str()) == 0;
}

// Exit status of `body` in a child with a small file system at `directory`; -1: not possible here.
template <typename Body>
int OnSmallFileSystem(const std::string& directory, const char* bytes, Body body) {
  constexpr int kNotPossible = 77;
  mkdir(directory.c_str(), 0700);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(MountSmall(directory, bytes) ? body() : kNotPossible);
  }
  int status = 0;
  waitpid(child, &status, 0);
  rmdir(directory.c_str());
  if (!WIFEXITED(status)) return 128 + WTERMSIG(status);
  return WEXITSTATUS(status) == kNotPossible ? -1 : WEXITSTATUS(status);
}

TEST_F(MembershipTest, FabricThatDoesNotFitIsRefusedWithAnExplanation) {
  const std::string directory = testing::TempDir() + "simhca-small-" + std::to_string(getpid());
  const int status = OnSmallFileSystem(directory, "128k", [&] {
    Fabric::Options options;
    options.name = name;
    options.directory = directory;
    std::unique_ptr<Fabric> fabric;
    if (Fabric::Join(options, &fabric, &error) != ENOSPC) return 1;
    if (error.find("/dev/shm") == std::string::npos) return 2;
    return access(FabricLockPath(directory, name).c_str(), F_OK) == 0 ? 3 : 0;
  });
  if (status == -1) GTEST_SKIP() << "no permission to mount";
  EXPECT_EQ(status, 0);
}

TEST_F(MembershipTest, RingThatDoesNotFitMakesItsReceiverUnreachableNotASignal) {
  const std::string directory = testing::TempDir() + "simhca-small-" + std::to_string(getpid());
  const int status = OnSmallFileSystem(directory, "1280k", [&] {
    Fabric::Options options;
    options.name = name;
    options.directory = directory;
    std::vector<std::unique_ptr<Fabric>> members(4);
    for (auto& member : members) {
      if (Fabric::Join(options, &member, &error) != 0) return 1;
    }
    int ready = 0, unreachable = 0;
    for (size_t i = 1; i < members.size(); ++i) {
      const Link::Status sent = Send(*members[0], members[i]->AllocateNumber());
      ready += sent == Link::Status::kReady;
      unreachable += sent == Link::Status::kUnreachable;
    }
    if (ready != 1 || unreachable != 2) return 2;
    if (members[0]->trouble().failed_rings != 2) return 3;
    return members[0]->trouble().last.find("/dev/shm") == std::string_view::npos ? 4 : 0;
  });
  if (status == -1) GTEST_SKIP() << "no permission to mount";
  EXPECT_EQ(status, 0);
}

// ---------------------------------------------------------------------------- list, clean

TEST_F(MembershipTest, CleanRemovesOnlyWhatNobodyHolds) {
  auto fabric = MustJoin();
  fabric->counters()[3].store(42);
  const FabricInfo info = Info();
  ASSERT_EQ(info.processes.size(), 1u);
  EXPECT_EQ(info.processes[0].counters[3], 42u);
  EXPECT_EQ(info.processes[0].pid, static_cast<uint32_t>(getpid()));
  EXPECT_EQ(Registry::Remove("/dev/shm", name), EBUSY);
  EXPECT_TRUE(FilesExist());
  PeerProcess peer({"hold", name});
  ReadNumber(peer);
  fabric.reset();
  EXPECT_EQ(Registry::Remove("/dev/shm", name), EBUSY);
  peer.Kill();
  EXPECT_TRUE(FilesExist());
  EXPECT_EQ(Registry::Remove("/dev/shm", name), 0);
  EXPECT_FALSE(FilesExist());
  EXPECT_EQ(Registry::Remove("/dev/shm", name), ENOENT);
}

}  // namespace
}  // namespace simhca
