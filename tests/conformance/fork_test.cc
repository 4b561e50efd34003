#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "tests/conformance/children.h"
#include "tests/conformance/traffic.h"

// Children of a process that has the device open (man ibv_fork_init).

namespace simhca::conformance {
namespace {

// Left out by the program under virtual time, where one process holds all devices.
class Fork : public TrafficTest {};

TEST_F(Fork, IsPossibleAndSaysWhetherItNeedsCare) {
  EXPECT_EQ(0, ibv_fork_init());
  const ibv_fork_status status = ibv_is_fork_initialized();
  EXPECT_TRUE(status == IBV_FORK_ENABLED || status == IBV_FORK_UNNEEDED) << status;
  if (device_.simulated()) {
    EXPECT_EQ(IBV_FORK_UNNEEDED, status);
  }
}

TEST_F(Fork, TrafficOfAParentGoesOnWhileItsChildrenComeAndGo) {
  PeerProcess peer("stream");
  Lane& lane = AddLane(peer);
  ASSERT_TRUE(Streams(lane));
  for (const ChildKind kind : kAllChildren) {
    SCOPED_TRACE(NameOf(kind));
    Child child(kind);
    ASSERT_TRUE(RunUntil([&] { return child.Ended() || !lane.failures.empty(); }));
    EXPECT_TRUE(child.DidWell());
    ASSERT_TRUE(Streams(lane));
  }
  Finish(peer, lane);
}

TEST_F(Fork, TrafficWithAParentGoesOnWhileItsChildrenComeAndGo) {
  PeerProcess peer("stream-and-fork");
  Lane& lane = AddLane(peer);
  ASSERT_TRUE(RunUntil([&] { return peer.HasWritten() || !lane.failures.empty(); }));
  Finish(peer, lane);
}

// The parent's objects are dead in the child: no use of them may do anything.
TEST_F(Fork, ChildCannotUseWhatItsParentHasOpen) {
  std::fflush(nullptr);
  const pid_t child = fork();
  ASSERT_LE(0, child);
  if (child == 0) {
    ibv_device_attr attributes;
    const bool refused = ibv_query_device(device_.context(), &attributes) != 0 &&
                         ibv_alloc_pd(device_.context()) == nullptr && ibv_destroy_qp(nullptr) != 0;
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(child, waitpid(child, &status, 0));
  EXPECT_EQ(0, status);
  EXPECT_TRUE(TalkToItself());
}

}  // namespace
}  // namespace simhca::conformance
