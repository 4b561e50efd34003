// Operations over a reliable connection, and how they fail.

#include <map>

#include "tests/unit/device/rc_fixture.h"

namespace simhca {
namespace {

TEST_F(RcPair, ReadWhoseResponsesNeverComeIsNotRepeatedForEachAck) {
  rig.Connect(*a, *b);
  int requests = 0;
  rig.fabric->lose = [&requests](size_t, const std::byte* bytes) {
    const Operation operation = OperationOf(Bth::Parse(bytes).opcode);
    requests += operation == Operation::kReadRequest;
    return IsReadResponse(operation);
  };
  rig.PostSend(*a, Bytes(WqeOpcode::kRdmaRead, 100));
  rig.PostSend(*a, Bytes(WqeOpcode::kRdmaWrite, 100));
  // All within no time: each repetition is followed by the ACK of the write.
  rig.hca.Poll();
  EXPECT_LE(requests, 2);
  ExpectFailed(Syndrome::kRetryExceeded);
}

TEST_F(RcPair, SendOfSeveralPacketsArrivesWhole) {
  rig.Connect(*a, *b);
  rig.Fill(0, 5000, 3);
  rig.PostReceive(*b, rig.address(kTarget), 8192, rig.key);
  rig.PostSend(*a, Bytes(WqeOpcode::kSend, 5000));
  ExpectSent(WqeOpcode::kSend);
  const auto cqe = rig.Poll(*receive_cq);
  ASSERT_TRUE(cqe);
  EXPECT_EQ(cqe->opcode(), CqeOpcode::kResponderSend);
  EXPECT_EQ(uint32_t{cqe->byte_count}, 5000u);
  EXPECT_EQ(cqe->qpn(), b->number);
  EXPECT_TRUE(rig.Holds(kTarget, 5000, 3));
}

TEST_F(RcPair, SendImmediateCarriesTheBytesAsGiven) {
  rig.Connect(*a, *b);
  rig.PostReceive(*b, rig.address(kTarget), 64, rig.key);
  Rig::Send send = Bytes(WqeOpcode::kSendImmediate, 0);
  send.immediate = 0x78563412;
  rig.PostSend(*a, send);
  const auto cqe = rig.Poll(*receive_cq);
  ASSERT_TRUE(cqe);
  EXPECT_EQ(cqe->opcode(), CqeOpcode::kResponderSendImmediate);
  EXPECT_EQ(cqe->immediate, 0x78563412u);
}

TEST_F(RcPair, WriteNeedsNoReceive) {
  rig.Connect(*a, *b);
  rig.Fill(0, 3000, 9);
  rig.PostSend(*a, Bytes(WqeOpcode::kRdmaWrite, 3000));
  ExpectSent(WqeOpcode::kRdmaWrite);
  EXPECT_TRUE(rig.Holds(kTarget, 3000, 9));
  EXPECT_FALSE(rig.Poll(*receive_cq, kMillisecond));
}

TEST_F(RcPair, WriteImmediateTakesAReceiveOnItsLastPacket) {
  rig.Connect(*a, *b);
  rig.Fill(0, 3000, 9);
  rig.PostSend(*a, Bytes(WqeOpcode::kRdmaWriteImmediate, 3000));
  EXPECT_FALSE(rig.Poll(*send_cq, kMicrosecond));
  rig.PostReceive(*b, 0, 0, rig.key);
  const auto cqe = rig.Poll(*receive_cq);
  ASSERT_TRUE(cqe);
  EXPECT_EQ(cqe->opcode(), CqeOpcode::kResponderWriteImmediate);
  EXPECT_EQ(uint32_t{cqe->byte_count}, 3000u);
  EXPECT_TRUE(rig.Holds(kTarget, 3000, 9));
}

TEST_F(RcPair, ReadBringsRemoteBytes) {
  rig.Connect(*a, *b);
  rig.Fill(kTarget, 7000, 5);
  rig.PostSend(*a, Bytes(WqeOpcode::kRdmaRead, 7000));
  ExpectSent(WqeOpcode::kRdmaRead);
  EXPECT_TRUE(rig.Holds(0, 7000, 5));
}

TEST_F(RcPair, MoreReadsThanAreAllowedInFlightAllComplete) {
  Rig::QpOptions options;
  options.rd_atomic = 1;
  rig.Connect(*a, *b, options);
  for (int i = 0; i < 10; ++i) rig.PostSend(*a, Bytes(WqeOpcode::kRdmaRead, 2500));
  for (int i = 0; i < 10; ++i) ExpectSent(WqeOpcode::kRdmaRead);
}

// Responses wait for room so long that the requester repeats READs which are still to be answered.
// Answers that came late have completed READs which were asked for again: the requester may send
// the next one while the responder still has the repetitions to answer.
// A run of packets ahead of the expected one gets one NAK, whatever else comes before the resend.
// A packet of `operation` from `a` to `b` with the `number`th PSN of the connection.
// Requests that break the rules of a message: NAK invalid request, and the queue pair is gone.
// While the requester waits, a second copy of the RNR NAK spends no retry.
TEST_F(RcPair, ReadBeforeARefusedRequestStillBringsItsBytes) {
  rig.Connect(*a, *b);
  rig.Fill(kTarget, 7000, 5);
  rig.fabric->max_in_flight = 2;  // its responses wait while the bad request arrives
  Rig::Send bad = Bytes(WqeOpcode::kRdmaWrite, 64);
  bad.rkey ^= 1;
  rig.PostSend(*a, Bytes(WqeOpcode::kRdmaRead, 7000));
  rig.PostSend(*a, bad);
  ExpectSent(WqeOpcode::kRdmaRead);
  EXPECT_TRUE(rig.Holds(0, 7000, 5));
  ExpectFailed(Syndrome::kRemoteAccess);
}

// On a link with little room no connection waits until all others have nothing to send.
TEST_F(RcPair, ConnectionsShareTheRoomOfAFullLink) {
  constexpr int kConnections = 4;
  constexpr uint32_t kBytes = 200'000;
  std::vector<std::unique_ptr<Rig::Qp>> ends;
  for (int i = 0; i < kConnections; ++i) {
    ends.push_back(rig.MakeQp(*send_cq, nullptr));
    ends.push_back(rig.MakeQp(*receive_cq, nullptr));
    rig.Connect(*ends[2 * i], *ends[2 * i + 1]);
    rig.PostReceive(*ends[2 * i + 1], rig.address(kTarget), kBytes, rig.key);
  }
  rig.fabric->max_in_flight = 0;
  std::map<uint32_t, int> packets;
  size_t counted = 0;
  rig.fabric->lose = [&](size_t, const std::byte* bytes) {
    const Bth bth = Bth::Parse(bytes);
    if (IsSend(OperationOf(bth.opcode)) && counted < 100) {
      ++counted;
      ++packets[bth.dest_qpn];
    }
    return false;
  };
  for (int i = 0; i < kConnections; ++i) {
    rig.PostSend(*ends[2 * i], Bytes(WqeOpcode::kSend, kBytes));
  }
  rig.fabric->max_in_flight = 2;
  for (int i = 0; i < kConnections; ++i) ExpectSent(WqeOpcode::kSend);
  EXPECT_EQ(packets.size(), size_t{kConnections}) << "of the first hundred, none of some";
  for (const auto& [qpn, count] : packets) EXPECT_GT(count, 10) << qpn;
}

TEST_F(RcPair, FullLinkStallsAndGoesOn) {
  rig.Connect(*a, *b);
  rig.fabric->max_in_flight = 2;
  rig.Fill(0, 100'000, 1);
  rig.PostReceive(*b, rig.address(kTarget), 100'000, rig.key);
  rig.PostSend(*a, Bytes(WqeOpcode::kSend, 100'000));
  ExpectSent(WqeOpcode::kSend);
  EXPECT_TRUE(rig.Holds(kTarget, 100'000, 1));
}

TEST_F(RcPair, UnsignalledSendsCompleteSilently) {
  rig.Connect(*a, *b);
  for (int i = 0; i < 3; ++i) rig.PostReceive(*b, rig.address(kTarget), 64, rig.key);
  Rig::Send send = Bytes(WqeOpcode::kSend, 8);
  send.flags = 0;
  rig.PostSend(*a, send);
  rig.PostSend(*a, send);
  rig.PostSend(*a, Bytes(WqeOpcode::kSend, 8));
  const auto cqe = rig.Poll(*send_cq);
  ASSERT_TRUE(cqe);
  EXPECT_EQ(uint16_t{cqe->wqe_counter}, 2u);
  EXPECT_FALSE(rig.Poll(*send_cq, kMillisecond));
}

TEST_F(RcPair, WrongRkeyIsARemoteAccessErrorAndTheRestIsFlushed) {
  rig.Connect(*a, *b);
  Rig::Send bad = Bytes(WqeOpcode::kRdmaWrite, 64);
  bad.rkey ^= 1;
  rig.PostSend(*a, bad);
  rig.PostSend(*a, Bytes(WqeOpcode::kRdmaWrite, 64));
  ExpectFailed(Syndrome::kRemoteAccess);
  ExpectFailed(Syndrome::kFlushed);
  EXPECT_EQ(rig.StateOf(*a), QpState::kErr);
  EXPECT_EQ(rig.StateOf(*b), QpState::kErr);
  EXPECT_EQ(rig.CountEvents(EventType::kAccessViolation, b->number), 1u);
}

TEST_F(RcPair, BadLkeyIsReportedAfterOlderMessagesComplete) {
  rig.Connect(*a, *b);
  rig.PostReceive(*b, rig.address(kTarget), 64, rig.key);
  rig.PostSend(*a, Bytes(WqeOpcode::kSend, 64));
  Rig::Send bad = Bytes(WqeOpcode::kSend, 64);
  bad.lkey ^= 1;
  rig.PostSend(*a, bad);
  ExpectSent(WqeOpcode::kSend);
  ExpectFailed(Syndrome::kLocalProtection);
}

TEST_F(RcPair, MessageLongerThanTheReceiveFailsBothSides) {
  rig.Connect(*a, *b);
  rig.PostReceive(*b, rig.address(kTarget), 100, rig.key);
  rig.PostReceive(*b, rig.address(kTarget), 100, rig.key);
  rig.PostSend(*a, Bytes(WqeOpcode::kSend, 101));
  ExpectFailed(Syndrome::kRemoteInvalidRequest);
  auto cqe = rig.Poll(*receive_cq);
  ASSERT_TRUE(cqe);
  EXPECT_EQ(SyndromeOf(*cqe), Syndrome::kLocalLength);
  cqe = rig.Poll(*receive_cq);
  ASSERT_TRUE(cqe);
  EXPECT_EQ(SyndromeOf(*cqe), Syndrome::kFlushed);
}

TEST_F(RcPair, PeerThatDoesNotReceiveCostsAllRetries) {
  Rig::QpOptions options;
  options.retry_count = 3;
  options.timeout = 10;
  rig.Connect(*a, *b, options);
  QpAttributes reset;
  ASSERT_EQ(rig.Modify(*b, qp_mask::kState, reset), 0);
  const Time start = rig.hca.Now();
  rig.PostSend(*a, Bytes(WqeOpcode::kSend, 8));
  ExpectFailed(Syndrome::kRetryExceeded);
  EXPECT_EQ(rig.progress.counters.Get(Counter::kTimeouts), 4u);
  EXPECT_EQ(rig.progress.counters.Get(Counter::kRetransmissions), 3u);
  EXPECT_GE(rig.hca.Now() - start, 4 * AckTimeout(10));
}

TEST_F(RcPair, NoReceiveAndNoRnrRetryFailsTheSender) {
  Rig::QpOptions options;
  options.rnr_retry = 0;
  rig.Connect(*a, *b, options);
  rig.PostSend(*a, Bytes(WqeOpcode::kSend, 8));
  ExpectFailed(Syndrome::kRnrRetryExceeded);
  EXPECT_EQ(rig.StateOf(*b), QpState::kRts);
}

TEST_F(RcPair, RnrRetriesAreCounted) {
  Rig::QpOptions options;
  options.rnr_retry = 4;
  rig.Connect(*a, *b, options);
  rig.PostSend(*a, Bytes(WqeOpcode::kSend, 8));
  ExpectFailed(Syndrome::kRnrRetryExceeded);
  EXPECT_EQ(rig.progress.counters.Get(Counter::kRnrNaksSent), 5u);
}

TEST_F(RcPair, RnrTimerZeroStallsForItsLongTime) {
  Rig::QpOptions options;
  options.min_rnr_timer = 0;
  rig.Connect(*a, *b, options);
  const Time start = rig.hca.Now();
  rig.PostSend(*a, Bytes(WqeOpcode::kSend, 8));
  while (rig.hca.Now() < start + kMillisecond) rig.hca.Poll();
  rig.PostReceive(*b, rig.address(kTarget), 64, rig.key);
  ExpectSent(WqeOpcode::kSend);
  EXPECT_EQ((rig.hca.Now() - start) / (10 * kMicrosecond), 65536);
}

TEST_F(RcPair, MalformedWqeIsAQpOperationError) {
  rig.Connect(*a, *b);
  rig.PostSend(*a, Bytes(static_cast<WqeOpcode>(0x3f), 8));
  ExpectFailed(Syndrome::kLocalQpOperation);
}

TEST_F(RcPair, SendQueueWrapsManyTimes) {
  rig.Connect(*a, *b);
  for (uint32_t i = 0; i < 5 * Rig::kSendBlocks; ++i) {
    rig.PostReceive(*b, rig.address(kTarget), 64, rig.key);
    rig.PostSend(*a, Bytes(WqeOpcode::kSend, 8));
    ExpectSent(WqeOpcode::kSend);
    ASSERT_TRUE(rig.Poll(*receive_cq));
  }
}

TEST_F(RcPair, ErrorStateFlushesWhatIsPostedLater) {
  rig.Connect(*a, *b);
  QpAttributes error;
  error.state = QpState::kErr;
  ASSERT_EQ(rig.Modify(*a, qp_mask::kState, error), 0);
  rig.PostSend(*a, Bytes(WqeOpcode::kSend, 8));
  ExpectFailed(Syndrome::kFlushed);
  rig.PostReceive(*a, rig.address(kTarget), 64, rig.key);
  const auto cqe = rig.Poll(*send_cq);
  ASSERT_TRUE(cqe);
  EXPECT_EQ(cqe->opcode(), CqeOpcode::kResponderError);
  EXPECT_EQ(SyndromeOf(*cqe), Syndrome::kFlushed);
}

}  // namespace
}  // namespace simhca
