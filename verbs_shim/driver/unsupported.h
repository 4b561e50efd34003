#ifndef SIMHCA_VERBS_SHIM_DRIVER_UNSUPPORTED_H_
#define SIMHCA_VERBS_SHIM_DRIVER_UNSUPPORTED_H_

#include <infiniband/verbs.h>

// Verbs that the simulated devices do not have, and for which the header's inline functions make no
// test of their own: each fails with EOPNOTSUPP in the verb's form.
namespace simhca::driver::unsupported {

ibv_mw* AllocMw(ibv_pd* pd, ibv_mw_type type);
int BindMw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind);
int DeallocMw(ibv_mw* mw);
int CloseXrcd(ibv_xrcd* xrcd);
// Without it the header would set *bad_op, as libibverbs does not.
int PostSrqOps(ibv_srq* srq, ibv_ops_wr* op, ibv_ops_wr** bad_op);

}  // namespace simhca::driver::unsupported

#endif  // SIMHCA_VERBS_SHIM_DRIVER_UNSUPPORTED_H_
