#include "verbs_shim/abi/export.h"
#include "verbs_shim/abi/query_gid_type.h"

// Private symbols that programs, not only providers, take from libibverbs.  The preload form
// exports them without a version: that satisfies a reference to any release's private node, and
// providers keep the real library's other symbols.

namespace simhca::abi {

SIMHCA_EXPORT int ibv_query_gid_type(ibv_context* context, uint8_t port_num, unsigned int index,
                                     unsigned int* type) {
  return QueryGidType(context, port_num, index, type);
}

}  // namespace simhca::abi
