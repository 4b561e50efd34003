#ifndef SIMHCA_SIM_WIRE_HEADERS_H_
#define SIMHCA_SIM_WIRE_HEADERS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "sim/wire/byte_order.h"
#include "sim/wire/opcode.h"
#include "sim/wire/psn.h"     // IWYU pragma: export
#include "sim/wire/timers.h"  // IWYU pragma: export

// The transport headers of RoCEv2 as plain values.  Parse reads kSize bytes, each once; Emit writes
// kSize bytes, reserved ones as zero.  Neither checks that the bytes are there: HeaderBytes(opcode)
// against the packet's length does that once for all headers.  Fields of 24 bits are masked when
// emitted.

namespace simhca {

inline constexpr uint16_t kDefaultPkey = 0xffff;
inline constexpr uint32_t kQpnMask = 0xffffff;

// Base transport header: starts every packet.
struct Bth {
  static constexpr size_t kSize = 12;

  Opcode opcode{};
  bool solicited = false;
  bool migrated = true;  // MigReq; set unless automatic path migration is under way
  uint8_t pad = 0;       // zero bytes after the payload, 0..3
  uint8_t version = 0;   // anything but 0 is not for us
  uint16_t pkey = kDefaultPkey;
  bool fecn = false;
  bool becn = false;
  uint32_t dest_qpn = 0;  // 24 bits
  bool ack_request = false;
  uint32_t psn = 0;  // 24 bits

  static Bth Parse(const std::byte* bytes) {
    const uint32_t first = LoadBe32(bytes);
    const uint32_t second = LoadBe32(bytes + 4);
    const uint32_t third = LoadBe32(bytes + 8);
    Bth bth;
    bth.opcode = static_cast<Opcode>(first >> 24);
    bth.solicited = (first & 0x00800000) != 0;
    bth.migrated = (first & 0x00400000) != 0;
    bth.pad = static_cast<uint8_t>(first >> 20 & 3);
    bth.version = static_cast<uint8_t>(first >> 16 & 0xf);
    bth.pkey = static_cast<uint16_t>(first);
    bth.fecn = (second & 0x80000000) != 0;
    bth.becn = (second & 0x40000000) != 0;
    bth.dest_qpn = second & kQpnMask;
    bth.ack_request = (third & 0x80000000) != 0;
    bth.psn = third & kPsnMask;
    return bth;
  }

  void Emit(std::byte* bytes) const {
    StoreBe32(bytes, uint32_t{static_cast<uint8_t>(opcode)} << 24 | uint32_t{solicited} << 23 |
                         uint32_t{migrated} << 22 | (pad & 3u) << 20 | (version & 0xfu) << 16 |
                         pkey);
    StoreBe32(bytes + 4, uint32_t{fecn} << 31 | uint32_t{becn} << 30 | (dest_qpn & kQpnMask));
    StoreBe32(bytes + 8, uint32_t{ack_request} << 31 | (psn & kPsnMask));
  }
};

// Pad bytes that follow a payload of `length` bytes.
constexpr uint8_t PadBytes(uint32_t length) { return static_cast<uint8_t>(-length & 3); }

// RDMA extended transport header: where a WRITE goes, what a READ asks for.
struct Reth {
  static constexpr size_t kSize = 16;

  uint64_t address = 0;
  uint32_t rkey = 0;
  uint32_t length = 0;  // of the whole message, up to 2^31

  static Reth Parse(const std::byte* bytes) {
    return {LoadBe64(bytes), LoadBe32(bytes + 8), LoadBe32(bytes + 12)};
  }
  void Emit(std::byte* bytes) const {
    StoreBe64(bytes, address);
    StoreBe32(bytes + 8, rkey);
    StoreBe32(bytes + 12, length);
  }
};

// The syndrome byte of an AETH.
namespace syndrome {

enum class Kind : uint8_t { kAck, kRnrNak, kNak, kReserved };

inline constexpr uint8_t kAck = 0x1f;  // without a credit limit, as a QP on an SRQ must say
inline constexpr uint8_t kNakSequence = 0x60;
inline constexpr uint8_t kNakInvalidRequest = 0x61;
inline constexpr uint8_t kNakRemoteAccess = 0x62;
inline constexpr uint8_t kNakRemoteOperation = 0x63;

// `code`: min_rnr_timer of the responder's QP, 0..31.
constexpr uint8_t RnrNak(uint8_t code) { return static_cast<uint8_t>(0x20 | (code & 0x1f)); }
constexpr uint8_t RnrTimerCode(uint8_t syndrome) { return syndrome & 0x1f; }

constexpr Kind KindOf(uint8_t syndrome) {
  switch (syndrome >> 5) {
    case 0:
      return Kind::kAck;
    case 1:
      return Kind::kRnrNak;
    case 3:
      return Kind::kNak;
    default:
      return Kind::kReserved;
  }
}

}  // namespace syndrome

// ACK extended transport header.
struct Aeth {
  static constexpr size_t kSize = 4;

