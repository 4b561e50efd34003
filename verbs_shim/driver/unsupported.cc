#include "verbs_shim/driver/unsupported.h"

#include "verbs_shim/driver/driver.h"
#include "verbs_shim/driver/log.h"
#include "verbs_shim/driver/result.h"

namespace simhca::driver {

namespace {

int Unsupported(const char* verb, const void* object) {
  return Refuse(EOPNOTSUPP, verb, object, "not supported by the simulated device");
}

}  // namespace

namespace unsupported {

ibv_mw* AllocMw(ibv_pd* pd, ibv_mw_type) { return Null(Unsupported("ibv_alloc_mw", pd)); }
int BindMw(ibv_qp* qp, ibv_mw*, ibv_mw_bind*) { return Unsupported("ibv_bind_mw", qp); }
int DeallocMw(ibv_mw* mw) { return Unsupported("ibv_dealloc_mw", mw); }
int CloseXrcd(ibv_xrcd* xrcd) { return Unsupported("ibv_close_xrcd", xrcd); }
int PostSrqOps(ibv_srq* srq, ibv_ops_wr*, ibv_ops_wr**) {
  return Unsupported("ibv_post_srq_ops", srq);
}

}  // namespace unsupported

ibv_context* ImportDevice(int) { return Null(Unsupported("ibv_import_device", nullptr)); }
ibv_pd* ImportPd(ibv_context* context, uint32_t) {
  return Null(Unsupported("ibv_import_pd", context));
}
void UnimportPd(ibv_pd* pd) { Unsupported("ibv_unimport_pd", pd); }
ibv_mr* ImportMr(ibv_pd* pd, uint32_t) { return Null(Unsupported("ibv_import_mr", pd)); }
void UnimportMr(ibv_mr* mr) { Unsupported("ibv_unimport_mr", mr); }
ibv_dm* ImportDm(ibv_context* context, uint32_t) {
  return Null(Unsupported("ibv_import_dm", context));
}
void UnimportDm(ibv_dm* dm) { Unsupported("ibv_unimport_dm", dm); }

int AttachMcast(ibv_qp* qp, const ibv_gid*, uint16_t) {
  return Unsupported("ibv_attach_mcast", qp);
}
int DetachMcast(ibv_qp* qp, const ibv_gid*, uint16_t) {
  return Unsupported("ibv_detach_mcast", qp);
}

ibv_ah* CreateAh(ibv_pd* pd, ibv_ah_attr*) { return Null(Unsupported("ibv_create_ah", pd)); }
ibv_ah* CreateAhFromWc(ibv_pd* pd, ibv_wc*, ibv_grh*, uint8_t) {
  return Null(Unsupported("ibv_create_ah_from_wc", pd));
}
int InitAhFromWc(ibv_context* context, uint8_t, ibv_wc*, ibv_grh*, ibv_ah_attr*) {
  return MinusOne(Unsupported("ibv_init_ah_from_wc", context));
}
int DestroyAh(ibv_ah* ah) { return Unsupported("ibv_destroy_ah", ah); }

int SetEce(ibv_qp* qp, ibv_ece*) { return errno = Unsupported("ibv_set_ece", qp); }
int QueryEce(ibv_qp* qp, ibv_ece*) { return errno = Unsupported("ibv_query_ece", qp); }

}  // namespace simhca::driver
