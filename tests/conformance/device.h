#ifndef SIMHCA_TESTS_CONFORMANCE_DEVICE_H_
#define SIMHCA_TESTS_CONFORMANCE_DEVICE_H_

#include <infiniband/verbs.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

// The device under test: which one it is, its clock, its asynchronous events.

namespace simhca::conformance {

using Nanoseconds = std::chrono::nanoseconds;
using Microseconds = std::chrono::microseconds;
using Milliseconds = std::chrono::milliseconds;
using Seconds = std::chrono::seconds;

// What the command line says; set once before the first test.
struct RunOptions {
  std::string device;  // empty: the first of the list
  int port = 1;
  int gid_index = -1;  // -1: the first RoCE v2 entry, or else the first entry
  std::string clock = "wall";
};
RunOptions& run_options();

// Durations on the device clock are exact, and a second process cannot join.
inline bool VirtualTime() { return run_options().clock == "virtual"; }

// Ends the test with an explanation when a condition that it builds on does not hold.
void Require(bool condition, const char* what);

// An open context of the device under test, with what every test asks of it.
class Device {
 public:
  Device();
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  ibv_context* context() const { return context_; }
  const ibv_device_attr& attributes() const { return attributes_.orig_attr; }
  uint64_t clock_khz() const { return attributes_.hca_core_clock; }
  const ibv_port_attr& port_attributes() const { return port_attributes_; }
  uint8_t port() const { return static_cast<uint8_t>(run_options().port); }
  int gid_index() const { return gid_index_; }
  const ibv_gid& gid() const { return gid_; }

  // Device clock in its own ticks, as completion timestamps have them.
  uint64_t Ticks() const;
  // Device clock; the monotonic clock where the device has none to read.
  Nanoseconds Now() const;

  bool simulated() const;
  // The simulator's default profile: sizes and error codes are exactly the recommended ones.
  bool generic() const { return simulated() && !connectx(); }
  // A Connect-IB, ConnectX-5 or ConnectX-6 Dx, real or simulated: the rounding rules of that
  // family.
  bool connectx() const;
  bool can_resize_srq() const {
    return (attributes().device_cap_flags & IBV_DEVICE_SRQ_RESIZE) != 0;
  }

  // Next asynchronous event, not yet acknowledged, or nothing if none comes within `within` of
  // device time.  Events that only tell of connections and ports are acknowledged and passed over.
  std::optional<ibv_async_event> NextAsyncEvent(Nanoseconds within) const;
  // All that come within `window`, acknowledged.
  std::vector<ibv_async_event> AsyncEvents(Nanoseconds window) const;

 private:
  void ChooseGid();

  ibv_context* context_ = nullptr;
  ibv_device_attr_ex attributes_{};
  ibv_port_attr port_attributes_{};
  int gid_index_ = 0;
  ibv_gid gid_{};
};

// Long enough for anything that is going to happen, and the time that a test watches for
// something that must not.
inline constexpr Nanoseconds kPatience = Seconds(20);
inline constexpr Nanoseconds kQuiet = Milliseconds(3);

// The end of a wait, on the device clock, with a limit of wall time in case that clock stands.
class Deadline {
 public:
  Deadline(const Device& device, Nanoseconds within);
  // Call once per idle turn of a waiting loop: gives the processor away after a brief spin.
  bool Passed();

 private:
  const Device& device_;
  Nanoseconds end_;
  std::chrono::steady_clock::time_point backstop_;
  int turns_ = 0;
};

}  // namespace simhca::conformance

#endif  // SIMHCA_TESTS_CONFORMANCE_DEVICE_H_
