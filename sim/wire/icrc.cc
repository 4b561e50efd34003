#include "sim/wire/icrc.h"

#include <array>
#include <cstring>

namespace simhca {
namespace {

constexpr std::array<uint32_t, 256> kTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320u : 0);
    table[i] = crc;
  }
  return table;
}();

// State after the eight bytes of ones that stand for the local route header.
constexpr uint32_t kStart = 0xdebb20e3;

uint32_t Extend(uint32_t crc, std::span<const std::byte> bytes) {
  for (std::byte byte : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<uint8_t>(byte)) & 0xff];
  return crc;
}

// Feeds a copy of the header's bytes whose variable fields are ones.
uint32_t ExtendIp(uint32_t crc, std::span<const std::byte> ip) {
  constexpr std::byte kOnes{0xff};
  std::array<std::byte, 40> head{};
  const bool ipv6 = (ip[0] & std::byte{0xf0}) == std::byte{0x60};
  const size_t fixed = ipv6 ? 40 : 20;
  std::memcpy(head.data(), ip.data(), fixed);
  if (ipv6) {
    head[0] |= std::byte{0x0f};
    head[1] = head[2] = head[3] = kOnes;
    head[7] = kOnes;
  } else {
    head[1] = kOnes;
    head[8] = kOnes;
    head[10] = head[11] = kOnes;
  }
  crc = Extend(crc, std::span(head).first(fixed));
  return Extend(crc, ip.subspan(fixed));
}

}  // namespace

uint32_t ComputeIcrc(std::span<const std::byte> ip, std::span<const std::byte, 8> udp,
                     std::span<const std::byte> transport) {
  constexpr std::byte kOnes[2] = {std::byte{0xff}, std::byte{0xff}};
  uint32_t crc = ExtendIp(kStart, ip);
  crc = Extend(crc, udp.first(6));
  crc = Extend(crc, kOnes);
  crc = Extend(crc, transport.first(4));
  crc = Extend(crc, std::span(kOnes).first(1));
  crc = Extend(crc, transport.subspan(5));
  return ~crc;
}

void EmitIcrc(uint32_t icrc, std::byte* bytes) {
  for (int i = 0; i < 4; ++i) bytes[i] = static_cast<std::byte>(icrc >> (8 * i));
}

uint32_t ParseIcrc(const std::byte* bytes) {
  uint32_t icrc = 0;
  for (int i = 0; i < 4; ++i) icrc |= static_cast<uint32_t>(bytes[i]) << (8 * i);
  return icrc;
}

}  // namespace simhca
