#ifndef SIMHCA_TESTS_RC_CONNECTION_H_
#define SIMHCA_TESTS_RC_CONNECTION_H_

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>

// For verbs programs of the tests that are no GoogleTest programs.

namespace simhca {

inline constexpr uint8_t kRcRetries = 7;

struct RcConnection {
  ibv_gid remote_gid{};
  uint32_t remote_qpn = 0;
  uint8_t min_rnr_timer = 0;  // codes as in ibv_modify_qp
  uint8_t timeout = 0;
  uint8_t rnr_retry = 7;
};

// Takes an RC queue pair on port 1 from RESET to RTS, with MTU 1024 and kRcRetries retries. Returns
// the verb and move that failed, errno as the verb returned it, or null.
inline const char* ConnectRc(ibv_qp* qp, const RcConnection& connection) {
  ibv_qp_attr attr{};
  const auto refused = [qp, &attr](int mask) {
    errno = ibv_modify_qp(qp, &attr, IBV_QP_STATE | mask);
    return errno != 0;
  };
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  if (refused(IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)) {
    return "ibv_modify_qp to INIT";
  }
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = connection.remote_qpn;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = connection.min_rnr_timer;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.grh.dgid = connection.remote_gid;
  attr.ah_attr.grh.hop_limit = 1;
  attr.ah_attr.port_num = 1;
  if (refused(IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
              IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)) {
    return "ibv_modify_qp to RTR";
  }
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = connection.timeout;
  attr.retry_cnt = kRcRetries;
  attr.rnr_retry = connection.rnr_retry;
  attr.max_rd_atomic = 1;
  if (refused(IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
              IBV_QP_MAX_QP_RD_ATOMIC)) {
    return "ibv_modify_qp to RTS";
  }
  return nullptr;
}

}  // namespace simhca

#endif  // SIMHCA_TESTS_RC_CONNECTION_H_
