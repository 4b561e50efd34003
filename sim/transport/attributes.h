#ifndef SIMHCA_SIM_TRANSPORT_ATTRIBUTES_H_
#define SIMHCA_SIM_TRANSPORT_ATTRIBUTES_H_

#include <cstdint>

#include "sim/memory/access.h"
#include "sim/wire/gid.h"

// Plain values that the driver and the device exchange.  Numeric values are those of the verbs
// enums of the same names, so that the driver converts with a cast.

namespace simhca {

enum class QpType : uint8_t { kRc = 2, kUc = 3, kUd = 4, kXrcSend = 9, kXrcReceive = 10 };

enum class QpState : uint8_t { kReset, kInit, kRtr, kRts, kSqd, kSqe, kErr };

// Attribute mask of modify QP (enum ibv_qp_attr_mask).
namespace qp_mask {
inline constexpr uint32_t kState = 1u << 0;
inline constexpr uint32_t kCurState = 1u << 1;
inline constexpr uint32_t kEnSqdAsyncNotify = 1u << 2;
inline constexpr uint32_t kAccessFlags = 1u << 3;
inline constexpr uint32_t kPkeyIndex = 1u << 4;
inline constexpr uint32_t kPort = 1u << 5;
inline constexpr uint32_t kQkey = 1u << 6;
inline constexpr uint32_t kAv = 1u << 7;
inline constexpr uint32_t kPathMtu = 1u << 8;
inline constexpr uint32_t kTimeout = 1u << 9;
inline constexpr uint32_t kRetryCount = 1u << 10;
inline constexpr uint32_t kRnrRetry = 1u << 11;
inline constexpr uint32_t kRqPsn = 1u << 12;
inline constexpr uint32_t kMaxRdAtomic = 1u << 13;
inline constexpr uint32_t kAltPath = 1u << 14;
inline constexpr uint32_t kMinRnrTimer = 1u << 15;
inline constexpr uint32_t kSqPsn = 1u << 16;
inline constexpr uint32_t kMaxDestRdAtomic = 1u << 17;
inline constexpr uint32_t kPathMigState = 1u << 18;
inline constexpr uint32_t kCap = 1u << 19;
inline constexpr uint32_t kDestQpn = 1u << 20;
inline constexpr uint32_t kRateLimit = 1u << 25;
}  // namespace qp_mask

// Address of a remote port (struct ibv_ah_attr).
struct AddressVector {
  Gid dgid{};
  uint32_t flow_label = 0;
  uint16_t dlid = 0;
  uint8_t sgid_index = 0;
  uint8_t hop_limit = 0;
  uint8_t traffic_class = 0;
  uint8_t sl = 0;
  uint8_t src_path_bits = 0;
  uint8_t static_rate = 0;
  uint8_t port = 0;
  bool is_global = false;
};

// Attributes of a queue pair (struct ibv_qp_attr), in the units of the verbs: coded timers, MTU
// code 1..5, 24-bit PSNs.
struct QpAttributes {
  QpState state = QpState::kReset;
  QpState current_state = QpState::kReset;
  uint8_t path_mtu = 0;
  uint8_t path_mig_state = 0;
  uint32_t qkey = 0;
  uint32_t rq_psn = 0;
  uint32_t sq_psn = 0;
  uint32_t dest_qpn = 0;
  uint32_t access_flags = 0;
  AddressVector av;
  AddressVector alt_av;
  uint16_t pkey_index = 0;
  uint8_t port = 0;
  uint8_t alt_port = 0;
  uint8_t max_rd_atomic = 0;
  uint8_t max_dest_rd_atomic = 0;
  uint8_t min_rnr_timer = 0;
  uint8_t timeout = 0;
  uint8_t retry_count = 0;
  uint8_t rnr_retry = 0;
  bool en_sqd_async_notify = false;
  bool sq_draining = false;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_TRANSPORT_ATTRIBUTES_H_
