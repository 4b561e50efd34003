#ifndef SIMHCA_VERBS_SHIM_DRIVER_SRQ_SIZES_H_
#define SIMHCA_VERBS_SHIM_DRIVER_SRQ_SIZES_H_

#include <cstdint>

#include "sim/profiles/profile.h"

namespace simhca::driver {

// What the sizes that an application asks an SRQ for lead to.
struct SrqSizes {
  uint32_t entries = 0;       // of the ring, one of which is always kept back
  uint32_t stride = 0;        // of an entry
  uint32_t capacity = 0;      // ibv_create_srq's answer
  uint32_t max_sge = 0;       // the same
  uint32_t query_max_wr = 0;  // ibv_query_srq's answer
  uint32_t max_limit = 0;     // largest limit that can be armed
};

// By the profile's rounding.  The arguments are within the profile's limits.
SrqSizes ComputeSrqSizes(const DeviceProfile& profile, uint32_t max_wr, uint32_t max_sge);

}  // namespace simhca::driver

#endif  // SIMHCA_VERBS_SHIM_DRIVER_SRQ_SIZES_H_
