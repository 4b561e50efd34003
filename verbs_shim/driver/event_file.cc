#include "verbs_shim/driver/event_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "sim/timing/clock.h"
#include "verbs_shim/driver/cancellable.h"

namespace simhca::driver {

namespace {
// How long a blocking call drives the engine itself before it sleeps: about what a sleep and a
// wake-up through the background thread cost.
constexpr int64_t kSpinNanoseconds = 30'000;
// How often a blocking call lets virtual time go on before it sleeps: half an hour of it.
constexpr int kVirtualPolls = 2000;
constexpr int kHighDescriptor = 512;
}  // namespace

int EventFile::Open() {
  fd_ = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
  if (fd_ < 0) return errno;
  own_fd_ = static_cast<int>(syscall(SYS_fcntl, fd_, F_DUPFD_CLOEXEC, kHighDescriptor));
  if (own_fd_ < 0) own_fd_ = fd_;  // the limit of open files is too low
  return 0;
}

void EventFile::Close() {
  if (own_fd_ != fd_) syscall(SYS_close, own_fd_);
  if (fd_ >= 0) syscall(SYS_close, fd_);
  fd_ = own_fd_ = -1;
}

void EventFile::Push(const Event& event) {
  std::lock_guard guard(lock_);
  events_.push_back(event);
  waiting_.store(static_cast<uint32_t>(events_.size()), std::memory_order_release);
  const uint64_t one = 1;
  [[maybe_unused]] const long written = syscall(SYS_write, own_fd_, &one, sizeof(one));
}

bool EventFile::Pop(Event* event) {
  std::lock_guard guard(lock_);
  if (events_.empty()) return false;
  *event = events_.front();
  events_.pop_front();
  if (event->taken != nullptr) event->taken->fetch_add(1, std::memory_order_relaxed);
  waiting_.store(static_cast<uint32_t>(events_.size()), std::memory_order_release);
  return true;
}

// Returns when an event waits, or when it is time to go to read(): to sleep there, or to be told by
// a non-blocking descriptor that there is nothing.
void EventFile::Wait() {
  const auto nothing = [this] { return waiting_.load(std::memory_order_acquire) == 0; };
  if ((fcntl(fd_, F_GETFL) & O_NONBLOCK) != 0) {
    device_->Poll();
    return;
  }
  if (device_->virtual_time()) {
    // Not for ever: in read() signals are noticed, and the background thread moves time on.
    for (int polls = 0; nothing() && polls < kVirtualPolls; ++polls) {
      device_->Poll();
      pthread_testcancel();
    }
    return;
  }
  const int64_t end = WallClock::MonotonicNanoseconds() + kSpinNanoseconds;
  do {
    device_->Poll();
    if (!nothing()) return;
    sched_yield();
  } while (WallClock::MonotonicNanoseconds() < end);
  device_->PrepareToSleep();
}

int EventFile::Take(Event* event) {
  takers_.fetch_add(1, std::memory_order_acq_rel);
  Taking taking{this, event};
  const int result = simhca_run_cancellable(
      [](void* argument) {
        const Taking& call = *static_cast<Taking*>(argument);
        return call.file->TakeOne(call.event);
      },
      [](void* argument) { static_cast<Taking*>(argument)->file->EndTake(); }, &taking);
  EndTake();
  return result;
}

int EventFile::TakeOne(Event* event) {
  for (;;) {
    if (waiting_.load(std::memory_order_acquire) == 0) {
      Wait();
    } else if (takers_.load(std::memory_order_relaxed) > 1) {
      // Another thread may get the event that this one has seen: the read below may then sleep.
      device_->PrepareToSleep();
    }
    uint64_t count;
    if (read(fd_, &count, sizeof(count)) < 0) return -1;
    // The event that was counted may have been dropped with its object meanwhile.
    if (Pop(event)) return 0;
  }
}

void EventFile::Drop(const void* object) {
  std::lock_guard guard(lock_);
  const size_t before = events_.size();
  std::erase_if(events_, [object](const Event& event) { return event.object == object; });
  waiting_.store(static_cast<uint32_t>(events_.size()), std::memory_order_release);
  // A thread inside Take finds leftover counts without events and goes on waiting.
  if (takers_.load(std::memory_order_acquire) == 0) RemoveCounts(before - events_.size());
}

void EventFile::RemoveCounts(size_t counts) {
  for (size_t i = 0; i < counts; ++i) {
    uint64_t count;
    [[maybe_unused]] const long bytes = syscall(SYS_read, own_fd_, &count, sizeof(count));
  }
}

}  // namespace simhca::driver
