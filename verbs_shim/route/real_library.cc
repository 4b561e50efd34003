#include "verbs_shim/route/real_library.h"

#include <dlfcn.h>

namespace simhca::route {
namespace {

constexpr char kLibrary[] = "libibverbs.so.1";

// Load address of the object that holds `address`.
const void* ObjectOf(const void* address) {
  Dl_info info;
  return dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

void* OpenRealLibrary() {
  const DlopenFunction open = RealDlopen();
  void* handle = open == nullptr ? nullptr : open(kLibrary, RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) return nullptr;
  const void* verb = dlsym(handle, "ibv_get_device_list");
  const bool is_this_object =
      ObjectOf(verb) == ObjectOf(reinterpret_cast<const void*>(&RealAddress));
  return is_this_object ? nullptr : handle;
}

}  // namespace

DlopenFunction RealDlopen() {
  // A racing second look-up finds the same value.
  static std::atomic<DlopenFunction> function{nullptr};
  DlopenFunction found = function.load(std::memory_order_acquire);
  if (found == nullptr) {
    found = reinterpret_cast<DlopenFunction>(dlsym(RTLD_NEXT, "dlopen"));
    function.store(found, std::memory_order_release);
  }
  return found;
}

void* RealAddress(const char* name, const char* version) {
  static void* const library = OpenRealLibrary();
  if (library == nullptr) return nullptr;
  return version == nullptr ? dlsym(library, name) : dlvsym(library, name, version);
}

}  // namespace simhca::route
