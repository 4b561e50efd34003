#ifndef SIMHCA_VERBS_SHIM_DRIVER_MAPPED_MEMORY_H_
#define SIMHCA_VERBS_SHIM_DRIVER_MAPPED_MEMORY_H_

#include <cstddef>

namespace simhca::driver {

// True if every byte of the range is mapped and readable, and writable too where asked: what
// pinning the pages finds out on hardware.  Changes nothing; only pages of mapped files are read
// in, since a mapping may be longer than its file.  True as well where the kernel does not tell.
bool IsMapped(const void* address, size_t length, bool writable);

}  // namespace simhca::driver

#endif  // SIMHCA_VERBS_SHIM_DRIVER_MAPPED_MEMORY_H_
