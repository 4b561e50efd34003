#ifndef SIMHCA_TESTS_UNIT_FABRIC_RECORDER_H_
#define SIMHCA_TESTS_UNIT_FABRIC_RECORDER_H_

#include <cstdint>
#include <random>
#include <vector>

#include "sim/fabric/link.h"

namespace simhca {

// Keeps what arrives.
class Recorder : public PacketHandler {
 public:
  struct Packet {
    PacketAddress address;
    std::vector<std::byte> bytes;
  };

  void OnPacket(const PacketAddress& address, const std::byte* bytes, uint32_t length) override {
    packets.push_back({address, {bytes, bytes + length}});
  }

  std::vector<Packet> packets;
};

// Contents that depend on the number of a packet, so that a lost, repeated or damaged one shows.
inline void FillPacket(uint64_t number, std::byte* bytes, uint32_t length) {
  std::minstd_rand random(static_cast<uint32_t>(number + 1));
  for (uint32_t i = 0; i < length; ++i) bytes[i] = static_cast<std::byte>(random());
}

inline uint32_t LengthOfPacket(uint64_t number) {
  std::minstd_rand random(static_cast<uint32_t>(number * 7 + 3));
  random.discard(3);
  return random() % 3 == 0 ? random() % kMaxPacketBytes + 1 : random() % 128 + 1;
}

inline bool IsPacket(uint64_t number, const std::byte* bytes, uint32_t length) {
  if (length != LengthOfPacket(number)) return false;
  std::vector<std::byte> expected(length);
  FillPacket(number, expected.data(), length);
  return std::equal(expected.begin(), expected.end(), bytes);
}

}  // namespace simhca

#endif  // SIMHCA_TESTS_UNIT_FABRIC_RECORDER_H_
