// RC over a link that delivers at once, or loses what the test chooses.

#include <gtest/gtest.h>

#include "sim/wire/headers.h"
#include "tests/unit/device/rig.h"

namespace simhca {
namespace {

using mlx5::CqeOpcode;
using mlx5::EventType;
using mlx5::Syndrome;
using mlx5::WqeOpcode;

constexpr uint32_t kTarget = 512 * 1024;  // offset in the arena that messages go to

class RcTest : public ::testing::Test {
 protected:
  explicit RcTest(const DeviceProfile& profile = Rig::GenericProfile()) : rig(profile) {}

  Rig rig;
  std::unique_ptr<Rig::Cq> send_cq = rig.MakeCq();
  std::unique_ptr<Rig::Cq> receive_cq = rig.MakeCq();
  int losses = 0;

  Rig::Send Bytes(WqeOpcode opcode, uint32_t length) {
    Rig::Send send;
    send.opcode = opcode;
    send.address = rig.address(0);
    send.length = length;
    send.lkey = rig.key;
    send.remote_address = rig.address(kTarget);
    send.rkey = rig.key;
    return send;
  }

  void ExpectSent(WqeOpcode opcode) {
    const auto cqe = rig.Poll(*send_cq);
    ASSERT_TRUE(cqe) << "no completion at the sender";
    ASSERT_EQ(cqe->opcode(), CqeOpcode::kRequester);
    EXPECT_EQ(cqe->send_opcode(), opcode);
  }
  void ExpectFailed(Syndrome syndrome) {
    const auto cqe = rig.Poll(*send_cq, 60 * kSecond);
    ASSERT_TRUE(cqe) << "no completion at the sender";
    ASSERT_EQ(cqe->opcode(), CqeOpcode::kRequesterError);
    EXPECT_EQ(SyndromeOf(*cqe), syndrome);
  }
  // Loses the first packet with this operation, once.
  void LoseFirst(Operation operation) {
    rig.fabric->lose = [this, operation, lost = false](size_t, const std::byte* bytes) mutable {
      if (lost || OperationOf(Bth::Parse(bytes).opcode) != operation) return false;
      lost = true;
      ++losses;
      return true;
    };
  }
};

class RcPair : public RcTest {
 protected:
  RcPair() {
    a = rig.MakeQp(*send_cq, nullptr);
    b = rig.MakeQp(*receive_cq, nullptr);
  }
  std::unique_ptr<Rig::Qp> a, b;
};

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

TEST_F(RcPair, LostPacketsAreSentAgain) {
  for (const Operation lost :
       {Operation::kSendFirst, Operation::kSendMiddle, Operation::kSendLast, Operation::kAck}) {
    SCOPED_TRACE(static_cast<int>(lost));
    auto x = rig.MakeQp(*send_cq, nullptr), y = rig.MakeQp(*receive_cq, nullptr);
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
  for (const Operation lost : {Operation::kReadRequest, Operation::kReadResponseFirst,
                               Operation::kReadResponseMiddle, Operation::kReadResponseLast}) {
    SCOPED_TRACE(static_cast<int>(lost));
    auto x = rig.MakeQp(*send_cq, nullptr), y = rig.MakeQp(*receive_cq, nullptr);
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

// Responses wait for room so long that the requester repeats READs which are still to be answered.
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

// Answers that came late have completed READs which were asked for again: the requester may send
// the next one while the responder still has the repetitions to answer.
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

class SrqTest : public RcTest {
 protected:
  using RcTest::RcTest;

  void Modify(std::optional<uint32_t> limit) {
    ModifySrqCommand command{};
    command.srq = srq->number;
    command.set_limit = limit.has_value();
    command.limit = limit.value_or(0);
    ASSERT_EQ(rig.hca.ModifySrq(command), 0);
  }
  uint32_t Limit() {
    uint32_t limit = ~0u;
    EXPECT_EQ(rig.hca.QuerySrqLimit(srq->number, &limit), 0);
    return limit;
  }
  void Post(int count) {
    for (int i = 0; i < count; ++i) rig.PostSrq(*srq, rig.address(kTarget), 64, rig.key);
  }
  void SendAndWait(int count) {
    for (int i = 0; i < count; ++i) {
      rig.PostSend(*a, Bytes(WqeOpcode::kSend, 8));
      ExpectSent(WqeOpcode::kSend);
    }
  }

  std::unique_ptr<Rig::Srq> srq = rig.MakeSrq();
  std::unique_ptr<Rig::Qp> a = rig.MakeQp(*send_cq, nullptr);
  std::unique_ptr<Rig::Qp> b = rig.MakeQp(*receive_cq, srq.get());
};

TEST_F(SrqTest, LimitEventFiresOnceBelowTheLimit) {
  rig.Connect(*a, *b);
  Post(10);
  Modify(7);
  EXPECT_EQ(Limit(), 7u);
  SendAndWait(3);
  EXPECT_EQ(rig.CountEvents(EventType::kSrqLimit, srq->number), 0u);
  SendAndWait(1);
  EXPECT_EQ(rig.CountEvents(EventType::kSrqLimit, srq->number), 1u);
  EXPECT_EQ(Limit(), 0u);
  SendAndWait(3);
  EXPECT_EQ(rig.CountEvents(EventType::kSrqLimit, srq->number), 1u);
}

TEST_F(SrqTest, ArmingAboveTheFillFiresAtOnce) {
  Post(2);
  Modify(3);
  EXPECT_EQ(rig.CountEvents(EventType::kSrqLimit, srq->number), 1u);
  EXPECT_EQ(Limit(), 0u);
}

// A device that looks at the limit only when a receive takes an entry.
class LateLimitTest : public SrqTest {
 protected:
  LateLimitTest() : SrqTest(Profile()) {}
  static DeviceProfile Profile() {
    DeviceProfile profile = Rig::GenericProfile();
    profile.features.limit_event_at_once = false;
    return profile;
  }
};

TEST_F(LateLimitTest, ArmingAboveTheFillFiresAtTheNextReceive) {
  rig.Connect(*a, *b);
  Post(2);
  Modify(3);
  EXPECT_EQ(rig.CountEvents(EventType::kSrqLimit, srq->number), 0u);
  EXPECT_EQ(Limit(), 3u);
  SendAndWait(1);
  EXPECT_EQ(rig.CountEvents(EventType::kSrqLimit, srq->number), 1u);
  EXPECT_EQ(Limit(), 0u);
}

TEST_F(SrqTest, LastWqeEventFollowsTheErrorOfAQueuePairOnTheSrq) {
  rig.Connect(*a, *b);
  Post(4);
  QpAttributes error;
  error.state = QpState::kErr;
  ASSERT_EQ(rig.Modify(*b, qp_mask::kState, error), 0);
  EXPECT_EQ(rig.CountEvents(EventType::kSrqLastWqe, b->number), 1u);
  EXPECT_FALSE(rig.Poll(*receive_cq, kMillisecond)) << "an unclaimed WQE was taken";
}

TEST_F(SrqTest, ClaimedWqeIsFlushedWithItsQueuePair) {
  rig.Connect(*a, *b);
  Post(2);
  // The message stays open: its last packet never arrives.
  rig.fabric->lose = [](size_t, const std::byte* bytes) {
    return OperationOf(Bth::Parse(bytes).opcode) == Operation::kSendLast;
  };
  rig.PostSrq(*srq, rig.address(kTarget), 4096, rig.key);
  rig.PostSend(*a, Bytes(WqeOpcode::kSend, 8));
  ExpectSent(WqeOpcode::kSend);
  ASSERT_TRUE(rig.Poll(*receive_cq));
  rig.PostSend(*a, Bytes(WqeOpcode::kSend, 8));
  ExpectSent(WqeOpcode::kSend);
  ASSERT_TRUE(rig.Poll(*receive_cq));
  rig.PostSend(*a, Bytes(WqeOpcode::kSend, 2000));
  rig.Poll(*send_cq, 10 * kMicrosecond);
  QpAttributes error;
  error.state = QpState::kErr;
  ASSERT_EQ(rig.Modify(*b, qp_mask::kState, error), 0);
  const auto cqe = rig.Poll(*receive_cq);
  ASSERT_TRUE(cqe);
  EXPECT_EQ(SyndromeOf(*cqe), Syndrome::kFlushed);
  EXPECT_EQ(uint16_t{cqe->wqe_counter}, 2u);
}

TEST_F(SrqTest, DestroyGivesAClaimedWqeBack) {
  rig.Connect(*a, *b);
  rig.fabric->lose = [](size_t, const std::byte* bytes) {
    return OperationOf(Bth::Parse(bytes).opcode) == Operation::kSendLast;
  };
  rig.PostSrq(*srq, rig.address(kTarget), 4096, rig.key);
  rig.PostSend(*a, Bytes(WqeOpcode::kSend, 2000));
  rig.Poll(*send_cq, 10 * kMicrosecond);
  ReleasedWqe released;
  ASSERT_EQ(rig.hca.DestroyQp(b->number, &released), 0);
  EXPECT_TRUE(released.any);
  EXPECT_EQ(released.index, 0);
}

TEST_F(SrqTest, BusyObjectsAreNotDestroyed) {
  EXPECT_EQ(rig.hca.DestroySrq(srq->number), EBUSY);
  EXPECT_EQ(rig.hca.DestroyCq(send_cq->number), EBUSY);
  EXPECT_EQ(rig.hca.DeallocPd(rig.pd), EBUSY);
  ReleasedWqe released;
  EXPECT_EQ(rig.hca.DestroyQp(b->number, &released), 0);
  EXPECT_EQ(rig.hca.DestroySrq(srq->number), 0);
  EXPECT_EQ(rig.hca.DestroySrq(srq->number), ENOENT);
}

}  // namespace
}  // namespace simhca
