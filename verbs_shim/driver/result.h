#ifndef SIMHCA_VERBS_SHIM_DRIVER_RESULT_H_
#define SIMHCA_VERBS_SHIM_DRIVER_RESULT_H_

#include <cerrno>

namespace simhca::driver {

// The failure of verbs that return a pointer.
inline decltype(nullptr) Null(int error) {
  errno = error;
  return nullptr;
}

// The failure of verbs that return -1 and set errno.
inline int MinusOne(int error) {
  errno = error;
  return -1;
}

}  // namespace simhca::driver

#endif  // SIMHCA_VERBS_SHIM_DRIVER_RESULT_H_
