#include "verbs_shim/abi/dlopen.h"

#include <dlfcn.h>

#include <cstring>

namespace simhca::abi {
namespace {

// Programs that load the verbs library at run time (NCCL, for one) ask for it by these names.
bool IsVerbsLibrary(const char* file) {
  return file != nullptr &&
         (std::strcmp(file, "libibverbs.so.1") == 0 || std::strcmp(file, "libibverbs.so") == 0);
}

// A new reference to this object.  Null, as from dlopen itself, if `mode` is wrong.
void* OpenThisObject(route::DlopenFunction real, int mode) {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&simhca_filter_dlopen), &info) == 0) return nullptr;
  return real(info.dli_fname, mode | RTLD_NOLOAD);
}

}  // namespace
}  // namespace simhca::abi

simhca::abi::DlopenAnswer simhca_filter_dlopen(const char* file, int mode) {
  using namespace simhca;
  const route::DlopenFunction real = route::RealDlopen();
  if (!abi::IsVerbsLibrary(file)) return {nullptr, real};
  return {abi::OpenThisObject(real, mode), real};
}