  uint8_t syndrome = syndrome::kAck;
  uint32_t msn = 0;  // 24 bits: messages that the responder has completed

  static Aeth Parse(const std::byte* bytes) {
    const uint32_t word = LoadBe32(bytes);
    return {static_cast<uint8_t>(word >> 24), word & 0xffffff};
  }
  void Emit(std::byte* bytes) const {
    StoreBe32(bytes, uint32_t{syndrome} << 24 | (msn & 0xffffff));
  }
};

// Immediate data: four bytes as the program gave them, in the memory order of ibv_send_wr.imm_data.
struct ImmDt {
  static constexpr size_t kSize = 4;

  uint32_t data = 0;  // big-endian by the program's doing; never converted here

  static ImmDt Parse(const std::byte* bytes) { return {wire_internal::LoadOnce<uint32_t>(bytes)}; }
  void Emit(std::byte* bytes) const { std::memcpy(bytes, &data, sizeof(data)); }
};

// Invalidate extended transport header.
struct Ieth {
  static constexpr size_t kSize = 4;

  uint32_t rkey = 0;

  static Ieth Parse(const std::byte* bytes) { return {LoadBe32(bytes)}; }
  void Emit(std::byte* bytes) const { StoreBe32(bytes, rkey); }
};

// Datagram extended transport header.
struct Deth {
  static constexpr size_t kSize = 8;

  uint32_t qkey = 0;
  uint32_t source_qpn = 0;  // 24 bits

  static Deth Parse(const std::byte* bytes) {
    return {LoadBe32(bytes), LoadBe32(bytes + 4) & kQpnMask};
  }
  void Emit(std::byte* bytes) const {
    StoreBe32(bytes, qkey);
    StoreBe32(bytes + 4, source_qpn & kQpnMask);
  }
};

// Request of a CmpSwap or FetchAdd.  Operands are integers; memory holds them in host order.
struct AtomicEth {
  static constexpr size_t kSize = 28;

  uint64_t address = 0;
  uint32_t rkey = 0;
  uint64_t swap_or_add = 0;
  uint64_t compare = 0;

  static AtomicEth Parse(const std::byte* bytes) {
    return {LoadBe64(bytes), LoadBe32(bytes + 8), LoadBe64(bytes + 12), LoadBe64(bytes + 20)};
  }
  void Emit(std::byte* bytes) const {
    StoreBe64(bytes, address);
    StoreBe32(bytes + 8, rkey);
    StoreBe64(bytes + 12, swap_or_add);
    StoreBe64(bytes + 20, compare);
  }
};

// Result of an atomic: the value before it.
struct AtomicAck {
  static constexpr size_t kSize = 8;

  uint64_t original = 0;

  static AtomicAck Parse(const std::byte* bytes) { return {LoadBe64(bytes)}; }
  void Emit(std::byte* bytes) const { StoreBe64(bytes, original); }
};

// Follows the BTH of every XRC request: the SRQ that the message is for.
struct XrcEth {
  static constexpr size_t kSize = 4;

  uint32_t srqn = 0;  // 24 bits

  static XrcEth Parse(const std::byte* bytes) { return {LoadBe32(bytes) & 0xffffff}; }
  void Emit(std::byte* bytes) const { StoreBe32(bytes, srqn & 0xffffff); }
};

}  // namespace simhca

#endif  // SIMHCA_SIM_WIRE_HEADERS_H_
