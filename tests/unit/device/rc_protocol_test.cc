// What a reliable connection makes of lost, repeated and wrong packets.

#include <deque>
#include <memory>

#include "tests/unit/device/rc_fixture.h"

namespace simhca {
namespace {

std::vector<std::byte> RequestPacket(const Rig::Qp& to, Operation operation, uint32_t number,
                                     uint32_t payload) {
  const Opcode opcode = MakeOpcode(Transport::kRc, operation);
  std::vector<std::byte> bytes(HeaderBytes(opcode) + payload);
  Bth bth;
  bth.opcode = opcode;
  bth.dest_qpn = to.number;
  bth.psn = PsnAdd(Rig::QpOptions{}.psn, number);
  bth.ack_request = true;
  bth.Emit(bytes.data());
  return bytes;
}

TEST_F(RcPair, LostPacketsAreSentAgain) {
  std::deque<std::unique_ptr<Rig::Qp>> pairs;  // the device keeps using their rings
  for (const Operation lost :
       {Operation::kSendFirst, Operation::kSendMiddle, Operation::kSendLast, Operation::kAck}) {
    SCOPED_TRACE(static_cast<int>(lost));
    auto& x = pairs.emplace_back(rig.MakeQp(*send_cq, nullptr));
    auto& y = pairs.emplace_back(rig.MakeQp(*receive_cq, nullptr));
    rig.Connect(*x, *y);
    LoseFirst(lost);
    rig.Fill(0, 5000, 4);
    rig.PostReceive(*y, rig.address(kTarget), 8192, rig.key);
    rig.PostSend(*x, Bytes(WqeOpcode::kSend, 5000));
    ExpectSent(WqeOpcode::kSend);
    ASSERT_TRUE(rig.Poll(*receive_cq));
    EXPECT_FALSE(rig.Poll(*receive_cq, kMillisecond)) << "delivered twice";
    EXPECT_TRUE(rig.Holds(kTarget, 5000, 4));
  }
  EXPECT_EQ(losses, 4);
}

TEST_F(RcPair, LostReadPacketsAreSentAgain) {
  std::deque<std::unique_ptr<Rig::Qp>> pairs;  // the device keeps using their rings
  for (const Operation lost : {Operation::kReadRequest, Operation::kReadResponseFirst,
                               Operation::kReadResponseMiddle, Operation::kReadResponseLast}) {
    SCOPED_TRACE(static_cast<int>(lost));
    auto& x = pairs.emplace_back(rig.MakeQp(*send_cq, nullptr));
    auto& y = pairs.emplace_back(rig.MakeQp(*receive_cq, nullptr));
    rig.Connect(*x, *y);
    LoseFirst(lost);
    rig.Fill(kTarget, 7000, 5);
    rig.Fill(0, 7000, 99);
    rig.PostSend(*x, Bytes(WqeOpcode::kRdmaRead, 7000));
    rig.PostSend(*x, Bytes(WqeOpcode::kRdmaRead, 7000));
    ExpectSent(WqeOpcode::kRdmaRead);
    ExpectSent(WqeOpcode::kRdmaRead);
    EXPECT_TRUE(rig.Holds(0, 7000, 5));
  }
  EXPECT_EQ(losses, 4);
}

TEST_F(RcPair, RepeatedReadsThatWaitForRoomAreAnsweredOnce) {
  Rig::QpOptions options;
  options.timeout = 1;
  options.rd_atomic = 4;
  rig.Connect(*a, *b, options);
  rig.Fill(kTarget, 7000, 5);
  for (int i = 0; i < 8; ++i) rig.PostSend(*a, Bytes(WqeOpcode::kRdmaRead, 7000));
  // A link that is closed for most of the time.
  for (int round = 0; round < 40; ++round) {
    rig.fabric->max_in_flight = round % 4 == 3 ? 3 : 0;
    const Time end = rig.hca.Now() + 5 * kMicrosecond;
    while (rig.hca.Now() < end) rig.hca.Poll();
  }
  rig.fabric->max_in_flight = 1000;
  for (int i = 0; i < 8; ++i) ExpectSent(WqeOpcode::kRdmaRead);
  EXPECT_TRUE(rig.Holds(0, 7000, 5));
  EXPECT_EQ(rig.StateOf(*b), QpState::kRts);
}

TEST_F(RcPair, ANewReadTakesThePlaceOfARepeatedOne) {
  Rig::QpOptions options;
  options.rd_atomic = 4;
  rig.Connect(*a, *b, options);
  const auto read = [&](uint32_t number) {
    std::vector<std::byte> bytes(Bth::kSize + Reth::kSize);
    Bth bth;
    bth.opcode = MakeOpcode(Transport::kRc, Operation::kReadRequest);
    bth.dest_qpn = b->number;
    bth.psn = PsnAdd(options.psn, number);
    bth.Emit(bytes.data());
    Reth{rig.address(kTarget), rig.key, 8}.Emit(bytes.data() + Bth::kSize);
    rig.fabric->Inject({}, bytes);
  };
  for (uint32_t i = 0; i < 4; ++i) read(i);
  rig.hca.Poll();
  for (uint32_t i = 0; i < 5; ++i) read(i);
  rig.hca.Poll();
  EXPECT_EQ(rig.StateOf(*b), QpState::kRts);
  EXPECT_EQ(rig.progress.counters.Get(Counter::kNaksSent), 0u);
  // Five that are all new are one too many.
  for (uint32_t i = 5; i < 10; ++i) read(i);
  rig.hca.Poll();
  EXPECT_EQ(rig.StateOf(*b), QpState::kErr);
  EXPECT_EQ(rig.CountEvents(EventType::kInvalidRequest, b->number), 1u);
}

TEST_F(RcPair, PacketsAheadOfALostOneGetOneNak) {
  rig.Connect(*a, *b);
  LoseFirst(Operation::kSendFirst);
  rig.Fill(0, 15'000, 4);
  rig.PostReceive(*b, rig.address(kTarget), 16'000, rig.key);
  rig.PostSend(*a, Bytes(WqeOpcode::kSend, 15'000));
  ExpectSent(WqeOpcode::kSend);
  EXPECT_TRUE(rig.Holds(kTarget, 15'000, 4));
  EXPECT_EQ(rig.progress.counters.Get(Counter::kNaksSent), 1u);
  EXPECT_EQ(rig.progress.counters.Get(Counter::kRetransmissions), 1u);
  EXPECT_EQ(rig.progress.counters.Get(Counter::kTimeouts), 0u);
}

TEST_F(RcPair, DuplicateWriteIsAcknowledgedAndTouchesNothing) {
  rig.Connect(*a, *b);
  rig.Fill(0, 64, 1);
  rig.PostSend(*a, Bytes(WqeOpcode::kRdmaWrite, 64));
  ExpectSent(WqeOpcode::kRdmaWrite);
  rig.Fill(kTarget, 64, 2);
  std::vector<std::byte> again = RequestPacket(*b, Operation::kWriteOnly, 0, 64);
  Reth{rig.address(kTarget), rig.key, 64}.Emit(again.data() + Bth::kSize);
  const uint64_t sent = rig.progress.counters.Get(Counter::kPacketsSent);
  rig.fabric->Inject({}, again);
  rig.hca.Poll();
  EXPECT_TRUE(rig.Holds(kTarget, 64, 2));
  EXPECT_EQ(rig.progress.counters.Get(Counter::kDuplicates), 1u);
  EXPECT_EQ(rig.progress.counters.Get(Counter::kPacketsSent), sent + 1) << "the ACK";
}

TEST_F(RcPair, DuplicateSendTakesNoReceive) {
  rig.Connect(*a, *b);
  rig.PostReceive(*b, rig.address(kTarget), 64, rig.key);
  rig.PostReceive(*b, rig.address(kTarget), 64, rig.key);
  rig.PostSend(*a, Bytes(WqeOpcode::kSend, 8));
  ExpectSent(WqeOpcode::kSend);
  ASSERT_TRUE(rig.Poll(*receive_cq));
  rig.fabric->Inject({}, RequestPacket(*b, Operation::kSendOnly, 0, 8));
  EXPECT_FALSE(rig.Poll(*receive_cq, kMillisecond));
}

TEST_F(RcPair, RequestsOutOfSequenceAreInvalid) {
  std::deque<std::unique_ptr<Rig::Qp>> pairs;  // the device keeps using their rings
  struct Case {
    const char* what;
    Operation operation;
    uint32_t payload;
  };
  for (const Case& bad : {Case{"a middle without a first", Operation::kSendMiddle, 1024},
                          Case{"a last without a first", Operation::kWriteLast, 8},
                          Case{"a first that is short", Operation::kSendFirst, 1000},
                          Case{"an only that is long", Operation::kSendOnly, 1028},
                          Case{"an atomic", Operation::kFetchAdd, 0},
                          Case{"a READ with a payload", Operation::kReadRequest, 4}}) {
    SCOPED_TRACE(bad.what);
    auto& x = pairs.emplace_back(rig.MakeQp(*send_cq, nullptr));
    auto& y = pairs.emplace_back(rig.MakeQp(*receive_cq, nullptr));
    rig.Connect(*x, *y);
    const uint64_t naks = rig.progress.counters.Get(Counter::kNaksSent);
    rig.fabric->Inject({}, RequestPacket(*y, bad.operation, 0, bad.payload));
    rig.hca.Poll();
    EXPECT_EQ(rig.StateOf(*y), QpState::kErr);
    EXPECT_EQ(rig.CountEvents(EventType::kInvalidRequest, y->number), 1u);
    EXPECT_EQ(rig.progress.counters.Get(Counter::kNaksSent), naks + 1);
    for (Rig::Qp* qp : {x.get(), y.get()}) {
      ReleasedWqe released;
      ASSERT_EQ(rig.hca.DestroyQp(qp->number, &released), 0);
    }
  }
}

TEST_F(RcPair, AnswersThatMeanNothingAreBadResponses) {
  rig.Connect(*a, *b);
  rig.fabric->lose = [](size_t, const std::byte*) { return true; };
  rig.PostSend(*a, Bytes(WqeOpcode::kSend, 8));
  rig.Poll(*send_cq, 5 * kMicrosecond);  // until it has left
  rig.fabric->lose = nullptr;
  std::vector<std::byte> answer = RequestPacket(*a, Operation::kAck, 0, 0);
  Aeth{0x7f, 0}.Emit(answer.data() + Bth::kSize);
  rig.fabric->Inject({}, answer);
  ExpectFailed(Syndrome::kBadResponse);
  EXPECT_EQ(rig.StateOf(*a), QpState::kErr);
}

TEST_F(RcPair, AnswersToWhatWasNeverSentAreIgnored) {
  rig.Connect(*a, *b);
  for (const uint32_t number : {0u, 1u, 1000u}) {
    std::vector<std::byte> answer = RequestPacket(*a, Operation::kAck, number, 0);
    Aeth{syndrome::kNakRemoteAccess, 0}.Emit(answer.data() + Bth::kSize);
    rig.fabric->Inject({}, answer);
  }
  rig.hca.Poll();
  EXPECT_EQ(rig.StateOf(*a), QpState::kRts);
  rig.PostReceive(*b, rig.address(kTarget), 64, rig.key);
  rig.PostSend(*a, Bytes(WqeOpcode::kSend, 8));
  ExpectSent(WqeOpcode::kSend);
}

TEST_F(RcPair, ADuplicateRnrNakCostsNothing) {
  Rig::QpOptions options;
  options.rnr_retry = 1;
  rig.Connect(*a, *b, options);
  rig.PostSend(*a, Bytes(WqeOpcode::kSend, 8));
  rig.Poll(*send_cq, 10 * kMicrosecond);
  ASSERT_EQ(rig.progress.counters.Get(Counter::kRnrNaksReceived), 1u);
  std::vector<std::byte> answer = RequestPacket(*a, Operation::kAck, 0, 0);
  Aeth{syndrome::RnrNak(12), 0}.Emit(answer.data() + Bth::kSize);
  for (int i = 0; i < 3; ++i) rig.fabric->Inject({}, answer);
  rig.hca.Poll();
  rig.PostReceive(*b, rig.address(kTarget), 64, rig.key);
  ExpectSent(WqeOpcode::kSend);
}

TEST_F(RcPair, RandomLossLosesAndRepeatsNothing) {
  uint32_t random = 12345;
  rig.fabric->lose = [&random](size_t, const std::byte*) {
    random = random * 1664525 + 1013904223;
    return (random >> 24) < 25;  // one in ten
  };
  Rig::QpOptions options;
  options.retry_count = 7;
  rig.Connect(*a, *b, options);
  uint32_t expected = 0;
  for (int round = 0; round < 100; ++round) {
    const uint32_t length = 1 + round * 37 % 4000;
    rig.Fill(0, length, static_cast<uint8_t>(round));
    rig.PostReceive(*b, rig.address(kTarget), 4096, rig.key);
    rig.PostSend(*a, Bytes(WqeOpcode::kSend, length));
    ExpectSent(WqeOpcode::kSend);
    const auto cqe = rig.Poll(*receive_cq);
    ASSERT_TRUE(cqe);
    EXPECT_EQ(uint16_t{cqe->wqe_counter}, expected++ % Rig::kReceiveEntries);
    ASSERT_TRUE(rig.Holds(kTarget, length, static_cast<uint8_t>(round)));
  }
}

}  // namespace
}  // namespace simhca
