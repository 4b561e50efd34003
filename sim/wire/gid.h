#ifndef SIMHCA_SIM_WIRE_GID_H_
#define SIMHCA_SIM_WIRE_GID_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace simhca {

// Addresses of the ports of a fabric.  Port n (0..kMaxPort) has the MAC address 02:5a:48:00:hi:lo,
// hi:lo being n + 1, and two GIDs, both RoCEv2:
//   index 0  fe80::/64 with the EUI-64 of the MAC address
//   index 1  ::ffff:198.18.hi.lo, from the network that RFC 2544 sets aside for benchmarks

using Gid = std::array<uint8_t, 16>;
using MacAddress = std::array<uint8_t, 6>;

inline constexpr uint32_t kGidsPerPort = 2;
inline constexpr uint16_t kMaxPort = 0xfffe;

constexpr MacAddress MacOfPort(uint16_t port) {
  const uint16_t host = static_cast<uint16_t>(port + 1);
  return {0x02, 0x5a, 0x48, 0x00, static_cast<uint8_t>(host >> 8), static_cast<uint8_t>(host)};
}

// EUI-64 of the MAC address with the universal bit inverted, as IPv6 does; in memory order.
constexpr std::array<uint8_t, 8> NodeGuidOfPort(uint16_t port) {
  const MacAddress mac = MacOfPort(port);
  return {static_cast<uint8_t>(mac[0] ^ 0x02), mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};
}

// The GID at `index` of the port's table; all zero (an empty entry) from kGidsPerPort on.
constexpr Gid GidOfPort(uint16_t port, uint32_t index) {
  Gid gid{};
  if (index == 0) {
    gid[0] = 0xfe;
    gid[1] = 0x80;
    const std::array<uint8_t, 8> guid = NodeGuidOfPort(port);
    for (int i = 0; i < 8; ++i) gid[8 + i] = guid[i];
  } else if (index == 1) {
    const MacAddress mac = MacOfPort(port);
    gid[10] = gid[11] = 0xff;
    gid[12] = 198;
    gid[13] = 18;
    gid[14] = mac[4];
    gid[15] = mac[5];
  }
  return gid;
}

struct PortGid {
  uint16_t port;
  uint8_t index;
};

// The port and table index that a GID belongs to; nullopt if it is nobody's in a fabric.
constexpr std::optional<PortGid> FindGid(const Gid& gid) {
  const uint32_t host = uint32_t{gid[14]} << 8 | gid[15];
  if (host == 0) return std::nullopt;
  const uint16_t port = static_cast<uint16_t>(host - 1);
  for (uint8_t index = 0; index < kGidsPerPort; ++index) {
    if (gid == GidOfPort(port, index)) return PortGid{port, index};
  }
  return std::nullopt;
}

constexpr std::optional<uint16_t> PortOfGid(const Gid& gid) {
  const std::optional<PortGid> found = FindGid(gid);
  return found ? std::optional<uint16_t>(found->port) : std::nullopt;
}

// Where a profile's link layer is InfiniBand, ports have LIDs too, and packets may be addressed by
// them alone.
constexpr uint16_t LidOfPort(uint16_t port) { return static_cast<uint16_t>(port + 1); }
constexpr std::optional<uint16_t> PortOfLid(uint16_t lid) {
  return lid != 0 ? std::optional<uint16_t>(static_cast<uint16_t>(lid - 1)) : std::nullopt;
}

// IPv4-mapped, so that packets carry an IPv4 header.
constexpr bool IsIpv4Mapped(const Gid& gid) {
  for (int i = 0; i < 10; ++i) {
    if (gid[i] != 0) return false;
  }
  return gid[10] == 0xff && gid[11] == 0xff;
}

// Eight groups of four hexadecimal digits, as the GID files in /sys show it.
std::string FormatGid(const Gid& gid);

}  // namespace simhca

#endif  // SIMHCA_SIM_WIRE_GID_H_
