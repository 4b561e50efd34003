#ifndef SIMHCA_VERBS_SHIM_DRIVER_CONTEXT_H_
#define SIMHCA_VERBS_SHIM_DRIVER_CONTEXT_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

#include "sim/device/device.h"
#include "sim/profiles/profile.h"
#include "verbs_shim/driver/event_file.h"
#include "verbs_shim/driver/interrupts.h"
#include "verbs_shim/driver/number_table.h"
#include "verbs_shim/driver/objects.h"
#include "verbs_shim/driver/process.h"

namespace simhca::driver {

struct Cq;
struct Qp;
struct Srq;

// An open device.  The application's pointer is to the last member of `verbs`.
struct Context {
  static constexpr Kind kKind = Kind::kContext;

  Context(const ListedDevice& listed_device, Device* simulated_device)
      : device(simulated_device),
        profile(simulated_device->profile()),
        listed(listed_device),
        virtual_time(simulated_device->virtual_time()),
        async_events(simulated_device),
        interrupts(this) {}

  // Only for what is known to be a context of ours: see FindContext.
  static Context* From(ibv_context* context) {
    return reinterpret_cast<Context*>(reinterpret_cast<std::byte*>(context) -
                                      offsetof(verbs_context, context));
  }
  ibv_context* Public() { return &verbs.context; }

  verbs_context verbs{};
  ObjectHeader header;
  Device* const device;
  const DeviceProfile& profile;
  const ListedDevice& listed;
  const bool virtual_time;
  uint32_t number = 0;    // the device's name for this context
  int command_file = -1;  // cmd_fd
  // Nanoseconds since 1970 at the device clock's zero.
  int64_t wallclock_epoch = 0;

  NumberTable<Cq> cqs;
  NumberTable<Srq> srqs;
  NumberTable<Qp> qps;
  EventFile async_events;
  Interrupts interrupts;
};

// The context behind a pointer of the application.  Returns 0, or EINVAL if it is null, closed or
// no context of ours.
int FindContext(ibv_context* public_context, Context** context);

// Device clock in ticks of the completion timestamps.
uint64_t ReadRawClock(const Context& context);
// Nanoseconds since 1970 when the device clock showed `ticks`; under virtual time, since its zero.
uint64_t WallclockOf(const Context& context, uint64_t ticks);

}  // namespace simhca::driver

#endif  // SIMHCA_VERBS_SHIM_DRIVER_CONTEXT_H_
