#include "verbs_shim/abi/export.h"
#include "verbs_shim/driver/driver.h"

// Protection domains, memory regions and their import: man ibv_alloc_pd, ibv_reg_mr, ibv_rereg_mr,
// ibv_import_pd, ibv_import_mr, ibv_import_dm.

namespace simhca::abi {

SIMHCA_EXPORT ibv_pd* ibv_alloc_pd(ibv_context* context) {
  SIMHCA_REAL_VERB(ibv_alloc_pd, "IBVERBS_1.1");
  if (driver::Owns(context)) return driver::AllocPd(context);
  if (auto* call = real.For(context)) return call(context);
  return Null(Foreign(__func__, context));
}

SIMHCA_EXPORT int ibv_dealloc_pd(ibv_pd* pd) {
  SIMHCA_REAL_VERB(ibv_dealloc_pd, "IBVERBS_1.1");
  if (driver::Owns(pd)) return driver::DeallocPd(pd);
  if (auto* call = real.For(pd)) return call(pd);
  return Foreign(__func__, pd);
}

SIMHCA_EXPORT ibv_pd* ibv_import_pd(ibv_context* context, uint32_t pd_handle) {
  SIMHCA_REAL_VERB(ibv_import_pd, "IBVERBS_1.10");
  if (driver::Owns(context)) return driver::ImportPd(context, pd_handle);
  if (auto* call = real.For(context)) return call(context, pd_handle);
  return Null(Foreign(__func__, context));
}

SIMHCA_EXPORT void ibv_unimport_pd(ibv_pd* pd) {
  SIMHCA_REAL_VERB(ibv_unimport_pd, "IBVERBS_1.10");
  if (driver::Owns(pd)) return driver::UnimportPd(pd);
  if (auto* call = real.For(pd)) return call(pd);
  Foreign(__func__, pd);
}

SIMHCA_EXPORT ibv_mr* ibv_reg_mr(ibv_pd* pd, void* addr, size_t length, int access) {
  SIMHCA_REAL_VERB(ibv_reg_mr, "IBVERBS_1.1");
  if (driver::Owns(pd)) return driver::RegMr(pd, addr, length, access);
  if (auto* call = real.For(pd)) return call(pd, addr, length, access);
  return Null(Foreign(__func__, pd));
}

SIMHCA_EXPORT ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* addr, size_t length, uint64_t iova,
                                      int access) {
  SIMHCA_REAL_VERB(ibv_reg_mr_iova, "IBVERBS_1.7");
  if (driver::Owns(pd)) return driver::RegMrIova(pd, addr, length, iova, access);
  if (auto* call = real.For(pd)) return call(pd, addr, length, iova, access);
  return Null(Foreign(__func__, pd));
}

SIMHCA_EXPORT ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* addr, size_t length, uint64_t iova,
                                       unsigned int access) {
  SIMHCA_REAL_VERB(ibv_reg_mr_iova2, "IBVERBS_1.8");
  if (driver::Owns(pd)) return driver::RegMrIova2(pd, addr, length, iova, access);
  if (auto* call = real.For(pd)) return call(pd, addr, length, iova, access);
  return Null(Foreign(__func__, pd));
}

SIMHCA_EXPORT ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* pd, uint64_t offset, size_t length, uint64_t iova,
                                        int fd, int access) {
  SIMHCA_REAL_VERB(ibv_reg_dmabuf_mr, "IBVERBS_1.12");
  if (driver::Owns(pd)) return driver::RegDmabufMr(pd, offset, length, iova, fd, access);
  if (auto* call = real.For(pd)) return call(pd, offset, length, iova, fd, access);
  return Null(Foreign(__func__, pd));
}

SIMHCA_EXPORT int ibv_rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* addr, size_t length,
                               int access) {
  SIMHCA_REAL_VERB(ibv_rereg_mr, "IBVERBS_1.1");
  if (driver::Owns(mr)) return driver::ReregMr(mr, flags, pd, addr, length, access);
  if (auto* call = real.For(mr)) return call(mr, flags, pd, addr, length, access);
  return MinusOne(Foreign(__func__, mr));
}

SIMHCA_EXPORT int ibv_dereg_mr(ibv_mr* mr) {
  SIMHCA_REAL_VERB(ibv_dereg_mr, "IBVERBS_1.1");
  if (driver::Owns(mr)) return driver::DeregMr(mr);
  if (auto* call = real.For(mr)) return call(mr);
  return Foreign(__func__, mr);
}

SIMHCA_EXPORT ibv_mr* ibv_import_mr(ibv_pd* pd, uint32_t mr_handle) {
  SIMHCA_REAL_VERB(ibv_import_mr, "IBVERBS_1.10");
  if (driver::Owns(pd)) return driver::ImportMr(pd, mr_handle);
  if (auto* call = real.For(pd)) return call(pd, mr_handle);
  return Null(Foreign(__func__, pd));
}

SIMHCA_EXPORT void ibv_unimport_mr(ibv_mr* mr) {
  SIMHCA_REAL_VERB(ibv_unimport_mr, "IBVERBS_1.10");
  if (driver::Owns(mr)) return driver::UnimportMr(mr);
  if (auto* call = real.For(mr)) return call(mr);
  Foreign(__func__, mr);
}

SIMHCA_EXPORT ibv_dm* ibv_import_dm(ibv_context* context, uint32_t dm_handle) {
  SIMHCA_REAL_VERB(ibv_import_dm, "IBVERBS_1.13");
  if (driver::Owns(context)) return driver::ImportDm(context, dm_handle);
  if (auto* call = real.For(context)) return call(context, dm_handle);
  return Null(Foreign(__func__, context));
}

SIMHCA_EXPORT void ibv_unimport_dm(ibv_dm* dm) {
  SIMHCA_REAL_VERB(ibv_unimport_dm, "IBVERBS_1.13");
  if (driver::Owns(dm)) return driver::UnimportDm(dm);
  if (auto* call = real.For(dm)) return call(dm);
  Foreign(__func__, dm);
}

}  // namespace simhca::abi
