#ifndef SIMHCA_VERBS_SHIM_DRIVER_EVENT_FILE_H_
#define SIMHCA_VERBS_SHIM_DRIVER_EVENT_FILE_H_

#include <atomic>
#include <cstdint>
#include <deque>

#include "sim/device/device.h"
#include "sim/queues/mlx5/layout.h"
#include "verbs_shim/driver/spin_lock.h"

namespace simhca::driver {

// One event on its way to the application.
struct Event {
  mlx5::EventType type;
  uint8_t sub_type = 0;
  uint8_t port = 0;
  void* object = nullptr;  // the CQ, QP or SRQ concerned; null for a port or the device
  // Counts the events of the object that the application has been given; null with `object`.
  std::atomic<uint32_t>* taken = nullptr;
};

// A queue of events behind a file descriptor that is readable while events wait: a completion
// channel, or a context's async_fd.  The descriptor is an eventfd that counts the events, so poll,
// epoll (edge-triggered too) and O_NONBLOCK work as on the kernel's file.
class EventFile {
 public:
  explicit EventFile(Device* device) : device_(device) {}
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;
  ~EventFile() { Close(); }

  // Returns 0 or a positive errno.
  int Open();
  void Close();
  int fd() const { return fd_; }

  // Called by the interrupt handler.
  void Push(const Event& event);

  // Takes the oldest event.  Waits for one unless the descriptor is non-blocking: the engine is
  // driven for a while first, which is cheaper than sleeping.  Returns 0, or -1 with errno set as
  // read() does it (EAGAIN, EINTR).  A cancellation point: no frame with a destructor is on the
  // stack while the thread sleeps.
  int Take(Event* event);

  // Forgets the events of `object` that nobody has taken.  After it, `taken` is final.
  void Drop(const void* object);

 private:
  // A call of Take, while it may be cancelled.
  struct Taking {
    EventFile* file;
    Event* event;
  };
  int TakeOne(Event* event);
  void EndTake() { takers_.fetch_sub(1, std::memory_order_acq_rel); }
  void Wait();
  bool Pop(Event* event);
  void RemoveCounts(size_t counts);

  Device* const device_;
  int fd_ = -1;
  // The same file under a high number, for our own writes: a program that closes all its
  // descriptors gives the number of fd_ to a file of its own.
  int own_fd_ = -1;
  SpinLock lock_;
  std::deque<Event> events_;
  // Size of events_; may be read without the lock.
  std::atomic<uint32_t> waiting_{0};
  // Threads inside Take.  While it is above zero one of them may have read a count of the eventfd
  // and not yet taken the event, so counts and events need not agree.
  std::atomic<int> takers_{0};
};

}  // namespace simhca::driver

#endif  // SIMHCA_VERBS_SHIM_DRIVER_EVENT_FILE_H_
