#include "verbs_shim/abi/export.h"
#include "verbs_shim/driver/driver.h"

// Address handles: man ibv_create_ah, ibv_create_ah_from_wc.

namespace simhca::abi {

SIMHCA_EXPORT ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  SIMHCA_REAL_VERB(ibv_create_ah, "IBVERBS_1.1");
  if (driver::Owns(pd)) return driver::CreateAh(pd, attr);
  if (auto* call = real.For(pd)) return call(pd, attr);
  return Null(Foreign(__func__, pd));
}

SIMHCA_EXPORT int ibv_init_ah_from_wc(ibv_context* context, uint8_t port_num, ibv_wc* wc,
                                      ibv_grh* grh, ibv_ah_attr* ah_attr) {
  SIMHCA_REAL_VERB(ibv_init_ah_from_wc, "IBVERBS_1.1");
  if (driver::Owns(context)) return driver::InitAhFromWc(context, port_num, wc, grh, ah_attr);
  if (auto* call = real.For(context)) return call(context, port_num, wc, grh, ah_attr);
  return MinusOne(Foreign(__func__, context));
}

SIMHCA_EXPORT ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh,
                                            uint8_t port_num) {
  SIMHCA_REAL_VERB(ibv_create_ah_from_wc, "IBVERBS_1.1");
  if (driver::Owns(pd)) return driver::CreateAhFromWc(pd, wc, grh, port_num);
  if (auto* call = real.For(pd)) return call(pd, wc, grh, port_num);
  return Null(Foreign(__func__, pd));
}

SIMHCA_EXPORT int ibv_destroy_ah(ibv_ah* ah) {
  SIMHCA_REAL_VERB(ibv_destroy_ah, "IBVERBS_1.1");
  if (driver::Owns(ah)) return driver::DestroyAh(ah);
  if (auto* call = real.For(ah)) return call(ah);
  return Foreign(__func__, ah);
}

SIMHCA_EXPORT int ibv_resolve_eth_l2_from_gid(ibv_context* context, ibv_ah_attr* attr,
                                              uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t* vid) {
  SIMHCA_REAL_VERB(ibv_resolve_eth_l2_from_gid, "IBVERBS_1.1");
  if (driver::Owns(context)) return driver::ResolveEthL2FromGid(context, attr, eth_mac, vid);
  if (auto* call = real.For(context)) return call(context, attr, eth_mac, vid);
  return -Foreign(__func__, context);
}

}  // namespace simhca::abi
