#ifndef SIMHCA_SIM_WIRE_OPCODE_H_
#define SIMHCA_SIM_WIRE_OPCODE_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace simhca {

// Bits 7:5 of a BTH opcode.
enum class Transport : uint8_t {
  kRc = 0x00,
  kUc = 0x20,
  kRd = 0x40,
  kUd = 0x60,
  kCongestion = 0x80,  // only the congestion notification packet
  kXrc = 0xa0,
};

// Bits 4:0 of a BTH opcode, the same for every transport that has the operation.
enum class Operation : uint8_t {
  kSendFirst = 0x00,
  kSendMiddle = 0x01,
  kSendLast = 0x02,
  kSendLastImmediate = 0x03,
  kSendOnly = 0x04,
  kSendOnlyImmediate = 0x05,
  kWriteFirst = 0x06,
  kWriteMiddle = 0x07,
  kWriteLast = 0x08,
  kWriteLastImmediate = 0x09,
  kWriteOnly = 0x0a,
  kWriteOnlyImmediate = 0x0b,
  kReadRequest = 0x0c,
  kReadResponseFirst = 0x0d,
  kReadResponseMiddle = 0x0e,
  kReadResponseLast = 0x0f,
  kReadResponseOnly = 0x10,
  kAck = 0x11,
  kAtomicAck = 0x12,
  kCompareSwap = 0x13,
  kFetchAdd = 0x14,
  kSendLastInvalidate = 0x16,
  kSendOnlyInvalidate = 0x17,
};

// A BTH opcode as on the wire: MakeOpcode(transport, operation).  Any byte may arrive; IsKnown
// tells whether it means something.
enum class Opcode : uint8_t { kCongestionNotification = 0x81 };

constexpr Opcode MakeOpcode(Transport transport, Operation operation) {
  return static_cast<Opcode>(static_cast<uint8_t>(transport) | static_cast<uint8_t>(operation));
}
constexpr Transport TransportOf(Opcode opcode) {
  return static_cast<Transport>(static_cast<uint8_t>(opcode) & 0xe0);
}
constexpr Operation OperationOf(Opcode opcode) {
  return static_cast<Operation>(static_cast<uint8_t>(opcode) & 0x1f);
}

namespace wire_internal {

// What an operation is and which headers it carries.
enum : uint16_t {
  kStarts = 1 << 0,  // first packet of its message
  kEnds = 1 << 1,    // last packet of its message
  kSend = 1 << 2,
  kWrite = 1 << 3,
  kRead = 1 << 4,      // READ request
  kAtomic = 1 << 5,    // atomic request
  kResponse = 1 << 6,  // travels from the responder to the requester
  kHasImmediate = 1 << 7,
  kHasInvalidate = 1 << 8,
  kHasReth = 1 << 9,
  kHasAeth = 1 << 10,
  kOnUc = 1 << 11,  // exists for UC
  kOnUd = 1 << 12,  // exists for UD
  kOnRc = 1 << 13,  // exists for RC and XRC
};

inline constexpr std::array<uint16_t, 32> kTraits = [] {
  std::array<uint16_t, 32> traits{};
  auto set = [&traits](Operation operation, unsigned flags) {
    traits[static_cast<uint8_t>(operation)] = static_cast<uint16_t>(flags | kOnRc);
  };
  set(Operation::kSendFirst, kSend | kStarts | kOnUc);
  set(Operation::kSendMiddle, kSend | kOnUc);
  set(Operation::kSendLast, kSend | kEnds | kOnUc);
  set(Operation::kSendLastImmediate, kSend | kEnds | kHasImmediate | kOnUc);
  set(Operation::kSendOnly, kSend | kStarts | kEnds | kOnUc | kOnUd);
  set(Operation::kSendOnlyImmediate, kSend | kStarts | kEnds | kHasImmediate | kOnUc | kOnUd);
  set(Operation::kWriteFirst, kWrite | kStarts | kHasReth | kOnUc);
  set(Operation::kWriteMiddle, kWrite | kOnUc);
  set(Operation::kWriteLast, kWrite | kEnds | kOnUc);
  set(Operation::kWriteLastImmediate, kWrite | kEnds | kHasImmediate | kOnUc);
  set(Operation::kWriteOnly, kWrite | kStarts | kEnds | kHasReth | kOnUc);
  set(Operation::kWriteOnlyImmediate, kWrite | kStarts | kEnds | kHasReth | kHasImmediate | kOnUc);
  set(Operation::kReadRequest, kRead | kStarts | kEnds | kHasReth);
  set(Operation::kReadResponseFirst, kResponse | kStarts | kHasAeth);
  set(Operation::kReadResponseMiddle, kResponse);
  set(Operation::kReadResponseLast, kResponse | kEnds | kHasAeth);
  set(Operation::kReadResponseOnly, kResponse | kStarts | kEnds | kHasAeth);
  set(Operation::kAck, kResponse | kStarts | kEnds | kHasAeth);
  set(Operation::kAtomicAck, kResponse | kStarts | kEnds | kHasAeth);
  set(Operation::kCompareSwap, kAtomic | kStarts | kEnds);
  set(Operation::kFetchAdd, kAtomic | kStarts | kEnds);
  set(Operation::kSendLastInvalidate, kSend | kEnds | kHasInvalidate);
  set(Operation::kSendOnlyInvalidate, kSend | kStarts | kEnds | kHasInvalidate);
  return traits;
}();

constexpr uint16_t TraitsOf(Operation operation) {
  return kTraits[static_cast<uint8_t>(operation) & 0x1f];
}

constexpr bool Known(Opcode opcode) {
  const uint16_t traits = TraitsOf(OperationOf(opcode));
  switch (TransportOf(opcode)) {
    case Transport::kRc:
    case Transport::kXrc:
      return (traits & kOnRc) != 0;
    case Transport::kUc:
      return (traits & kOnUc) != 0;
    case Transport::kUd:
      return (traits & kOnUd) != 0;
    case Transport::kCongestion:
      return opcode == Opcode::kCongestionNotification;
    case Transport::kRd:
      break;
  }
  return false;
}

}  // namespace wire_internal

