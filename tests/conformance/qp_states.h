#ifndef SIMHCA_TESTS_CONFORMANCE_QP_STATES_H_
#define SIMHCA_TESTS_CONFORMANCE_QP_STATES_H_

#include <string>

#include "tests/conformance/fixture.h"

// The RC state table, and queue pairs in every state of it.

namespace simhca::conformance {

// One row of the RC state table: the attributes that a transition needs and those it allows.
struct Transition {
  ibv_qp_state from;
  ibv_qp_state to;
  int required;
  int optional;
};

inline constexpr int kInit = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;

inline constexpr Transition kTransitions[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, kInit, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, kInit},
    {IBV_QPS_INIT, IBV_QPS_RTR, kRtrMask & ~IBV_QP_STATE,
     IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {IBV_QPS_RTR, IBV_QPS_RTS, kRtsMask & ~IBV_QP_STATE,
     IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER |
         IBV_QP_PATH_MIG_STATE},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0,
     IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE |
         IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_SQD, IBV_QPS_RTS, 0,
     IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE |
         IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_SQD, IBV_QPS_SQD, 0,
     IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
         IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_ALT_PATH |
         IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE},
};

// Allowed by the table, but dependent on path migration, which not every port has.
inline constexpr int kMigration = IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE;

class QpStates : public RcTest {
 protected:
  QpStates()
      : qp_(MakeQp(device_, pd_.get(), RequesterOptions())),
        peer_(MakeQp(device_, pd_.get(), ResponderOptions())) {}

  // All fields valid for any transition.
  ibv_qp_attr Attributes(ibv_qp_state from, ibv_qp_state to) const {
    ibv_qp_attr attr = ConnectionAttributes(device_, peer_->qp_num, {});
    attr.qp_state = to;
    attr.cur_qp_state = from;
    attr.path_mig_state = IBV_MIG_MIGRATED;
    attr.alt_ah_attr = attr.ah_attr;
    attr.alt_port_num = attr.port_num;
    attr.alt_timeout = attr.timeout;
    return attr;
  }

  // Brings the QP into `state` from wherever it is.
  void Enter(ibv_qp_state state) {
    ASSERT_EQ(0, Move(qp_.get(), IBV_QPS_RESET));
    if (state == IBV_QPS_RESET) return;
    const ibv_qp_attr attr = ConnectionAttributes(device_, peer_->qp_num, {});
    const bool beyond = state == IBV_QPS_SQD || state == IBV_QPS_ERR;
    BringTo(device_, qp_.get(), beyond ? IBV_QPS_RTS : state, attr);
    if (beyond) {
      ASSERT_EQ(0, Move(qp_.get(), state));
    }
    ASSERT_EQ(state, StateOf(qp_.get()));
  }

  int Modify(const Transition& transition, int mask) {
    ibv_qp_attr attr = Attributes(transition.from, transition.to);
    return ibv_modify_qp(qp_.get(), &attr, mask);
  }

  Qp qp_;
  Qp peer_;
};

inline std::string Describe(const Transition& transition, int mask) {
  return std::to_string(transition.from) + " to " + std::to_string(transition.to) + " with mask " +
         std::to_string(mask);
}

}  // namespace simhca::conformance

#endif  // SIMHCA_TESTS_CONFORMANCE_QP_STATES_H_
