#ifndef SIMHCA_SIM_WIRE_ICRC_H_
#define SIMHCA_SIM_WIRE_ICRC_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace simhca {

inline constexpr size_t kIcrcSize = 4;

// The invariant CRC of a RoCEv2 packet: CRC-32 as in Ethernet over eight bytes of ones, the IP and
// UDP headers, and `transport` from BTH to the end of the pad.  What routers may change counts as
// ones: TOS or traffic class and flow label, TTL or hop limit, the IPv4 and UDP checksums, and byte
// 4 of the BTH.  `ip` is an IPv4 header of at least 20 bytes or an IPv6 header of 40, told apart by
// the version in it; `transport` has at least a BTH.
uint32_t ComputeIcrc(std::span<const std::byte> ip, std::span<const std::byte, 8> udp,
                     std::span<const std::byte> transport);

// Writes the CRC as it goes at the end of the packet, least significant byte first.
void EmitIcrc(uint32_t icrc, std::byte* bytes);
uint32_t ParseIcrc(const std::byte* bytes);

}  // namespace simhca

#endif  // SIMHCA_SIM_WIRE_ICRC_H_
