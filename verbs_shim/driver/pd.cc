#include "verbs_shim/driver/pd.h"

#include <memory>

#include "verbs_shim/driver/driver.h"
#include "verbs_shim/driver/log.h"
#include "verbs_shim/driver/result.h"

namespace simhca::driver {

ibv_pd* AllocPd(ibv_context* public_context) {
  Context* context;
  if (const int error = FindContext(public_context, &context)) {
    return Null(Refuse(error, "ibv_alloc_pd", public_context, "not an open context"));
  }
  auto pd = std::make_unique<Pd>(context);
  if (const int error = context->device->AllocPd(context->number, &pd->number)) {
    return Null(Refuse(error, "ibv_alloc_pd", public_context, "the device refused"));
  }
  pd->header.handle = pd->number;
  pd->verbs.context = public_context;
  pd->verbs.handle = pd->header.handle;
  Objects().Add(pd.get(), Kind::kPd, &pd->header, context);
  return &pd.release()->verbs;
}

int DeallocPd(ibv_pd* public_pd) {
  Pd* pd = FromVerbs(public_pd);
  if (const int error = CheckObject(pd)) {
    return Refuse(error, "ibv_dealloc_pd", public_pd, "not a protection domain");
  }
  if (const int error = pd->context->device->DeallocPd(pd->number)) {
    return Refuse(error, "ibv_dealloc_pd", public_pd, "still in use");
  }
  Retire(pd);
  return 0;
}

}  // namespace simhca::driver
