#include "sim/wire/headers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace simhca {
namespace {

// What Emit writes, in hexadecimal; the bytes around it must stay as they are.
template <typename Header>
std::string Emitted(const Header& header) {
  std::vector<std::byte> bytes(Header::kSize + 2, std::byte{0xcc});
  header.Emit(bytes.data() + 1);
  EXPECT_EQ(bytes.front(), std::byte{0xcc});
  EXPECT_EQ(bytes.back(), std::byte{0xcc});
  std::string hex;
  for (size_t i = 1; i <= Header::kSize; ++i) {
    char text[3];
    std::snprintf(text, sizeof(text), "%02x", static_cast<unsigned>(bytes[i]));
    hex += text;
  }
  return hex;
}

std::vector<std::byte> FromHex(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

TEST(BthTest, FieldsLieWhereTheWireHasThem) {
  Bth bth;
  bth.opcode = MakeOpcode(Transport::kUc, Operation::kSendOnly);
  bth.solicited = true;
  bth.pad = 2;
  bth.pkey = 0x8001;
  bth.becn = true;
  bth.dest_qpn = 0x0000d3;
  bth.ack_request = true;
  bth.psn = 0xcf15f0;
  EXPECT_EQ(Emitted(bth), "24e08001400000d380cf15f0");
}

TEST(BthTest, ParseReadsWhatEmitWrote) {
  const std::vector<std::byte> bytes = FromHex("6aa3123480abcdef01fedcba");
  const Bth bth = Bth::Parse(bytes.data());
  EXPECT_EQ(TransportOf(bth.opcode), Transport::kUd);
  EXPECT_EQ(OperationOf(bth.opcode), Operation::kWriteOnly);
  EXPECT_TRUE(bth.solicited);
  EXPECT_FALSE(bth.migrated);
  EXPECT_EQ(bth.pad, 2);
  EXPECT_EQ(bth.version, 3);
  EXPECT_EQ(bth.pkey, 0x1234);
  EXPECT_TRUE(bth.fecn);
  EXPECT_FALSE(bth.becn);
  EXPECT_EQ(bth.dest_qpn, 0xabcdefu);
  EXPECT_FALSE(bth.ack_request);
  EXPECT_EQ(bth.psn, 0xfedcbau);
  EXPECT_EQ(Emitted(bth), "6aa3123480abcdef00fedcba");  // reserved bits are sent as zero
}

TEST(BthTest, NumbersWiderThanTheirFieldsDoNotSpill) {
  Bth bth;
  bth.dest_qpn = 0xff000001;
  bth.psn = 0xff000002;
  EXPECT_EQ(Emitted(bth), "0040ffff0000000100000002");
}

TEST(ExtensionHeaderTest, FieldsLieWhereTheWireHasThem) {
  EXPECT_EQ(Emitted(Reth{0x0102030405060708, 0x0a0b0c0d, 0x80000000}),
            "01020304050607080a0b0c0d80000000");
  EXPECT_EQ(Emitted(Aeth{syndrome::kNakSequence, 0xff010203}), "60010203");
  EXPECT_EQ(Emitted(Ieth{0x01020304}), "01020304");
  EXPECT_EQ(Emitted(Deth{0x11111111, 0x00abcdef}), "1111111100abcdef");
  EXPECT_EQ(
      Emitted(AtomicEth{0x0102030405060708, 0x0a0b0c0d, 0x1112131415161718, 0x2122232425262728}),
      "01020304050607080a0b0c0d11121314151617182122232425262728");
  EXPECT_EQ(Emitted(AtomicAck{0x0102030405060708}), "0102030405060708");
  EXPECT_EQ(Emitted(XrcEth{0xff123456}), "00123456");
}

TEST(ExtensionHeaderTest, ParseReadsWhatEmitWrote) {
  const std::vector<std::byte> bytes =
      FromHex("01020304050607080a0b0c0d11121314151617182122232425262728");
  const Reth reth = Reth::Parse(bytes.data());
  EXPECT_EQ(reth.address, 0x0102030405060708u);
  EXPECT_EQ(reth.rkey, 0x0a0b0c0du);
  EXPECT_EQ(reth.length, 0x11121314u);
  const AtomicEth atomic = AtomicEth::Parse(bytes.data());
  EXPECT_EQ(atomic.swap_or_add, 0x1112131415161718u);
  EXPECT_EQ(atomic.compare, 0x2122232425262728u);
  const Deth deth = Deth::Parse(bytes.data());
  EXPECT_EQ(deth.qkey, 0x01020304u);
  EXPECT_EQ(deth.source_qpn, 0x060708u);
  const Aeth aeth = Aeth::Parse(bytes.data());
  EXPECT_EQ(aeth.syndrome, 0x01);
  EXPECT_EQ(aeth.msn, 0x020304u);
  EXPECT_EQ(Ieth::Parse(bytes.data()).rkey, 0x01020304u);
  EXPECT_EQ(AtomicAck::Parse(bytes.data()).original, 0x0102030405060708u);
  EXPECT_EQ(XrcEth::Parse(bytes.data()).srqn, 0x020304u);
}

TEST(ExtensionHeaderTest, ImmediateKeepsTheProgramsBytes) {
  const std::vector<std::byte> bytes = FromHex("deadbeef");
  const ImmDt immediate = ImmDt::Parse(bytes.data());
  EXPECT_EQ(std::memcmp(&immediate.data, bytes.data(), 4), 0);
  EXPECT_EQ(Emitted(immediate), "deadbeef");
}

TEST(SyndromeTest, KindsAndRnrCodes) {
  EXPECT_EQ(syndrome::KindOf(syndrome::kAck), syndrome::Kind::kAck);
  EXPECT_EQ(syndrome::KindOf(0x00), syndrome::Kind::kAck);
  EXPECT_EQ(syndrome::KindOf(syndrome::kNakRemoteAccess), syndrome::Kind::kNak);
  EXPECT_EQ(syndrome::KindOf(0x40), syndrome::Kind::kReserved);
  for (int code = 0; code < 32; ++code) {
    const uint8_t nak = syndrome::RnrNak(static_cast<uint8_t>(code));
    EXPECT_EQ(syndrome::KindOf(nak), syndrome::Kind::kRnrNak);
    EXPECT_EQ(syndrome::RnrTimerCode(nak), code);
  }
}

TEST(OpcodeTest, OnTheWireAsPublished) {
  EXPECT_EQ(static_cast<int>(MakeOpcode(Transport::kRc, Operation::kSendOnly)), 0x04);
  EXPECT_EQ(static_cast<int>(MakeOpcode(Transport::kUc, Operation::kWriteOnly)), 0x2a);
  EXPECT_EQ(static_cast<int>(MakeOpcode(Transport::kUd, Operation::kSendOnlyImmediate)), 0x65);
  EXPECT_EQ(static_cast<int>(MakeOpcode(Transport::kXrc, Operation::kFetchAdd)), 0xb4);
}

TEST(OpcodeTest, EachTransportHasItsOperationsOnly) {
  int known[8] = {};
  for (int i = 0; i < 256; ++i) known[i >> 5] += IsKnown(static_cast<Opcode>(i)) ? 1 : 0;
  EXPECT_EQ(known[0], 23);  // RC
  EXPECT_EQ(known[1], 12);  // UC
  EXPECT_EQ(known[2], 0);   // RD
  EXPECT_EQ(known[3], 2);   // UD
  EXPECT_EQ(known[4], 1);   // congestion notification
  EXPECT_EQ(known[5], 23);  // XRC
  EXPECT_EQ(known[6] + known[7], 0);
  EXPECT_FALSE(IsKnown(MakeOpcode(Transport::kUc, Operation::kReadRequest)));
  EXPECT_FALSE(IsKnown(MakeOpcode(Transport::kUd, Operation::kSendFirst)));
}

TEST(OpcodeTest, HeaderBytesIncludeEveryExtensionHeader) {
  const auto bytes = [](Transport transport, Operation operation) {
    return HeaderBytes(MakeOpcode(transport, operation));
  };
  EXPECT_EQ(bytes(Transport::kRc, Operation::kSendMiddle), 12u);
  EXPECT_EQ(bytes(Transport::kRc, Operation::kSendLastImmediate), 16u);
  EXPECT_EQ(bytes(Transport::kRc, Operation::kSendOnlyInvalidate), 16u);
  EXPECT_EQ(bytes(Transport::kRc, Operation::kWriteOnlyImmediate), 32u);
  EXPECT_EQ(bytes(Transport::kRc, Operation::kReadRequest), 28u);
  EXPECT_EQ(bytes(Transport::kRc, Operation::kReadResponseMiddle), 12u);
  EXPECT_EQ(bytes(Transport::kRc, Operation::kReadResponseOnly), 16u);
  EXPECT_EQ(bytes(Transport::kRc, Operation::kAck), 16u);
  EXPECT_EQ(bytes(Transport::kRc, Operation::kAtomicAck), 24u);
  EXPECT_EQ(bytes(Transport::kRc, Operation::kCompareSwap), 40u);
  EXPECT_EQ(bytes(Transport::kUd, Operation::kSendOnlyImmediate), 24u);
  EXPECT_EQ(bytes(Transport::kXrc, Operation::kCompareSwap), kMaxHeaderBytes);
  EXPECT_EQ(bytes(Transport::kXrc, Operation::kAck), 16u);
  for (int i = 0; i < 256; ++i) EXPECT_LE(HeaderBytes(static_cast<Opcode>(i)), kMaxHeaderBytes);
}

TEST(OpcodeTest, ReceiveIsTakenAtTheFirstOfASendAndTheLastOfAWriteWithImmediate) {
  EXPECT_TRUE(ConsumesReceive(Operation::kSendFirst));
  EXPECT_TRUE(ConsumesReceive(Operation::kSendOnlyInvalidate));
  EXPECT_FALSE(ConsumesReceive(Operation::kSendLastImmediate));
  EXPECT_FALSE(ConsumesReceive(Operation::kWriteFirst));
  EXPECT_TRUE(ConsumesReceive(Operation::kWriteLastImmediate));
  EXPECT_TRUE(ConsumesReceive(Operation::kWriteOnlyImmediate));
  EXPECT_FALSE(ConsumesReceive(Operation::kReadRequest));
}

TEST(PsnTest, DistanceIsSignedOnTheCircle) {
  EXPECT_EQ(PsnDistance(5, 3), 2);
  EXPECT_EQ(PsnDistance(3, 5), -2);
  EXPECT_EQ(PsnDistance(1, 0xffffff), 2);
  EXPECT_EQ(PsnDistance(0xffffff, 1), -2);
  EXPECT_EQ(PsnDistance(0x800000, 0), -0x800000);
  EXPECT_EQ(PsnAdd(0xffffff, 1), 0u);
  EXPECT_EQ(PsnSubtract(0, 1), 0xffffffu);
}

TEST(TimersTest, AllRnrDelaysAsPublished) {
  constexpr double kMilliseconds[32] = {
      655.36, 0.01,  0.02,  0.03,  0.04,  0.06,   0.08,   0.12,   0.16,   0.24,  0.32,
      0.48,   0.64,  0.96,  1.28,  1.92,  2.56,   3.84,   5.12,   7.68,   10.24, 15.36,
      20.48,  30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52};
  for (int code = 0; code < 32; ++code) {
    EXPECT_EQ(RnrDelay(static_cast<uint8_t>(code)) / (10 * kMicrosecond),
              static_cast<int64_t>(kMilliseconds[code] * 100 + 0.5))
        << code;
  }
}

TEST(TimersTest, AckTimeoutDoublesWithItsCode) {
  EXPECT_EQ(AckTimeout(0), kNever);
  EXPECT_EQ(AckTimeout(1), 8192 * kNanosecond);
  EXPECT_EQ(AckTimeout(14), 67'108'864 * kNanosecond);
  EXPECT_EQ(AckTimeout(31), int64_t{4096} * (int64_t{1} << 31) * kNanosecond);
}

TEST(TimersTest, PathMtuCodes) {
  for (uint8_t code = 1; code <= 5; ++code) EXPECT_EQ(PathMtuCode(PathMtuBytes(code)), code);
  EXPECT_EQ(PathMtuBytes(5), 4096u);
  EXPECT_EQ(PathMtuBytes(0), 0u);
  EXPECT_EQ(PathMtuBytes(6), 0u);
  EXPECT_EQ(PathMtuCode(1500 - 60), 3);
  EXPECT_EQ(PathMtuCode(255), 0);
  EXPECT_EQ(PathMtuCode(9000), 5);
}

}  // namespace
}  // namespace simhca
