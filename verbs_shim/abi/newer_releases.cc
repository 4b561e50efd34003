#include <cstdint>

#include "verbs_shim/abi/export.h"
#include "verbs_shim/driver/driver.h"

// Verbs of rdma-core releases after 44 (nodes IBVERBS_1.15 to 1.18), so that programs built with
// newer headers load.  Simulated objects do not have these features: EOPNOTSUPP in the verb's own
// form.  Objects of real devices go to the machine's library, if that is new enough.

namespace simhca::abi {
namespace {

// Every argument of these verbs is an integer or a pointer and travels in a register, so one type
// passes them on unseen, whatever the release's structures look like.
using Word = intptr_t;
using NewVerb = Word(Word, Word, Word, Word, Word, Word);

Word FailWithErrno() { return EOPNOTSUPP; }
Word FailWithNull() { return reinterpret_cast<Word>(static_cast<void*>(Null(EOPNOTSUPP))); }
Word FailWithMinusOne() { return MinusOne(EOPNOTSUPP); }

}  // namespace

#define SIMHCA_NEW_VERB(verb, version, fail)                                   \
  SIMHCA_EXPORT Word verb(Word a, Word b, Word c, Word d, Word e, Word f) {    \
    static constinit route::RealVerb<NewVerb> real(#verb, "IBVERBS_" version); \
    const void* object = reinterpret_cast<const void*>(a);                     \
    auto* call = driver::Owns(object) ? nullptr : real.For(object);            \
    return call != nullptr ? call(a, b, c, d, e, f) : fail();                  \
  }

SIMHCA_NEW_VERB(ibv_alloc_dmah, "1.15", FailWithNull)
SIMHCA_NEW_VERB(ibv_dealloc_dmah, "1.15", FailWithErrno)
SIMHCA_NEW_VERB(ibv_reg_mr_ex, "1.15", FailWithNull)
SIMHCA_NEW_VERB(ibv_dm_export_dmabuf_fd, "1.16", FailWithMinusOne)
SIMHCA_NEW_VERB(ibv_query_port_speed, "1.16", FailWithErrno)
SIMHCA_NEW_VERB(ibv_alloc_buf, "1.17", FailWithNull)
SIMHCA_NEW_VERB(ibv_free_buf, "1.17", FailWithErrno)
SIMHCA_NEW_VERB(ibv_reg_buf_mr, "1.17", FailWithNull)
SIMHCA_NEW_VERB(_ibv_query_comp_cntr_caps, "1.18", FailWithErrno)
SIMHCA_NEW_VERB(ibv_create_comp_cntr, "1.18", FailWithNull)
SIMHCA_NEW_VERB(ibv_destroy_comp_cntr, "1.18", FailWithErrno)
SIMHCA_NEW_VERB(ibv_set_comp_cntr, "1.18", FailWithErrno)
SIMHCA_NEW_VERB(ibv_set_err_comp_cntr, "1.18", FailWithErrno)
SIMHCA_NEW_VERB(ibv_inc_comp_cntr, "1.18", FailWithErrno)
SIMHCA_NEW_VERB(ibv_inc_err_comp_cntr, "1.18", FailWithErrno)
SIMHCA_NEW_VERB(ibv_read_comp_cntr, "1.18", FailWithErrno)
SIMHCA_NEW_VERB(ibv_read_err_comp_cntr, "1.18", FailWithErrno)
SIMHCA_NEW_VERB(ibv_qp_attach_comp_cntr, "1.18", FailWithErrno)
SIMHCA_NEW_VERB(ibv_export_buf_dmabuf_fd, "1.18", FailWithMinusOne)

}  // namespace simhca::abi
