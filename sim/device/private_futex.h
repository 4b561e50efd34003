#ifndef SIMHCA_SIM_DEVICE_PRIVATE_FUTEX_H_
#define SIMHCA_SIM_DEVICE_PRIVATE_FUTEX_H_

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "sim/timing/time.h"

namespace simhca {

// One thread sleeps for a while, another may cut it short.
class PrivateFutex {
 public:
  // Returns at once if Wake was called since the last Sleep.
  void Sleep(Duration timeout) {
    timespec limit;
    limit.tv_sec = timeout / kSecond;
    limit.tv_nsec = ToNanoseconds(timeout % kSecond);
    if (woken_.load(std::memory_order_acquire) == 0) {
      syscall(SYS_futex, &woken_, FUTEX_WAIT_PRIVATE, 0, &limit, nullptr, 0);
    }
    woken_.store(0, std::memory_order_release);
  }

  void Wake() {
    woken_.store(1, std::memory_order_release);
    syscall(SYS_futex, &woken_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }

 private:
  std::atomic<uint32_t> woken_{0};
};

}  // namespace simhca

#endif  // SIMHCA_SIM_DEVICE_PRIVATE_FUTEX_H_
