#ifndef SIMHCA_VERBS_SHIM_ABI_DLOPEN_H_
#define SIMHCA_VERBS_SHIM_ABI_DLOPEN_H_

#include "verbs_shim/route/real_library.h"

namespace simhca::abi {

// What the dlopen of this object has to do.  Returned in two registers.
struct DlopenAnswer {
  void* handle;                // return this, or, if null,
  route::DlopenFunction real;  // jump to this with the caller's arguments and return address
};

}  // namespace simhca::abi

// Decides for one dlopen call: a handle of this object for libibverbs, the real dlopen for
// everything else.  Called by the trampolines (dlopen_x86_64.S, dlopen_aarch64.S), which keep the
// caller's return address for the real dlopen: it finds the caller's search path by that.
extern "C" simhca::abi::DlopenAnswer simhca_filter_dlopen(const char* file, int mode);

#endif  // SIMHCA_VERBS_SHIM_ABI_DLOPEN_H_
