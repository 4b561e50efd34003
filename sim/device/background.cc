// The background thread of sim/device/progress.h.

#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>

#include "sim/device/other_threads.h"
#include "sim/device/progress.h"

namespace simhca {

namespace {

constexpr Duration kSpinAfterWork = 50 * kMicrosecond;
constexpr Duration kLookWhilePolled = kMillisecond;  // is the program still polling?
constexpr Duration kLookWhileWaiting = 200 * kMicrosecond;
constexpr Duration kMaintenance = 100 * kMillisecond;
constexpr Duration kLookForOthers = 500 * kMillisecond;  // are there other threads?
constexpr Duration kVirtualSilence = 20 * kMillisecond;  // without a verbs call
constexpr int kSilencesOfABusyProgram = 25;              // one that spins on memory waits too
constexpr Duration kVirtualPace = kMillisecond;  // from one visible thing to the next after that
constexpr Duration kVirtualStride = kSecond;     // a stalled sender may retry for ever

}  // namespace

void Progress::LogTo(Log warn, Log error) {
  warn_ = std::move(warn);
  error_ = std::move(error);
}

void Progress::StartThread() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { ThreadMain(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Progress::StopThread() {
  if (!thread_.joinable()) return;
  if (thread_.get_id() == std::this_thread::get_id()) {  // it ends the process: see ThreadMain
    thread_.detach();
    return;
  }
  stop_.store(true, std::memory_order_release);
  fabric.Wake();
  look_.Wake();
  thread_.join();
}

void Progress::Abandon() {
  if (thread_.joinable()) thread_.detach();  // it lives in the parent only
  fabric.Abandon();
}

void Progress::Drain(Duration limit) {
  const int64_t end = WallClock::MonotonicNanoseconds() + ToNanoseconds(limit);
  while (WallClock::MonotonicNanoseconds() < end) {
    if (TryLock()) {
      if (virtual_time()) {
        SettleVirtual();
      } else {
        Step();
      }
      const bool idle = active.empty();
      Unlock();
      if (idle) return;
    }
    sched_yield();
  }
}

void Progress::ReportTrouble() {
  std::string trouble;
  {
    const Hold hold(*this);
    trouble = fabric.trouble().last;
  }
  if (!error_ || trouble.empty() || trouble == reported_trouble_) return;
  reported_trouble_ = trouble;
  error_(trouble);
}

void Progress::ThreadMain() {
  Time last_work = 0;
  Time last_maintenance = 0;
  int64_t last_look = WallClock::CoarseNanoseconds();
  while (!stop_.load(std::memory_order_acquire)) {
    // A process ends with its last thread, and this one is none that the program knows of.
    const int64_t coarse = WallClock::CoarseNanoseconds();
    if (coarse - last_look >= ToNanoseconds(kLookForOthers)) {
      last_look = coarse;
      if (OtherThreads::MainHasEnded() && !OtherThreads::Look().any()) std::exit(0);
    }
    if (virtual_time()) {
      WatchVirtualClock();
      continue;
    }
    const Time now = Now();
    if (now - last_maintenance >= kMaintenance && TryLock(Holder::kBackground)) {
      last_maintenance = now;
      fabric.Maintain();
      Unlock();
      ReportTrouble();
    }
    if (program_polls_.load(std::memory_order_acquire)) {
      WatchPolls();
    } else {
      Serve(&last_work);
    }
  }
}

// While the program polls.
void Progress::WatchPolls() {
  const uint64_t calls = calls_.load(std::memory_order_relaxed);
  look_.Sleep(kLookWhilePolled);
  if (calls_.load(std::memory_order_relaxed) == calls) {
    program_polls_.store(false, std::memory_order_release);
  }
}

// While it does not: works as long as there is something to do, then sleeps until a peer has sent
// something or a timer is due.
void Progress::Serve(Time* last_work) {
  bool worked = true;  // if the lock is taken, somebody does
  Duration until_timer = kNever;
  bool waiting = false;
  if (TryLock(Holder::kBackground)) {
    worked = Step();
    if (RunTimers()) worked = true;
    const Time next = NextDue();
    if (next != kNever) until_timer = std::max<Time>(0, next - Now());
    waiting = !active.empty();
    Unlock();
  }
  const Time now = Now();
  if (worked) *last_work = now;
  if (now - *last_work < kSpinAfterWork) {
    sched_yield();
    return;
  }
  if (!fabric.wake_wanted()) {
    fabric.WantWake(true);
    return;  // and look once more before sleeping
  }
  Duration timeout = std::min(kMaintenance, until_timer);
  // A full ring, or a receive posted to a failed queue pair, is announced by nobody.
  if (waiting) timeout = std::min(timeout, kLookWhileWaiting);
  if (timeout > 0) fabric.Sleep(timeout);
}

// Virtual time moves with verbs calls.  A program that waits without any (poll, epoll, sleep)
// would wait for ever: after a while of wall time it is moved on, and is told what that costs. Once
// it is known to wait, one thing after the other becomes visible until it calls a verb.
void Progress::WatchVirtualClock() {
  const uint64_t calls = calls_.load(std::memory_order_relaxed);
  look_.Sleep(program_waits_ ? kVirtualPace : kVirtualSilence);
  if (stop_.load(std::memory_order_acquire)) return;
  const bool silent = calls_.load(std::memory_order_relaxed) == calls;
  silences_ = silent ? silences_ + 1 : 0;
  if (silent && !program_waits_ && silences_ < kSilencesOfABusyProgram) {
    // It may be at work, or have got no processor: then time stands still for it.
    const OtherThreads others = OtherThreads::Look();
    if (!others.known || others.running > 0) return;
  }
  program_waits_ = silent;
  if (!program_waits_ || !TryLock(Holder::kBackground)) return;
  if (ServeControl()) SettleVirtual();
  const bool moved = RunThrough(SaturatingAdd(Now(), kVirtualStride));
  if (!moved) program_waits_ = false;  // nothing to hurry for
  Unlock();
  if (moved && warn_) {
    warn_(
        "virtual time was advanced because the program waits without a verbs call: "
        "results may differ from run to run");
    warn_ = nullptr;
  }
}

}  // namespace simhca
