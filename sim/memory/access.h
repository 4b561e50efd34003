#ifndef SIMHCA_SIM_MEMORY_ACCESS_H_
#define SIMHCA_SIM_MEMORY_ACCESS_H_

#include <cstdint>

namespace simhca {

// Access flags of regions and queue pairs; values of enum ibv_access_flags.
inline constexpr uint32_t kLocalWrite = 1u << 0;
inline constexpr uint32_t kRemoteWrite = 1u << 1;
inline constexpr uint32_t kRemoteRead = 1u << 2;
inline constexpr uint32_t kRemoteAtomic = 1u << 3;
inline constexpr uint32_t kMwBind = 1u << 4;
inline constexpr uint32_t kZeroBased = 1u << 5;

}  // namespace simhca

#endif  // SIMHCA_SIM_MEMORY_ACCESS_H_
