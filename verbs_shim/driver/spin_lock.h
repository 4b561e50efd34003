#ifndef SIMHCA_VERBS_SHIM_DRIVER_SPIN_LOCK_H_
#define SIMHCA_VERBS_SHIM_DRIVER_SPIN_LOCK_H_

#include <sched.h>

#include <atomic>

namespace simhca::driver {

// Guards one queue or table: held for tens of nanoseconds and rarely contended, so that taking it
// costs one exchange.  A thread that does not get it soon yields: the holder may want this core.
// Meets the requirements of std::lock_guard.
class SpinLock {
 public:
  void lock() {
    if (held_.exchange(true, std::memory_order_acquire)) Wait();
  }
  bool try_lock() { return !held_.exchange(true, std::memory_order_acquire); }
  // For what must not wait for ever: gives up after a few thousand turns.
  bool try_lock_for_a_while() {
    constexpr int kTurns = 5000;
    for (int turns = 0; turns < kTurns; ++turns) {
      if (try_lock()) return true;
      sched_yield();
    }
    return false;
  }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  [[gnu::cold, gnu::noinline]] void Wait() {
    constexpr int kSpins = 100;
    for (int spins = 0;; ++spins) {
      if (!held_.load(std::memory_order_relaxed) && try_lock()) return;
      if (spins < kSpins) {
        Pause();
      } else {
        sched_yield();
      }
    }
  }

  static void Pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  std::atomic<bool> held_{false};
};

}  // namespace simhca::driver

#endif  // SIMHCA_VERBS_SHIM_DRIVER_SPIN_LOCK_H_
