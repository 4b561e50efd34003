#include "tests/conformance/device.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <cstring>
#include <stdexcept>

namespace simhca::conformance {

namespace {

constexpr int kSpinTurns = 200;

ibv_context* OpenByName(const std::string& name) {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  if (list == nullptr) return nullptr;
  ibv_context* context = nullptr;
  for (int i = 0; i < count && context == nullptr; ++i) {
    if (name.empty() || name == ibv_get_device_name(list[i])) context = ibv_open_device(list[i]);
  }
  ibv_free_device_list(list);
  return context;
}

bool TellsOfConnectionsOrPorts(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE:
      return true;
    default:
      return false;
  }
}

}  // namespace

RunOptions& run_options() {
  static RunOptions options;
  return options;
}

void Require(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

Device::Device() {
  context_ = OpenByName(run_options().device);
  Require(context_ != nullptr, "opening the device under test");
  Require(ibv_query_device_ex(context_, nullptr, &attributes_) == 0, "ibv_query_device_ex");
  Require(ibv_query_port(context_, port(), &port_attributes_) == 0, "ibv_query_port");
  ChooseGid();
  const int flags = fcntl(context_->async_fd, F_GETFL);
  Require(fcntl(context_->async_fd, F_SETFL, flags | O_NONBLOCK) == 0, "O_NONBLOCK on async_fd");
}

Device::~Device() { EXPECT_EQ(0, ibv_close_device(context_)); }

void Device::ChooseGid() {
  gid_index_ = run_options().gid_index;
  for (int i = 0; gid_index_ < 0 && i < port_attributes_.gid_tbl_len; ++i) {
    ibv_gid_entry entry{};
    if (ibv_query_gid_ex(context_, port(), i, &entry, 0) == 0 &&
        entry.gid_type == IBV_GID_TYPE_ROCE_V2) {
      gid_index_ = i;
    }
  }
  if (gid_index_ < 0) gid_index_ = 0;
  Require(ibv_query_gid(context_, port(), gid_index_, &gid_) == 0, "ibv_query_gid");
}

uint64_t Device::Ticks() const {
  ibv_values_ex values{};
  values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
  if (ibv_query_rt_values_ex(context_, &values) != 0) {
    return std::chrono::steady_clock::now().time_since_epoch().count();
  }
  // The raw clock is a plain count of ticks; providers put it into tv_nsec and leave tv_sec 0.
  return static_cast<uint64_t>(values.raw_clock.tv_sec) * 1000000000u +
         static_cast<uint64_t>(values.raw_clock.tv_nsec);
}

Nanoseconds Device::Now() const {
  const uint64_t khz = clock_khz() != 0 ? clock_khz() : 1000000;
  return Nanoseconds(static_cast<int64_t>(static_cast<__uint128_t>(Ticks()) * 1000000 / khz));
}

bool Device::simulated() const {
  return std::strncmp(ibv_get_device_name(context_->device), "simhca", 6) == 0;
}

bool Device::connectx() const {
  // Connect-IB, ConnectX-5, ConnectX-6 Dx.
  const uint32_t part = attributes().vendor_part_id;
  return attributes().vendor_id == 0x02c9 && (part == 0x1011 || part == 0x1017 || part == 0x101d);
}

std::optional<ibv_async_event> Device::NextAsyncEvent(Nanoseconds within) const {
  Deadline deadline(*this, within);
  do {
    ibv_async_event event{};
    if (ibv_get_async_event(context_, &event) == 0) {
      if (!TellsOfConnectionsOrPorts(event.event_type)) return event;
      ibv_ack_async_event(&event);
    } else {
      Require(errno == EAGAIN || errno == EWOULDBLOCK, "ibv_get_async_event");
    }
  } while (!deadline.Passed());
  return std::nullopt;
}

std::vector<ibv_async_event> Device::AsyncEvents(Nanoseconds window) const {
  std::vector<ibv_async_event> events;
  const Nanoseconds end = Now() + window;
  for (;;) {
    const std::optional<ibv_async_event> event = NextAsyncEvent(end - Now());
    if (!event) return events;
    events.push_back(*event);
    ibv_ack_async_event(&events.back());
  }
}

Deadline::Deadline(const Device& device, Nanoseconds within)
    : device_(device),
      end_(device.Now() + within),
      backstop_(std::chrono::steady_clock::now() + Seconds(60)) {}

bool Deadline::Passed() {
  if (++turns_ > kSpinTurns) sched_yield();
  return device_.Now() >= end_ || std::chrono::steady_clock::now() >= backstop_;
}

}  // namespace simhca::conformance
