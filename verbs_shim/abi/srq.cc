#include "verbs_shim/abi/export.h"
#include "verbs_shim/driver/driver.h"

// Shared receive queues: man ibv_create_srq, ibv_modify_srq, ibv_query_srq, ibv_destroy_srq.

namespace simhca::abi {

SIMHCA_EXPORT ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* init_attr) {
  SIMHCA_REAL_VERB(ibv_create_srq, "IBVERBS_1.1");
  if (driver::Owns(pd)) return driver::CreateSrq(pd, init_attr);
  if (auto* call = real.For(pd)) return call(pd, init_attr);
  return Null(Foreign(__func__, pd));
}

SIMHCA_EXPORT int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* attr, int attr_mask) {
  SIMHCA_REAL_VERB(ibv_modify_srq, "IBVERBS_1.1");
  if (driver::Owns(srq)) return driver::ModifySrq(srq, attr, attr_mask);
  if (auto* call = real.For(srq)) return call(srq, attr, attr_mask);
  return Foreign(__func__, srq);
}

SIMHCA_EXPORT int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* attr) {
  SIMHCA_REAL_VERB(ibv_query_srq, "IBVERBS_1.1");
  if (driver::Owns(srq)) return driver::QuerySrq(srq, attr);
  if (auto* call = real.For(srq)) return call(srq, attr);
  return Foreign(__func__, srq);
}

SIMHCA_EXPORT int ibv_destroy_srq(ibv_srq* srq) {
  SIMHCA_REAL_VERB(ibv_destroy_srq, "IBVERBS_1.1");
  if (driver::Owns(srq)) return driver::DestroySrq(srq);
  if (auto* call = real.For(srq)) return call(srq);
  return Foreign(__func__, srq);
}

}  // namespace simhca::abi
