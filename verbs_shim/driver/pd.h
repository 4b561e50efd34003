#ifndef SIMHCA_VERBS_SHIM_DRIVER_PD_H_
#define SIMHCA_VERBS_SHIM_DRIVER_PD_H_

#include <infiniband/verbs.h>

#include "verbs_shim/driver/context.h"
#include "verbs_shim/driver/objects.h"

namespace simhca::driver {

// A protection domain.
struct Pd {
  static constexpr Kind kKind = Kind::kPd;

  explicit Pd(Context* owner) : context(owner) {}
  const ibv_pd* Public() const { return &verbs; }

  ibv_pd verbs{};
  ObjectHeader header;
  Context* const context;
  uint32_t number = 0;
};

inline Pd* FromVerbs(ibv_pd* pd) { return reinterpret_cast<Pd*>(pd); }

}  // namespace simhca::driver

#endif  // SIMHCA_VERBS_SHIM_DRIVER_PD_H_
