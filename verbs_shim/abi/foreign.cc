#include "verbs_shim/abi/export.h"
#include "verbs_shim/driver/log.h"

namespace simhca::abi {

int Foreign(const char* verb, const void* object) {
  return driver::Refuse(
      EINVAL, verb, object, "{}",
      object == nullptr ? "the handle is null" : "the handle is not of a simulated device");
}

}  // namespace simhca::abi
