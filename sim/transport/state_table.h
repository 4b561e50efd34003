#ifndef SIMHCA_SIM_TRANSPORT_STATE_TABLE_H_
#define SIMHCA_SIM_TRANSPORT_STATE_TABLE_H_

#include <cstdint>

#include "sim/transport/attributes.h"

namespace simhca {

// Limits that attribute values of a modify are checked against.
struct ModifyLimits {
  uint8_t ports = 1;
  bool needs_global_route = true;  // RoCE: an address without a GID goes nowhere
  uint8_t max_mtu_code = 5;
  uint16_t pkeys = 1;
  uint16_t gids = 2;
  uint32_t max_rd_atomic = 16;       // as requester
  uint32_t max_dest_rd_atomic = 16;  // as responder
};

// Whether a queue pair of `type` with the attributes `current` may be modified so: 0, EINVAL, or
// EOPNOTSUPP for mask bits that do not exist.  Order of checks and tables of required and optional
// attributes: man ibv_modify_qp; IBTA vol 1, 10.3.1 and 11.2.4.2.
int CheckModify(QpType type, QpState state, const QpAttributes& current, uint32_t mask,
                const QpAttributes& wanted, const ModifyLimits& limits);

}  // namespace simhca

#endif  // SIMHCA_SIM_TRANSPORT_STATE_TABLE_H_
