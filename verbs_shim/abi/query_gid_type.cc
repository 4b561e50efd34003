#include "verbs_shim/abi/query_gid_type.h"

#include "verbs_shim/abi/export.h"
#include "verbs_shim/driver/driver.h"

namespace simhca::abi {

int QueryGidType(ibv_context* context, uint8_t port_num, unsigned int index, unsigned int* type) {
  // The name of the symbol's node differs by release: any will do.
  static constinit route::RealVerb<decltype(QueryGidType)> real("ibv_query_gid_type", nullptr);
  if (driver::Owns(context)) return driver::QueryGidType(context, port_num, index, type);
  if (auto* call = real.For(context)) return call(context, port_num, index, type);
  return MinusOne(Foreign("ibv_query_gid_type", context));
}

}  // namespace simhca::abi
