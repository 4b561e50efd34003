#ifndef SIMHCA_VERBS_SHIM_DRIVER_CHANNEL_H_
#define SIMHCA_VERBS_SHIM_DRIVER_CHANNEL_H_

#include <infiniband/verbs.h>

#include <atomic>

#include "verbs_shim/driver/context.h"
#include "verbs_shim/driver/event_file.h"
#include "verbs_shim/driver/objects.h"

namespace simhca::driver {

// A completion channel.
struct Channel {
  static constexpr Kind kKind = Kind::kChannel;

  explicit Channel(Context* owner) : context(owner), events(owner->device) {}

  ibv_comp_channel verbs{};
  ObjectHeader header;
  Context* const context;
  std::atomic<int> cqs{0};  // that report here
  EventFile events;
};

inline Channel* FromVerbs(ibv_comp_channel* channel) { return reinterpret_cast<Channel*>(channel); }

// 0, EINVAL (null, freed, another kind of object) or ENOENT (context overwritten).
int CheckChannel(const Channel* channel);

}  // namespace simhca::driver

#endif  // SIMHCA_VERBS_SHIM_DRIVER_CHANNEL_H_
