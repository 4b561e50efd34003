#include "verbs_shim/abi/export.h"

// Verbs about the process rather than an object: man ibv_fork_init, ibv_is_fork_initialized, and
// the page marking behind them that providers call.

namespace simhca::abi {

// The simulator pins no pages, so a fork needs no preparation there.
SIMHCA_EXPORT int ibv_fork_init() {
  SIMHCA_REAL_VERB(ibv_fork_init, "IBVERBS_1.1");
  if (auto* call = real.Get()) return call();
  return 0;
}

SIMHCA_EXPORT ibv_fork_status ibv_is_fork_initialized() {
  SIMHCA_REAL_VERB(ibv_is_fork_initialized, "IBVERBS_1.13");
  if (auto* call = real.Get()) return call();
  return IBV_FORK_UNNEEDED;
}

SIMHCA_EXPORT int ibv_dontfork_range(void* base, size_t size) {
  SIMHCA_REAL_VERB(ibv_dontfork_range, "IBVERBS_1.1");
  if (auto* call = real.Get()) return call(base, size);
  return 0;
}

SIMHCA_EXPORT int ibv_dofork_range(void* base, size_t size) {
  SIMHCA_REAL_VERB(ibv_dofork_range, "IBVERBS_1.1");
  if (auto* call = real.Get()) return call(base, size);
  return 0;
}

}  // namespace simhca::abi
