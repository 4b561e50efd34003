#ifndef SIMHCA_VERBS_SHIM_ABI_QUERY_GID_TYPE_H_
#define SIMHCA_VERBS_SHIM_ABI_QUERY_GID_TYPE_H_

#include <infiniband/verbs.h>

#include <cstdint>

namespace simhca::abi {

// Behind ibv_query_gid_type, which is in no public header but is used by ibv_devinfo, pyverbs and
// libmlx5: 0, or -1 with errno.  `*type` is 0 for InfiniBand and RoCE v1, 1 for RoCE v2.
int QueryGidType(ibv_context* context, uint8_t port_num, unsigned int index, unsigned int* type);

}  // namespace simhca::abi

#endif  // SIMHCA_VERBS_SHIM_ABI_QUERY_GID_TYPE_H_
