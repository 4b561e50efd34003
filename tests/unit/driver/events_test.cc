#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "tests/unit/driver/fixture.h"

namespace simhca::driver {
namespace {

class EventsTest : public DriverTest {
 protected:
  EventsTest() { channel_ = CreateCompChannel(context_); }

  static bool Readable(int fd) {
    pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
    return poll(&entry, 1, 0) == 1;
  }
  static void MakeNonBlocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }
  // Runs until `done` or for ten seconds.
  template <typename Condition>
  static bool Eventually(Condition done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!done()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }

  ibv_comp_channel* channel_;
};

TEST_F(EventsTest, ACompletionEventMakesTheChannelReadable) {
  ibv_cq* cq = MakeCq(8, channel_);
  EXPECT_FALSE(Readable(channel_->fd));
  device().RaiseCompletionEvent(cq->handle);
  EXPECT_TRUE(Readable(channel_->fd));
  ibv_cq* event_cq;
  void* event_context;
  ASSERT_EQ(GetCqEvent(channel_, &event_cq, &event_context), 0);
  EXPECT_EQ(event_cq, cq);
  EXPECT_EQ(event_context, this);
  EXPECT_FALSE(Readable(channel_->fd));
  ibv_req_notify_cq(cq, 0);
  EXPECT_EQ(device().arm_words.back() >> mlx5::kArmSequenceShift, 1u);
  AckCqEvents(cq, 1);
  EXPECT_EQ(DestroyCq(cq), 0);
}

TEST_F(EventsTest, EventsComeInTheirOrder) {
  ibv_cq* first = MakeCq(8, channel_);
  ibv_cq* second = MakeCq(8, channel_);
  device().RaiseCompletionEvent(second->handle);
  device().RaiseCompletionEvent(first->handle);
  device().RaiseCompletionEvent(second->handle);
  void* event_context;
  for (ibv_cq* expected : {second, first, second}) {
    ibv_cq* event_cq;
    ASSERT_EQ(GetCqEvent(channel_, &event_cq, &event_context), 0);
    EXPECT_EQ(event_cq, expected);
  }
}

TEST_F(EventsTest, ANonBlockingChannelWithoutEventsAnswersAtOnce) {
  MakeNonBlocking(channel_->fd);
  ibv_cq* event_cq;
  void* event_context;
  const int polls = device().polls;
  EXPECT_EQ(GetCqEvent(channel_, &event_cq, &event_context), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(device().polls, polls + 1);
  EXPECT_EQ(device().sleeps, 0);
  ibv_cq* cq = MakeCq(8, channel_);
  device().on_poll = [&] { device().RaiseCompletionEvent(cq->handle); };
  EXPECT_EQ(GetCqEvent(channel_, &event_cq, &event_context), 0);
}

TEST_F(EventsTest, ABlockingCallSleepsUntilAnEventComes) {
  ibv_cq* cq = MakeCq(8, channel_);
  device().sleeps = 0;
  std::atomic<bool> returned{false};
  std::thread waiter([&] {
    ibv_cq* event_cq;
    void* event_context;
    EXPECT_EQ(GetCqEvent(channel_, &event_cq, &event_context), 0);
    EXPECT_EQ(event_cq, cq);
    returned = true;
  });
  EXPECT_TRUE(Eventually([&] { return device().sleeps > 0; }));
  EXPECT_FALSE(returned);
  device().RaiseCompletionEvent(cq->handle);
  waiter.join();
  EXPECT_TRUE(returned);
}

TEST_F(EventsTest, ABlockedThreadCanBeCancelled) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer cannot follow a cancelled thread";
#endif
  device().sleeps = 0;
  pthread_t waiter;
  ASSERT_EQ(pthread_create(
                &waiter, nullptr,
                [](void* channel) -> void* {
                  ibv_cq* event_cq;
                  void* event_context;
                  GetCqEvent(static_cast<ibv_comp_channel*>(channel), &event_cq, &event_context);
                  return nullptr;
                },
                channel_),
            0);
  EXPECT_TRUE(Eventually([&] { return device().sleeps > 0; }));
  ASSERT_EQ(pthread_cancel(waiter), 0);
  void* result;
  ASSERT_EQ(pthread_join(waiter, &result), 0);
  EXPECT_EQ(result, PTHREAD_CANCELED);
}

TEST_F(EventsTest, DestroyingACqRemovesItsUnreadEvents) {
  ibv_cq* doomed = MakeCq(8, channel_);
  ibv_cq* kept = MakeCq(8, channel_);
  device().RaiseCompletionEvent(doomed->handle);
  device().RaiseCompletionEvent(kept->handle);
  device().RaiseCompletionEvent(doomed->handle);
  ASSERT_EQ(DestroyCq(doomed), 0);
  ibv_cq* event_cq;
  void* event_context;
  ASSERT_EQ(GetCqEvent(channel_, &event_cq, &event_context), 0);
  EXPECT_EQ(event_cq, kept);
  EXPECT_FALSE(Readable(channel_->fd));
}

TEST_F(EventsTest, DestroyingACqWaitsForAcknowledgements) {
  ibv_cq* cq = MakeCq(8, channel_);
  device().RaiseCompletionEvent(cq->handle);
  device().RaiseCompletionEvent(cq->handle);
  ibv_cq* event_cq;
  void* event_context;
  ASSERT_EQ(GetCqEvent(channel_, &event_cq, &event_context), 0);
  std::atomic<bool> destroyed{false};
  std::thread destroyer([&] {
    EXPECT_EQ(DestroyCq(cq), 0);
    destroyed = true;
  });
  // The device has let go of it: the destroyer is on its way to wait.
  EXPECT_TRUE(Eventually([&] { return !Readable(channel_->fd); }));
  EXPECT_FALSE(destroyed);
  AckCqEvents(cq, 1);
  destroyer.join();
  EXPECT_TRUE(destroyed);
}

TEST_F(EventsTest, AChannelInUseIsBusy) {
  ibv_cq* cq = MakeCq(8, channel_);
  EXPECT_EQ(DestroyCompChannel(channel_), EBUSY);
  ASSERT_EQ(DestroyCq(cq), 0);
  EXPECT_EQ(DestroyCompChannel(channel_), 0);
  EXPECT_EQ(DestroyCompChannel(channel_), EINVAL);
}

TEST_F(EventsTest, AsyncEventsNameTheirObject) {
  ibv_cq* cq = MakeCq();
  ibv_srq* srq = MakeSrq(4);
  ibv_qp* qp = MakeQp(cq, srq);
  using mlx5::EventType;
  struct Case {
    EventType type;
    uint32_t number;
    ibv_event_type expected;
    void* object;
  };
  for (const Case& c :
       {Case{EventType::kSrqLimit, srq->handle, IBV_EVENT_SRQ_LIMIT_REACHED, srq},
        Case{EventType::kSrqCatastrophic, srq->handle, IBV_EVENT_SRQ_ERR, srq},
        Case{EventType::kSrqLastWqe, qp->qp_num, IBV_EVENT_QP_LAST_WQE_REACHED, qp},
        Case{EventType::kAccessViolation, qp->qp_num, IBV_EVENT_QP_ACCESS_ERR, qp},
        Case{EventType::kInvalidRequest, qp->qp_num, IBV_EVENT_QP_REQ_ERR, qp},
        Case{EventType::kWorkQueueCatastrophic, qp->qp_num, IBV_EVENT_QP_FATAL, qp},
        Case{EventType::kCommunicationEstablished, qp->qp_num, IBV_EVENT_COMM_EST, qp},
        Case{EventType::kSendQueueDrained, qp->qp_num, IBV_EVENT_SQ_DRAINED, qp},
        Case{EventType::kPathMigrated, qp->qp_num, IBV_EVENT_PATH_MIG, qp},
        Case{EventType::kPathMigrationFailed, qp->qp_num, IBV_EVENT_PATH_MIG_ERR, qp},
        Case{EventType::kCqError, cq->handle, IBV_EVENT_CQ_ERR, cq}}) {
    device().RaiseEvent(c.type, c.number);
    EXPECT_TRUE(Readable(context_->async_fd));
    ibv_async_event event;
    ASSERT_EQ(GetAsyncEvent(context_, &event), 0);
    EXPECT_EQ(event.event_type, c.expected);
    EXPECT_EQ(static_cast<void*>(event.element.qp), c.object);
    AckAsyncEvent(&event);
  }
  EXPECT_EQ(DestroyQp(qp), 0);
  EXPECT_EQ(DestroySrq(srq), 0);
  EXPECT_EQ(DestroyCq(cq), 0);
}

TEST_F(EventsTest, PortEventsNameThePort) {
  const std::pair<uint8_t, ibv_event_type> cases[] = {
      {1, IBV_EVENT_PORT_ERR},    {4, IBV_EVENT_PORT_ACTIVE}, {6, IBV_EVENT_LID_CHANGE},
      {7, IBV_EVENT_PKEY_CHANGE}, {8, IBV_EVENT_GID_CHANGE},  {9, IBV_EVENT_CLIENT_REREGISTER},
      {0x80, IBV_EVENT_SM_CHANGE}};
  for (const auto& [sub_type, expected] : cases) {
    device().RaisePortEvent(sub_type, 1);
    ibv_async_event event;
    ASSERT_EQ(GetAsyncEvent(context_, &event), 0);
    EXPECT_EQ(event.event_type, expected);
    EXPECT_EQ(event.element.port_num, 1);
    AckAsyncEvent(&event);
  }
}

TEST_F(EventsTest, AFatalErrorOfTheDeviceHasNoObject) {
  device().RaiseEvent(mlx5::EventType::kInternalError, 0);
  ibv_async_event event;
  ASSERT_EQ(GetAsyncEvent(context_, &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_DEVICE_FATAL);
  EXPECT_EQ(event.element.qp, nullptr);
  AckAsyncEvent(&event);
}

TEST_F(EventsTest, MoreEventsThanTheRingHoldsAllArrive) {
  ibv_srq* srq = MakeSrq(4);
  for (int i = 0; i < 1000; ++i) device().RaiseEvent(mlx5::EventType::kSrqLimit, srq->handle);
  MakeNonBlocking(context_->async_fd);
  int got = 0;
  for (ibv_async_event event; GetAsyncEvent(context_, &event) == 0; ++got) AckAsyncEvent(&event);
  EXPECT_EQ(got, 1000);
}

TEST_F(EventsTest, UnderVirtualTimeABlockingCallRunsTheDeviceInstead) {
  device().virtual_clock = true;
  std::vector<ibv_device*> devices;
  ASSERT_EQ(GetDevices(&devices), 0);
  ibv_context* context = OpenDevice(devices[0]);
  ibv_comp_channel* channel = CreateCompChannel(context);
  ibv_cq* cq = CreateCq(context, 8, nullptr, channel, 0);
  int polls = 0;
  device().sleeps = 0;
  device().on_poll = [&] {
    if (++polls == 1'000) device().RaiseCompletionEvent(cq->handle);
  };
  ibv_cq* event_cq;
  void* event_context;
  EXPECT_EQ(GetCqEvent(channel, &event_cq, &event_context), 0);
  EXPECT_EQ(polls, 1'000);
  EXPECT_EQ(device().sleeps, 0);
  EXPECT_EQ(CloseDevice(context), 0);
}

}  // namespace
}  // namespace simhca::driver
