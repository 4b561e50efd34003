#include <cstdint>

#include "verbs_shim/abi/export.h"

// The entries of node IBVERBS_1.0 for verbs that also exist in IBVERBS_1.1.  Programs built before
// 2006 use them, with objects of an older layout that the simulator does not have: on routes with
// hardware they reach the real library's entry, else they fail with ENOSYS.

namespace simhca::abi {
namespace {

// Every argument of these verbs is an integer or a pointer and travels in a register, so one type
// passes them on unseen.
using Word = intptr_t;
using OldVerb = Word(Word, Word, Word, Word, Word);

Word FailWithErrno() { return ENOSYS; }
Word FailWithNull() { return reinterpret_cast<Word>(static_cast<void*>(Null(ENOSYS))); }
Word FailWithMinusOne() { return MinusOne(ENOSYS); }
Word FailWithZero() { return 0; }

}  // namespace

#define SIMHCA_OLD_VERB(verb, fail)                                       \
  SIMHCA_EXPORT __attribute__((symver(#verb "@IBVERBS_1.0")))             \
  Word simhca_v1_0_##verb(Word a, Word b, Word c, Word d, Word e) {       \
    static constinit route::RealVerb<OldVerb> real(#verb, "IBVERBS_1.0"); \
    auto* call = real.Get();                                              \
    return call != nullptr ? call(a, b, c, d, e) : fail();                \
  }

SIMHCA_OLD_VERB(ibv_get_device_list, FailWithNull)
SIMHCA_OLD_VERB(ibv_free_device_list, FailWithZero)
SIMHCA_OLD_VERB(ibv_get_device_name, FailWithNull)
SIMHCA_OLD_VERB(ibv_get_device_guid, FailWithZero)
SIMHCA_OLD_VERB(ibv_open_device, FailWithNull)
SIMHCA_OLD_VERB(ibv_close_device, FailWithMinusOne)
SIMHCA_OLD_VERB(ibv_query_device, FailWithErrno)
SIMHCA_OLD_VERB(ibv_query_port, FailWithErrno)
SIMHCA_OLD_VERB(ibv_query_gid, FailWithMinusOne)
SIMHCA_OLD_VERB(ibv_query_pkey, FailWithMinusOne)
SIMHCA_OLD_VERB(ibv_get_async_event, FailWithMinusOne)
SIMHCA_OLD_VERB(ibv_ack_async_event, FailWithZero)
SIMHCA_OLD_VERB(ibv_get_cq_event, FailWithMinusOne)
SIMHCA_OLD_VERB(ibv_ack_cq_events, FailWithZero)
SIMHCA_OLD_VERB(ibv_alloc_pd, FailWithNull)
SIMHCA_OLD_VERB(ibv_dealloc_pd, FailWithErrno)
SIMHCA_OLD_VERB(ibv_reg_mr, FailWithNull)
SIMHCA_OLD_VERB(ibv_dereg_mr, FailWithErrno)
SIMHCA_OLD_VERB(ibv_create_cq, FailWithNull)
SIMHCA_OLD_VERB(ibv_resize_cq, FailWithErrno)
SIMHCA_OLD_VERB(ibv_destroy_cq, FailWithErrno)
SIMHCA_OLD_VERB(ibv_create_srq, FailWithNull)
SIMHCA_OLD_VERB(ibv_modify_srq, FailWithErrno)
SIMHCA_OLD_VERB(ibv_query_srq, FailWithErrno)
SIMHCA_OLD_VERB(ibv_destroy_srq, FailWithErrno)
SIMHCA_OLD_VERB(ibv_create_qp, FailWithNull)
SIMHCA_OLD_VERB(ibv_query_qp, FailWithErrno)
SIMHCA_OLD_VERB(ibv_modify_qp, FailWithErrno)
SIMHCA_OLD_VERB(ibv_destroy_qp, FailWithErrno)
SIMHCA_OLD_VERB(ibv_create_ah, FailWithNull)
SIMHCA_OLD_VERB(ibv_destroy_ah, FailWithErrno)
SIMHCA_OLD_VERB(ibv_attach_mcast, FailWithErrno)
SIMHCA_OLD_VERB(ibv_detach_mcast, FailWithErrno)

// Listed for programs that ask for it by name; providers of that time cannot load any more.
SIMHCA_EXPORT __attribute__((symver("ibv_register_driver@IBVERBS_1.1"))) void
simhca_v1_1_ibv_register_driver(const char* /*name*/, void* /*init*/) {}

}  // namespace simhca::abi
