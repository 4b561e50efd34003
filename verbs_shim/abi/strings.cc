#include <cstddef>

#include "verbs_shim/abi/export.h"

// Names of enum values: man ibv_node_type_str, ibv_wc_status_str.  Scripts compare these texts, so
// they are the ones that programs print on hardware.

namespace simhca::abi {
namespace {

template <size_t kSize>
const char* Name(const char* const (&names)[kSize], int value) {
  const bool known = value >= 0 && static_cast<size_t>(value) < kSize && names[value] != nullptr;
  return known ? names[value] : "unknown";
}

constexpr const char* kNodeTypes[] = {
    nullptr,
    "InfiniBand channel adapter",
    "InfiniBand switch",
    "InfiniBand router",
    "iWARP NIC",
    "usNIC",
    "usNIC UDP",
    "unspecified",
};

constexpr const char* kPortStates[] = {
    "no state change (NOP)", "down", "init", "armed", "active", "active defer",
};

constexpr const char* kEvents[] = {
    "CQ error",
    "local work queue catastrophic error",
    "invalid request local work queue error",
    "local access violation work queue error",
    "communication established",
    "send queue drained",
    "path migrated",
    "path migration request error",
    "local catastrophic error",
    "port active",
    "port error",
    "LID change",
    "P_Key change",
    "SM change",
    "SRQ catastrophic error",
    "SRQ limit reached",
    "last WQE reached",
    "client reregistration",
    "GID table change",
    "WQ fatal",
};

constexpr const char* kStatuses[] = {
    "success",
    "local length error",
    "local QP operation error",
    "local EE context operation error",
    "local protection error",
    "Work Request Flushed Error",
    "memory management operation error",
    "bad response error",
    "local access error",
    "remote invalid request error",
    "remote access error",
    "remote operation error",
    "transport retry counter exceeded",
    "RNR retry counter exceeded",
    "local RDD violation error",
    "remote invalid RD request",
    "aborted error",
    "invalid EE context number",
    "invalid EE context state",
    "fatal error",
    "response timeout error",
    "general error",
    "TM error",
    "TM software rendezvous",
};

}  // namespace

SIMHCA_EXPORT const char* ibv_node_type_str(ibv_node_type node_type) {
  return Name(kNodeTypes, node_type);
}

SIMHCA_EXPORT const char* ibv_port_state_str(ibv_port_state port_state) {
  return Name(kPortStates, port_state);
}

SIMHCA_EXPORT const char* ibv_event_type_str(ibv_event_type event) { return Name(kEvents, event); }

SIMHCA_EXPORT const char* ibv_wc_status_str(ibv_wc_status status) {
  return Name(kStatuses, status);
}

}  // namespace simhca::abi
