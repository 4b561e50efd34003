#include "sim/wire/icrc.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace simhca {
namespace {

std::vector<std::byte> FromHex(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

struct Packet {
  std::vector<std::byte> ip, udp, transport;

  uint32_t Icrc() const {
    return ComputeIcrc(ip, std::span<const std::byte, 8>(udp.data(), 8), transport);
  }
  std::vector<std::byte> Trailer() const {
    std::vector<std::byte> bytes(kIcrcSize);
    EmitIcrc(Icrc(), bytes.data());
    return bytes;
  }
};

// A captured congestion notification packet.
Packet CapturedCnp() {
  return {FromHex("45c2003c718c4000401191610a0011010a001201"), FromHex("000012b700280000"),
          FromHex("8100ffff4000011800000000" + std::string(32, '0'))};
}

// A UC SEND only of 14 bytes from 192.168.0.7 to itself; header checksums are arbitrary,
// since they are not covered.
Packet UcSend() {
  return {FromHex("450100400478400040110000c0a80007c0a80007"), FromHex("c00012b7002c0000"),
          FromHex("2460ffff000000d300cf1710"
                  "4630818be28935d90e9a95505401be885e50"
                  "0000")};
}

TEST(IcrcTest, CapturedCongestionNotification) {
  EXPECT_EQ(CapturedCnp().Trailer(), FromHex("82fd002a"));
}

TEST(IcrcTest, UcSendWithPad) { EXPECT_EQ(UcSend().Trailer(), FromHex("78f353f3")); }

TEST(IcrcTest, WhatRoutersChangeIsNotCovered) {
  Packet packet = CapturedCnp();
  const uint32_t icrc = packet.Icrc();
  for (size_t i : {1, 8, 10, 11}) packet.ip[i] ^= std::byte{0x5a};
  for (size_t i : {6, 7}) packet.udp[i] ^= std::byte{0x5a};
  packet.transport[4] ^= std::byte{0xc0};
  EXPECT_EQ(packet.Icrc(), icrc);
}

TEST(IcrcTest, EveryOtherByteIsCovered) {
  const uint32_t icrc = CapturedCnp().Icrc();
  for (size_t i = 0; i < 20; ++i) {
    if (i == 1 || i == 8 || i == 10 || i == 11) continue;
    Packet packet = CapturedCnp();
    packet.ip[i] ^= std::byte{0x01};
    EXPECT_NE(packet.Icrc(), icrc) << "IP byte " << i;
  }
  for (size_t i = 0; i < 6; ++i) {
    Packet packet = CapturedCnp();
    packet.udp[i] ^= std::byte{0x01};
    EXPECT_NE(packet.Icrc(), icrc) << "UDP byte " << i;
  }
  for (size_t i = 0; i < 28; ++i) {
    if (i == 4) continue;
    Packet packet = CapturedCnp();
    packet.transport[i] ^= std::byte{0x01};
    EXPECT_NE(packet.Icrc(), icrc) << "transport byte " << i;
  }
}

TEST(IcrcTest, Ipv6MasksTrafficClassFlowLabelAndHopLimit) {
  Packet packet = CapturedCnp();
  packet.ip = FromHex("6000000000281140" + std::string("fe80000000000000005a48fffe000001") +
                      "fe80000000000000005a48fffe000002");
  const uint32_t icrc = packet.Icrc();
  packet.ip[0] |= std::byte{0x0f};
  for (size_t i : {1, 2, 3, 7}) packet.ip[i] ^= std::byte{0x77};
  EXPECT_EQ(packet.Icrc(), icrc);
  packet.ip[39] ^= std::byte{0x01};
  EXPECT_NE(packet.Icrc(), icrc);
}

TEST(IcrcTest, TrailerRoundTrips) {
  std::byte bytes[4];
  EmitIcrc(0x01020304, bytes);
  EXPECT_EQ(bytes[0], std::byte{0x04});
  EXPECT_EQ(ParseIcrc(bytes), 0x01020304u);
}

}  // namespace
}  // namespace simhca
