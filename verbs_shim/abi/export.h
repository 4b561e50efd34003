#ifndef SIMHCA_VERBS_SHIM_ABI_EXPORT_H_
#define SIMHCA_VERBS_SHIM_ABI_EXPORT_H_

#include <infiniband/verbs.h>

#include "verbs_shim/driver/result.h"
#include "verbs_shim/route/real_library.h"

// What every file of exported symbols needs.  A verb is written in one pattern: if the simulated
// devices own the object, call the driver; else, on a route with hardware, the real library's
// function; else refuse in the verb's own form.  The version of a symbol is given by the .lds
// files, that of a second, older entry by the symver attribute.

// The header replaces these by inline functions; here the symbols behind them are defined.
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

// A symbol that programs bind to; everything else is compiled with hidden visibility.
#define SIMHCA_EXPORT extern "C" __attribute__((visibility("default")))

// Declares `real`, the real library's function `verb` at `version`.
#define SIMHCA_REAL_VERB(verb, version) \
  static constinit ::simhca::route::RealVerb<decltype(verb)> real(#verb, version)

namespace simhca::abi {

// For an object that is neither the simulator's nor the real library's: returns EINVAL, explained
// at SIMHCA_LOG=warn.
int Foreign(const char* verb, const void* object);

// Failures in the form of the verb.
using driver::MinusOne;
using driver::Null;

}  // namespace simhca::abi

#endif  // SIMHCA_VERBS_SHIM_ABI_EXPORT_H_