// Starts a message: a first or an only packet.
constexpr bool IsFirst(Operation op) {
  return (wire_internal::TraitsOf(op) & wire_internal::kStarts) != 0;
}
// Ends a message: a last or an only packet.
constexpr bool IsLast(Operation op) {
  return (wire_internal::TraitsOf(op) & wire_internal::kEnds) != 0;
}
constexpr bool IsSend(Operation op) {
  return (wire_internal::TraitsOf(op) & wire_internal::kSend) != 0;
}
constexpr bool IsWrite(Operation op) {
  return (wire_internal::TraitsOf(op) & wire_internal::kWrite) != 0;
}
constexpr bool IsAtomic(Operation op) {
  return (wire_internal::TraitsOf(op) & wire_internal::kAtomic) != 0;
}
// Sent by a responder: READ responses, ACK, ATOMIC ACK.
constexpr bool IsResponse(Operation op) {
  return (wire_internal::TraitsOf(op) & wire_internal::kResponse) != 0;
}
constexpr bool IsReadResponse(Operation op) {
  return op >= Operation::kReadResponseFirst && op <= Operation::kReadResponseOnly;
}
constexpr bool HasImmediate(Operation op) {
  return (wire_internal::TraitsOf(op) & wire_internal::kHasImmediate) != 0;
}
constexpr bool HasInvalidate(Operation op) {
  return (wire_internal::TraitsOf(op) & wire_internal::kHasInvalidate) != 0;
}
constexpr bool HasReth(Operation op) {
  return (wire_internal::TraitsOf(op) & wire_internal::kHasReth) != 0;
}
constexpr bool HasAeth(Operation op) {
  return (wire_internal::TraitsOf(op) & wire_internal::kHasAeth) != 0;
}
// Takes a receive WQE at the responder: at the first packet of a SEND, at the last of a WRITE with
// immediate.
constexpr bool ConsumesReceive(Operation op) {
  return IsSend(op) ? IsFirst(op) : IsWrite(op) && HasImmediate(op);
}

namespace wire_internal {

constexpr uint8_t CountHeaderBytes(Opcode opcode) {
  if (!Known(opcode)) return 0;
  if (opcode == Opcode::kCongestionNotification) return 12 + 16;
  const Operation op = OperationOf(opcode);
  const Transport transport = TransportOf(opcode);
  int bytes = 12;
  if (transport == Transport::kUd) bytes += 8;
  if (transport == Transport::kXrc && !IsResponse(op)) bytes += 4;
  if (HasReth(op)) bytes += 16;
  if (HasImmediate(op)) bytes += 4;
  if (HasInvalidate(op)) bytes += 4;
  if (HasAeth(op)) bytes += 4;
  if (op == Operation::kAtomicAck) bytes += 8;
  if (IsAtomic(op)) bytes += 28;
  return static_cast<uint8_t>(bytes);
}

inline constexpr std::array<uint8_t, 256> kHeaderBytes = [] {
  std::array<uint8_t, 256> bytes{};
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = CountHeaderBytes(static_cast<Opcode>(i));
  return bytes;
}();

}  // namespace wire_internal

// Bytes of BTH and extension headers together, so the offset of the payload; 0 for an opcode that
// does not exist.  Extension headers come in the order XRCETH, DETH, RETH or AtomicETH, ImmDt or
// IETH; responses have AETH, then AtomicAck.
constexpr size_t HeaderBytes(Opcode opcode) {
  return wire_internal::kHeaderBytes[static_cast<uint8_t>(opcode)];
}
constexpr bool IsKnown(Opcode opcode) { return HeaderBytes(opcode) != 0; }

// Largest of all: XRC atomic request.
inline constexpr size_t kMaxHeaderBytes = 12 + 4 + 28;

}  // namespace simhca

#endif  // SIMHCA_SIM_WIRE_OPCODE_H_
