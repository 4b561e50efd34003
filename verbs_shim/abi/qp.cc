#include "verbs_shim/abi/export.h"
#include "verbs_shim/driver/driver.h"

// Queue pairs: man ibv_create_qp, ibv_modify_qp, ibv_query_qp, ibv_attach_mcast, ibv_set_ece.

namespace simhca::abi {

SIMHCA_EXPORT ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* init_attr) {
  SIMHCA_REAL_VERB(ibv_create_qp, "IBVERBS_1.1");
  if (driver::Owns(pd)) return driver::CreateQp(pd, init_attr);
  if (auto* call = real.For(pd)) return call(pd, init_attr);
  return Null(Foreign(__func__, pd));
}

SIMHCA_EXPORT ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) {
  SIMHCA_REAL_VERB(ibv_qp_to_qp_ex, "IBVERBS_1.6");
  if (driver::Owns(qp)) return driver::QpToQpEx(qp);
  if (auto* call = real.For(qp)) return call(qp);
  Foreign(__func__, qp);
  return nullptr;
}

SIMHCA_EXPORT int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attr, int attr_mask,
                               ibv_qp_init_attr* init_attr) {
  SIMHCA_REAL_VERB(ibv_query_qp, "IBVERBS_1.1");
  if (driver::Owns(qp)) return driver::QueryQp(qp, attr, attr_mask, init_attr);
  if (auto* call = real.For(qp)) return call(qp, attr, attr_mask, init_attr);
  return Foreign(__func__, qp);
}

SIMHCA_EXPORT int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int attr_mask) {
  SIMHCA_REAL_VERB(ibv_modify_qp, "IBVERBS_1.1");
  if (driver::Owns(qp)) return driver::ModifyQp(qp, attr, attr_mask);
  if (auto* call = real.For(qp)) return call(qp, attr, attr_mask);
  return Foreign(__func__, qp);
}

SIMHCA_EXPORT int ibv_destroy_qp(ibv_qp* qp) {
  SIMHCA_REAL_VERB(ibv_destroy_qp, "IBVERBS_1.1");
  if (driver::Owns(qp)) return driver::DestroyQp(qp);
  if (auto* call = real.For(qp)) return call(qp);
  return Foreign(__func__, qp);
}

SIMHCA_EXPORT int ibv_query_qp_data_in_order(ibv_qp* qp, ibv_wr_opcode op, uint32_t flags) {
  SIMHCA_REAL_VERB(ibv_query_qp_data_in_order, "IBVERBS_1.14");
  if (driver::Owns(qp)) return driver::QueryQpDataInOrder(qp, op, flags);
  if (auto* call = real.For(qp)) return call(qp, op, flags);
  Foreign(__func__, qp);
  return 0;
}

SIMHCA_EXPORT int ibv_set_ece(ibv_qp* qp, ibv_ece* ece) {
  SIMHCA_REAL_VERB(ibv_set_ece, "IBVERBS_1.10");
  if (driver::Owns(qp)) return driver::SetEce(qp, ece);
  if (auto* call = real.For(qp)) return call(qp, ece);
  return Foreign(__func__, qp);
}

SIMHCA_EXPORT int ibv_query_ece(ibv_qp* qp, ibv_ece* ece) {
  SIMHCA_REAL_VERB(ibv_query_ece, "IBVERBS_1.10");
  if (driver::Owns(qp)) return driver::QueryEce(qp, ece);
  if (auto* call = real.For(qp)) return call(qp, ece);
  return Foreign(__func__, qp);
}

SIMHCA_EXPORT int ibv_attach_mcast(ibv_qp* qp, const ibv_gid* gid, uint16_t lid) {
  SIMHCA_REAL_VERB(ibv_attach_mcast, "IBVERBS_1.1");
  if (driver::Owns(qp)) return driver::AttachMcast(qp, gid, lid);
  if (auto* call = real.For(qp)) return call(qp, gid, lid);
  return Foreign(__func__, qp);
}

SIMHCA_EXPORT int ibv_detach_mcast(ibv_qp* qp, const ibv_gid* gid, uint16_t lid) {
  SIMHCA_REAL_VERB(ibv_detach_mcast, "IBVERBS_1.1");
  if (driver::Owns(qp)) return driver::DetachMcast(qp, gid, lid);
  if (auto* call = real.For(qp)) return call(qp, gid, lid);
  return Foreign(__func__, qp);
}

}  // namespace simhca::abi
