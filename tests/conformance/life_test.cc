#include <signal.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "tests/conformance/traffic.h"

// What the death, the pause or the end of one process means for the others.

namespace simhca::conformance {
namespace {

using std::chrono::steady_clock;

// Left out by the program under virtual time, where one process holds all devices.
class LifeAndDeath : public TrafficTest {
 protected:
  // All sends of `lane` that were under way end: one by its retries, the others flushed.
  void ExpectDeathOfPeer(Lane& lane) {
    // Three times 1 ms, each rounded up to the ticks of a coarse clock and doubled: the rest is
    // what a death may take to be noticed, and the machine's load.
    constexpr Milliseconds kLimit{2000 + 2 * 3 * 11};
    const uint32_t in_flight = lane.in_flight;
    const steady_clock::time_point start = steady_clock::now();
    ASSERT_TRUE(RunUntil([&] { return !lane.failures.empty() && lane.in_flight == 0; }));
    EXPECT_LT(steady_clock::now() - start, kLimit);
    EXPECT_LE(1u, lane.failures.size());
    EXPECT_GE(in_flight + kStreamInFlight, lane.failures.size());
    EXPECT_EQ(IBV_WC_RETRY_EXC_ERR, lane.failures.front());
    EXPECT_EQ(lane.failures.size() - 1,
              std::count(lane.failures.begin(), lane.failures.end(), IBV_WC_WR_FLUSH_ERR));
    EXPECT_EQ(IBV_QPS_ERR, StateOf(lane.qp.get()));
  }

  // A peer that sends and ends at once.
  void ExpectLastMessagesOf(const std::string& role, int signal) {
    PeerProcess peer(role);
    Lane& lane = AddLane(peer);
    lane.sending = false;
    EXPECT_EQ(signal, signal == 0 ? peer.Wait() : peer.WaitForSignal());
    EXPECT_TRUE(RunUntil([&] { return lane.received == kExitMessages; })) << lane.received;
    EXPECT_EQ(IBV_QPS_RTS, StateOf(lane.qp.get()));
    lane.sending = true;
    ExpectDeathOfPeer(lane);
    EXPECT_EQ(kExitMessages, lane.received);
    RemoveLane(lane);
  }
};

TEST_F(LifeAndDeath, KilledPeerEndsItsOwnConnectionAndNoOther) {
  PeerProcess witness("stream");
  Lane& other = AddLane(witness);
  PeerProcess victim("stream");
  Lane& lane = AddLane(victim);
  ASSERT_TRUE(Streams(lane));
  ASSERT_TRUE(Streams(other));
  victim.Signal(SIGKILL);  // and stays a zombie, whose process id still exists
  ExpectDeathOfPeer(lane);
  RemoveLane(lane);
  EXPECT_TRUE(Streams(other));
  PeerProcess next("stream");
  Lane& third = AddLane(next);
  EXPECT_TRUE(Streams(third));
  Finish(next, third);
  Finish(witness, other);
}

TEST_F(LifeAndDeath, ThirtyPeersAreKilledUnderLoadAndNoReceiveIsLost) {
  constexpr int kRounds = 30;
  PeerProcess witness("stream");
  Lane& other = AddLane(witness);
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(round);
    PeerProcess victim("stream");
    Lane& lane = AddLane(victim);
    ASSERT_TRUE(Streams(lane));
    victim.Signal(SIGKILL);
    ASSERT_EQ(SIGKILL, victim.WaitForSignal());
    ExpectDeathOfPeer(lane);
    RemoveLane(lane);
    ASSERT_TRUE(Streams(other));
  }
  Finish(witness, other);
  RemoveLane(other);
  repost_ = false;
  ASSERT_TRUE(RunUntil([&] { return StaysEmpty(device_, responder_cq_.get()); }));
  EXPECT_EQ(kReceives, Outstanding());
  EXPECT_EQ(kReceives, CountReceivable());
}

TEST_F(LifeAndDeath, LastMessagesBeforeExitArriveAndLaterSendsFailByTheRetries) {
  ExpectLastMessagesOf("exit-after-send", 0);
}

TEST_F(LifeAndDeath, LastMessagesBeforeQuickExitArriveAndLaterSendsFailByTheRetries) {
  ExpectLastMessagesOf("quit-after-send", 0);
}

TEST_F(LifeAndDeath, LastMessagesBeforeTerminationArriveAndLaterSendsFailByTheRetries) {
  ExpectLastMessagesOf("term-after-send", SIGTERM);
}

TEST_F(LifeAndDeath, LastMessagesBeforeAKillArriveAndLaterSendsFailByTheRetries) {
  ExpectLastMessagesOf("kill-after-send", SIGKILL);
}

// A debugger that holds a process at a breakpoint does the same as SIGSTOP: it lives, but runs no
// instruction.  A pause is many times what all retries of either side take.
constexpr Milliseconds kPause{300};

TEST_F(LifeAndDeath, PausedPeerCostsNoRetriesOnEitherSide) {
  PeerProcess peer("stream");
  Lane& lane = AddLane(peer);
  ASSERT_TRUE(Streams(lane));
  peer.Stop();
  const steady_clock::time_point end = steady_clock::now() + kPause;
  EXPECT_TRUE(RunUntil([&] { return !lane.failures.empty() || steady_clock::now() >= end; }));
  EXPECT_TRUE(lane.failures.empty());
  peer.Signal(SIGCONT);
  EXPECT_TRUE(Streams(lane));
  Finish(peer, lane);
}

// Stopped at any moment: before it took a request, or when it had and had not answered.
TEST_F(LifeAndDeath, PeerMayBePausedAtAnyMoment) {
  constexpr int kRounds = 12;
  constexpr Milliseconds kShortPause{80};
  PeerProcess peer("stream");
  Lane& lane = AddLane(peer);
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(round);
    ASSERT_TRUE(Streams(lane));
    peer.Stop();
    const steady_clock::time_point end = steady_clock::now() + kShortPause;
    ASSERT_TRUE(RunUntil([&] { return !lane.failures.empty() || steady_clock::now() >= end; }));
    peer.Signal(SIGCONT);
    ASSERT_TRUE(lane.failures.empty());
  }
  ASSERT_TRUE(Streams(lane));
  Finish(peer, lane);
}

