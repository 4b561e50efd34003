#ifndef SIMHCA_VERBS_SHIM_ROUTE_REAL_LIBRARY_H_
#define SIMHCA_VERBS_SHIM_ROUTE_REAL_LIBRARY_H_

#include <atomic>

namespace simhca::route {

// The C library's dlopen, not the one this object may interpose.  Null only if there is none.
using DlopenFunction = void* (*)(const char* file, int mode);
DlopenFunction RealDlopen();

// Address of `name` at `version` in the machine's own libibverbs, which is loaded at the first
// call; a null `version` asks for the default one.  Null if the machine has none, if it lacks the
// symbol, or if this object itself stands in for that library (the drop-in form).
void* RealAddress(const char* name, const char* version);

// True if objects that the simulator does not own belong to the real library on this route.
bool ForwardsToHardware();

// One function of the real libibverbs, looked up at its first use and never again.
template <typename Function>
class RealVerb {
 public:
  constexpr RealVerb(const char* name, const char* version) : name_(name), version_(version) {}

  // The function, or null if the route has no hardware or the library no such function.
  Function* Get() {
    if (!ForwardsToHardware()) return nullptr;
    void* address = address_.load(std::memory_order_acquire);
    if (address == nullptr) {
      address = RealAddress(name_, version_);
      address_.store(address, std::memory_order_release);
    }
    return reinterpret_cast<Function*>(address);
  }

  // The same for a call on `object`: null as well if that is null, which the real library would
  // dereference.
  Function* For(const void* object) { return object == nullptr ? nullptr : Get(); }

 private:
  const char* const name_;
  const char* const version_;
  std::atomic<void*> address_{nullptr};
};

}  // namespace simhca::route

#endif  // SIMHCA_VERBS_SHIM_ROUTE_REAL_LIBRARY_H_
