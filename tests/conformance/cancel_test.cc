#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <string>
#include <utility>

#include "tests/conformance/fixture.h"

// Threads that are cancelled while they wait for an event (man pthreads, "Cancellation points").

namespace simhca::conformance {
namespace {

void SetBlocking(int descriptor, bool blocking) {
  const int flags = fcntl(descriptor, F_GETFL);
  const int wanted = blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK;
  Require(fcntl(descriptor, F_SETFL, wanted) == 0, "O_NONBLOCK");
}

bool Readable(int descriptor) {
  pollfd file{descriptor, POLLIN, 0};
  return poll(&file, 1, 0) == 1;
}

// A thread that waits for an event.
class Waiter {
 public:
  template <typename Body>
  explicit Waiter(Body body) : body_(std::move(body)) {
    Require(pthread_create(&thread_, nullptr, &Waiter::Main, this) == 0, "pthread_create");
  }

  // It has gone to sleep in the kernel.
  bool Sleeps() const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (std::chrono::steady_clock::now() < end) {
      if (thread_id_ != 0 && State() == 'S') return true;
      sched_yield();
    }
    return false;
  }

  // Cancels it; whether that ended it.
  bool Cancel() {
    timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 10;
    void* result = nullptr;
    return pthread_cancel(thread_) == 0 && pthread_timedjoin_np(thread_, &result, &limit) == 0 &&
           result == PTHREAD_CANCELED;
  }

 private:
  static void* Main(void* argument) {
    Waiter& waiter = *static_cast<Waiter*>(argument);
    waiter.thread_id_ = static_cast<int>(syscall(SYS_gettid));
    waiter.body_();
    return nullptr;
  }

  char State() const {
    std::ifstream file("/proc/self/task/" + std::to_string(thread_id_) + "/stat");
    std::string text;
    std::getline(file, text);
    const size_t name_end = text.rfind(')');
    return name_end == std::string::npos || name_end + 2 >= text.size() ? '?' : text[name_end + 2];
  }

  const std::function<void()> body_;
  std::atomic<int> thread_id_{0};
  pthread_t thread_{};
};

class CancelledThread : public SrqTest {
 protected:
  CancelledThread() : channel_(MakeChannel(device_)) { SetBlocking(channel_->fd, true); }

  Channel channel_;
};

TEST_F(CancelledThread, LeavesACompletionChannelThatWorks) {
  Cq cq = MakeCq(device_, 16, channel_.get());
  Cq doomed = MakeCq(device_, 16, channel_.get());
  Waiter waiter([&] {
    ibv_cq* event_cq = nullptr;
    void* context = nullptr;
    ibv_get_cq_event(channel_.get(), &event_cq, &context);
  });
  ASSERT_TRUE(waiter.Sleeps());
  ASSERT_TRUE(waiter.Cancel());

  SetBlocking(channel_->fd, false);
  const auto receive_one = [&](Cq& receiving) {
    QpOptions options = ResponderOptions();
    options.receive_cq = receiving.get();
    const Link link{MakeQp(device_, pd_.get(), RequesterOptions()),
                    MakeQp(device_, pd_.get(), options)};
    Connect(device_, link.requester.get(), link.responder.get());
    EXPECT_EQ(0, ibv_req_notify_cq(receiving.get(), 0));
    EXPECT_EQ(0, PostReceive(link.responder.get(), 1, {sink_.Sge(0, 64)}));
    SendAndExpectSuccess(link.requester.get(), {.segments = {source_.Sge(0, 64)}});
    EXPECT_EQ(IBV_WC_SUCCESS, PollOne(device_, receiving.get()).status);
  };
  receive_one(cq);
  EXPECT_EQ(cq.get(), NextCqEvent(device_, channel_.get(), kPatience));
  ibv_ack_cq_events(cq.get(), 1);
  // The unread event of a CQ goes with it, and the descriptor shows that.
  receive_one(doomed);
  EXPECT_TRUE(Readable(channel_->fd));
  doomed.reset();
  EXPECT_FALSE(Readable(channel_->fd));
}

TEST_F(CancelledThread, LeavesAContextWhoseAsynchronousEventsWork) {
  SetBlocking(device_.context()->async_fd, true);
  Waiter waiter([&] {
    ibv_async_event event{};
    while (ibv_get_async_event(device_.context(), &event) == 0) ibv_ack_async_event(&event);
  });
  ASSERT_TRUE(waiter.Sleeps());
  ASSERT_TRUE(waiter.Cancel());

  SetBlocking(device_.context()->async_fd, false);
  CreateSrq(8);
  ASSERT_EQ(0, P(2));
  ASSERT_EQ(0, SetLimit(2));
  {
    const Link link = MakeLink({}, srq_.get());
    SendAndReceive(link, 1);
  }
  EXPECT_EQ(1u, LimitEvents());
  // The unread event of an SRQ goes with it.
  ASSERT_EQ(0, SetLimit(1));
  {
    const Link link = MakeLink({}, srq_.get());
    SendAndReceive(link, 1);
  }
  EXPECT_TRUE(Readable(device_.context()->async_fd));
  srq_.reset();
  EXPECT_FALSE(Readable(device_.context()->async_fd));
}

}  // namespace
}  // namespace simhca::conformance