TEST_F(LifeAndDeath, ReadsOutlastAPauseOfTheirTarget) {
  constexpr int kReads = 16;
  PeerProcess peer("serve-reads");
  Lane& lane = AddLane(peer);
  lane.sending = false;
  const std::optional<uint64_t> rkey = peer.ReadNumber();
  const std::optional<uint64_t> address = peer.ReadNumber();
  ASSERT_TRUE(rkey && address);
  const auto read = [&](uint64_t id) {
    return PostSend(lane.qp.get(), {.wr_id = id,
                                    .segments = {sink_.Sge(0, kPeerMessageBytes)},
                                    .opcode = IBV_WR_RDMA_READ,
                                    .remote_address = *address,
                                    .rkey = static_cast<uint32_t>(*rkey)});
  };
  // Some are under way when it stops, the others come while it stands.
  for (int i = 0; i < kReads / 2; ++i) ASSERT_EQ(0, read(i));
  peer.Stop();
  for (int i = kReads / 2; i < kReads; ++i) ASSERT_EQ(0, read(i));
  std::vector<ibv_wc> done = Poll(device_, requester_cq_.get(), kReads, kPause);
  EXPECT_LT(done.size(), kReads);
  peer.Signal(SIGCONT);
  for (const ibv_wc& wc : Poll(device_, requester_cq_.get(), kReads - done.size())) {
    done.push_back(wc);
  }
  EXPECT_EQ(std::vector<ibv_wc_status>(kReads, IBV_WC_SUCCESS), StatusesOf(done));
  EXPECT_TRUE(sink_.Holds(1, 0, kPeerMessageBytes));
  peer.WriteNumber(0);
  EXPECT_EQ(0, peer.Wait());
}

// As daemons do: the lock by which it shows that it lives goes with the descriptors.
TEST_F(LifeAndDeath, ProcessThatClosesAllDescriptorsLivesOn) {
  PeerProcess peer("close-everything");
  Lane& lane = AddLane(peer);
  lane.sending = false;
  ASSERT_TRUE(RunUntil([&] { return peer.HasWritten(); }));
  ASSERT_TRUE(peer.ReadNumber().has_value());
  // Whoever joins looks who lives.
  for (int i = 0; i < 3; ++i) {
    PeerProcess passer_by("exit-after-connect");
    RemoveLane(AddLane(passer_by));
    EXPECT_EQ(0, passer_by.Wait());
  }
  const steady_clock::time_point end = steady_clock::now() + kPause;
  EXPECT_TRUE(RunUntil([&] { return steady_clock::now() >= end; }));
  peer.WriteNumber(0);
  EXPECT_TRUE(RunUntil([&] { return lane.received == 2 * kSrqMessages || peer.HasWritten(); }));
  EXPECT_EQ(2 * kSrqMessages, lane.received);
  EXPECT_EQ(0, peer.Wait());
}

}  // namespace
}  // namespace simhca::conformance
