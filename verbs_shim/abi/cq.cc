#include "verbs_shim/abi/export.h"
#include "verbs_shim/driver/driver.h"

// Completion queues: man ibv_create_cq, ibv_resize_cq, ibv_destroy_cq.

namespace simhca::abi {

SIMHCA_EXPORT ibv_cq* ibv_create_cq(ibv_context* context, int cqe, void* cq_context,
                                    ibv_comp_channel* channel, int comp_vector) {
  SIMHCA_REAL_VERB(ibv_create_cq, "IBVERBS_1.1");
  if (driver::Owns(context)) {
    return driver::CreateCq(context, cqe, cq_context, channel, comp_vector);
  }
  if (auto* call = real.For(context)) return call(context, cqe, cq_context, channel, comp_vector);
  return Null(Foreign(__func__, context));
}

SIMHCA_EXPORT int ibv_resize_cq(ibv_cq* cq, int cqe) {
  SIMHCA_REAL_VERB(ibv_resize_cq, "IBVERBS_1.1");
  if (driver::Owns(cq)) return driver::ResizeCq(cq, cqe);
  if (auto* call = real.For(cq)) return call(cq, cqe);
  return Foreign(__func__, cq);
}

SIMHCA_EXPORT int ibv_destroy_cq(ibv_cq* cq) {
  SIMHCA_REAL_VERB(ibv_destroy_cq, "IBVERBS_1.1");
  if (driver::Owns(cq)) return driver::DestroyCq(cq);
  if (auto* call = real.For(cq)) return call(cq);
  return Foreign(__func__, cq);
}

}  // namespace simhca::abi
