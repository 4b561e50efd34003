#ifndef SIMHCA_VERBS_SHIM_DRIVER_QP_SIZES_H_
#define SIMHCA_VERBS_SHIM_DRIVER_QP_SIZES_H_

#include <infiniband/verbs.h>

#include <cstdint>

#include "sim/profiles/profile.h"

namespace simhca::driver {

// What the capacities that an application asks for lead to.
struct QpSizes {
  ibv_qp_cap granted{};
  uint32_t send_blocks = 0;  // of the ring; 0: no send queue
  uint32_t receive_entries = 0;
  uint32_t receive_stride = 0;
};

// Null, or the rule that `cap` breaks (the answer is then EINVAL).  `send_ops` are the
// IBV_QP_EX_WITH_* bits of ibv_create_qp_ex, 0 for ibv_create_qp.  With an SRQ the receive
// capacities are ignored and granted as 0 (man ibv_create_qp).
const char* ComputeQpSizes(const DeviceProfile& profile, ibv_qp_type type, bool has_srq,
                           uint64_t send_ops, const ibv_qp_cap& cap, QpSizes* sizes);

}  // namespace simhca::driver

#endif  // SIMHCA_VERBS_SHIM_DRIVER_QP_SIZES_H_
