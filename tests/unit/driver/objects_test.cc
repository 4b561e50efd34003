#include "verbs_shim/driver/objects.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "tests/unit/driver/fixture.h"

namespace simhca::driver {
namespace {

class HandlesTest : public DriverTest {};

TEST_F(HandlesTest, FreedObjectsAreRecognised) {
  ibv_cq* cq = MakeCq();
  ibv_srq* srq = MakeSrq(4);
  ibv_qp* qp = MakeQp(cq, srq);
  ASSERT_EQ(DestroyQp(qp), 0);
  ASSERT_EQ(DestroySrq(srq), 0);
  ASSERT_EQ(DestroyCq(cq), 0);
  EXPECT_TRUE(Owns(qp));
  EXPECT_EQ(DestroyQp(qp), EINVAL);
  EXPECT_EQ(DestroySrq(srq), EINVAL);
  EXPECT_EQ(DestroyCq(cq), EINVAL);
  EXPECT_EQ(PostReceive(srq, 1), EINVAL);
  ibv_send_wr send{};
  ibv_send_wr* bad_send = nullptr;
  EXPECT_EQ(ibv_post_send(qp, &send, &bad_send), EINVAL);
  EXPECT_EQ(bad_send, &send);
  ibv_wc wc;
  EXPECT_LT(ibv_poll_cq(cq, 1, &wc), 0);
  EXPECT_EQ(ibv_req_notify_cq(cq, 0), EINVAL);
  ibv_srq_attr attr;
  EXPECT_EQ(QuerySrq(srq, &attr), EINVAL);
}

TEST_F(HandlesTest, QuarantineEndsAfterManyOtherFrees) {
  ObjectRegistry registry;
  static int destroyed = 0;
  int first;
  ObjectHeader header;
  registry.Add(&first, Kind::kCq, &header, nullptr);
  registry.Retire(&first, &first, [](void*) { ++destroyed; });
  EXPECT_EQ(header.mark, ObjectHeader::kDead);
  EXPECT_TRUE(registry.Owns(&first));
  EXPECT_FALSE(registry.IsLive(&first, Kind::kCq));
  std::vector<int> others(2000);
  for (int& other : others) {
    registry.Add(&other, Kind::kCq, nullptr, nullptr);
    registry.Retire(&other, &other, [](void*) {});
  }
  EXPECT_EQ(destroyed, 1);
  EXPECT_FALSE(registry.Owns(&first));
}

TEST_F(HandlesTest, ObjectsOfOtherKindsAreRefused) {
  ibv_cq* cq = MakeCq();
  EXPECT_EQ(DestroySrq(reinterpret_cast<ibv_srq*>(cq)), EINVAL);
  EXPECT_EQ(DeallocPd(reinterpret_cast<ibv_pd*>(cq)), EINVAL);
  EXPECT_EQ(DestroyCq(reinterpret_cast<ibv_cq*>(pd_)), EINVAL);
  EXPECT_EQ(DestroyCq(nullptr), EINVAL);
}

TEST_F(HandlesTest, OverwrittenHandlesAndContextsAreUnknownToTheKernel) {
  ibv_cq* cq = MakeCq();
  ibv_srq* srq = MakeSrq(4);
  ibv_qp* qp = MakeQp(cq);
  ++srq->handle;
  EXPECT_EQ(DestroySrq(srq), ENOENT);
  EXPECT_EQ(PostReceive(srq, 1), EINVAL);
  --srq->handle;
  EXPECT_EQ(DestroySrq(srq), 0);
  ++qp->handle;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  EXPECT_EQ(ModifyQp(qp, &attr, IBV_QP_STATE), EINVAL);
  EXPECT_EQ(DestroyQp(qp), ENOENT);
  --qp->handle;
  EXPECT_EQ(DestroyQp(qp), 0);
  ibv_context* other = OpenDevice(context_->device);
  cq->context = other;
  EXPECT_EQ(DestroyCq(cq), ENOENT);
  cq->context = context_;
  EXPECT_EQ(DestroyCq(cq), 0);
  EXPECT_EQ(CloseDevice(other), 0);
}

TEST_F(HandlesTest, ObjectsOfOtherContextsCannotBeCombined) {
  ibv_context* other = OpenDevice(context_->device);
  ibv_comp_channel* channel = CreateCompChannel(other);
  EXPECT_EQ(MakeCq(8, channel), nullptr);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(CloseDevice(other), 0);
}

TEST_F(HandlesTest, ClosingADeviceEndsWhatWasLeftOnIt) {
  ibv_context* other = OpenDevice(context_->device);
  ibv_pd* pd = AllocPd(other);
  ibv_cq* cq = CreateCq(other, 8, nullptr, nullptr, 0);
  EXPECT_EQ(CloseDevice(other), 0);
  EXPECT_EQ(DeallocPd(pd), EINVAL);
  EXPECT_EQ(DestroyCq(cq), EINVAL);
  EXPECT_EQ(CloseDevice(other), EINVAL);
  EXPECT_EQ(AllocPd(other), nullptr);
}

TEST_F(HandlesTest, ARefusedDestructionLeavesTheObjectUsable) {
  device().next_error = EBUSY;
  EXPECT_EQ(DeallocPd(pd_), EBUSY);
  EXPECT_NE(MakeSrq(1), nullptr);
}

TEST_F(HandlesTest, CommandDescriptorsAreRecognised) {
  EXPECT_TRUE(OwnsCommandFd(context_->cmd_fd));
  EXPECT_FALSE(OwnsCommandFd(context_->async_fd));
  EXPECT_FALSE(OwnsCommandFd(-1));
}

TEST_F(HandlesTest, AForkedChildLosesTheObjectsAndMayOpenItsOwn) {
  ibv_cq* cq = MakeCq();
  const int starts = FakeDevice::starts();
  const pid_t child = fork();
  if (child == 0) {
    ibv_wc wc;
    const bool dead = ibv_poll_cq(cq, 1, &wc) < 0 && DestroyCq(cq) == EINVAL && Owns(cq) &&
                      AllocPd(context_) == nullptr;
    ibv_context* own = OpenDevice(context_->device);
    const bool fresh = own != nullptr && own != context_ && AllocPd(own) != nullptr &&
                       FakeDevice::starts() == starts + 1;
    _exit(dead && fresh ? 0 : 1);
  }
  int status;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  ibv_wc wc;
  EXPECT_EQ(ibv_poll_cq(cq, 1, &wc), 0);
  EXPECT_EQ(DestroyCq(cq), 0);
}

}  // namespace
}  // namespace simhca::driver
