#include "sim/transport/state_table.h"

#include <cerrno>
#include <optional>

namespace simhca {

namespace {

using namespace qp_mask;

constexpr uint32_t kStandardBits = (1u << 21) - 1;  // kState .. kDestQpn

struct Transition {
  uint32_t required;
  uint32_t optional;
};

// RC, besides the state itself.
std::optional<Transition> RcTransition(QpState from, QpState to) {
  constexpr uint32_t kPathChange = kAltPath | kAccessFlags | kPkeyIndex;
  if (to == QpState::kReset) return Transition{0, 0};
  if (to == QpState::kErr) {
    if (from == QpState::kReset) return std::nullopt;
    return Transition{0, 0};
  }
  const auto is = [from, to](QpState a, QpState b) { return from == a && to == b; };
  if (is(QpState::kReset, QpState::kInit)) return Transition{kPkeyIndex | kPort | kAccessFlags, 0};
  if (is(QpState::kInit, QpState::kInit)) return Transition{0, kPkeyIndex | kPort | kAccessFlags};
  if (is(QpState::kInit, QpState::kRtr)) {
    return Transition{kAv | kPathMtu | kDestQpn | kRqPsn | kMaxDestRdAtomic | kMinRnrTimer,
                      kPathChange};
  }
  if (is(QpState::kRtr, QpState::kRts)) {
    return Transition{kTimeout | kRetryCount | kRnrRetry | kSqPsn | kMaxRdAtomic,
                      kCurState | kAltPath | kAccessFlags | kMinRnrTimer | kPathMigState};
  }
  if (is(QpState::kRts, QpState::kRts) || is(QpState::kSqd, QpState::kRts)) {
    return Transition{0, kCurState | kAccessFlags | kAltPath | kPathMigState | kMinRnrTimer};
  }
  if (is(QpState::kRts, QpState::kSqd)) return Transition{0, kEnSqdAsyncNotify};
  if (is(QpState::kSqd, QpState::kSqd)) {
    return Transition{0, kPort | kAv | kTimeout | kRetryCount | kRnrRetry | kMaxRdAtomic |
                             kMaxDestRdAtomic | kPathChange | kMinRnrTimer | kPathMigState};
  }
  return std::nullopt;
}

bool PortValid(uint8_t port, const ModifyLimits& limits) {
  return port >= 1 && port <= limits.ports;
}

// Ports of the path: before the state table (Linux uverbs checks them first).
int CheckPorts(QpState to, const QpAttributes& current, uint32_t mask, const QpAttributes& wanted,
               const ModifyLimits& limits) {
  if ((mask & kPort) != 0 && !PortValid(wanted.port, limits)) return EINVAL;
  if ((mask & kAv) != 0) {
    if (!PortValid(wanted.av.port, limits)) return EINVAL;
    if ((mask & kState) != 0 && to == QpState::kRtr && wanted.av.port != current.port) {
      return EINVAL;
    }
    if ((mask & kPort) != 0 && wanted.av.port != wanted.port) return EINVAL;
  }
  // RoCE has no alternate path.
  return (mask & kAltPath) != 0 ? EINVAL : 0;
}

int CheckValues(uint32_t mask, const QpAttributes& wanted, const ModifyLimits& limits) {
  const auto given = [mask](uint32_t bit) { return (mask & bit) != 0; };
  if (given(kPkeyIndex) && wanted.pkey_index >= limits.pkeys) return EINVAL;
  if (given(kTimeout) && wanted.timeout > 31) return EINVAL;
  if (given(kRetryCount) && wanted.retry_count > 7) return EINVAL;
  if (given(kRnrRetry) && wanted.rnr_retry > 7) return EINVAL;
  if (given(kMinRnrTimer) && wanted.min_rnr_timer > 31) return EINVAL;
  if (given(kPathMtu) && (wanted.path_mtu < 1 || wanted.path_mtu > limits.max_mtu_code)) {
    return EINVAL;
  }
  if (given(kMaxRdAtomic) && wanted.max_rd_atomic > limits.max_rd_atomic) return EINVAL;
  if (given(kMaxDestRdAtomic) && wanted.max_dest_rd_atomic > limits.max_dest_rd_atomic) {
    return EINVAL;
  }
  if (given(kAv)) {
    if (!wanted.av.is_global && limits.needs_global_route) return EINVAL;
    if (wanted.av.is_global && wanted.av.sgid_index >= limits.gids) return EINVAL;
  }
  return 0;
}

}  // namespace

int CheckModify(QpType, QpState state, const QpAttributes& current, uint32_t mask,
                const QpAttributes& wanted, const ModifyLimits& limits) {
  if ((mask & ~kStandardBits) != 0) return EOPNOTSUPP;
  const QpState to = (mask & kState) != 0 ? wanted.state : state;
  if (int error = CheckPorts(to, current, mask, wanted, limits)) return error;
  if (wanted.state > QpState::kErr && (mask & kState) != 0) return EINVAL;
  if ((mask & kCurState) != 0) {
    // The caller's view of the state: only those that the device may have left by itself, and only
    // the right one.  A move from a state in which the queue pair is not would skip a start.
    if (wanted.current_state != QpState::kRtr && wanted.current_state != QpState::kRts &&
        wanted.current_state != QpState::kSqd && wanted.current_state != QpState::kSqe) {
      return EINVAL;
    }
    if (wanted.current_state != state) return EINVAL;
  }
  const std::optional<Transition> transition = RcTransition(state, to);
  if (!transition) return EINVAL;
  const uint32_t given = mask & ~kState;
  if ((given & transition->required) != transition->required) return EINVAL;
  if ((given & ~(transition->required | transition->optional)) != 0) return EINVAL;
  return CheckValues(mask, wanted, limits);
}

}  // namespace simhca
