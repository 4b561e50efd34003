#ifndef SIMHCA_VERBS_SHIM_DRIVER_MR_H_
#define SIMHCA_VERBS_SHIM_DRIVER_MR_H_

#include <infiniband/verbs.h>

#include "verbs_shim/driver/context.h"
#include "verbs_shim/driver/objects.h"
#include "verbs_shim/driver/pd.h"

namespace simhca::driver {

// A memory region.
struct Mr {
  static constexpr Kind kKind = Kind::kMr;

  explicit Mr(Context* owner) : context(owner) {}
  const ibv_mr* Public() const { return &verbs; }

  ibv_mr verbs{};
  ObjectHeader header;
  Context* const context;
  Pd* pd = nullptr;
  std::byte* address = nullptr;
  size_t length = 0;
  uint64_t iova = 0;
  uint32_t access = 0;
  uint32_t key = 0;
};

inline Mr* FromVerbs(ibv_mr* mr) { return reinterpret_cast<Mr*>(mr); }

}  // namespace simhca::driver

#endif  // SIMHCA_VERBS_SHIM_DRIVER_MR_H_
