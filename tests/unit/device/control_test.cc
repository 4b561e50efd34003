// What control clients do to a device: events, and the state behind them.

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "sim/wire/headers.h"
#include "tests/unit/device/rig.h"

namespace simhca {
namespace {

using mlx5::CqeOpcode;
using mlx5::EventType;
using mlx5::PortChange;
using mlx5::Syndrome;

constexpr uint32_t kTarget = 512 * 1024;

class ControlTest : public ::testing::Test {
 protected:
  Rig rig;
  std::unique_ptr<Rig::Cq> send_cq = rig.MakeCq();
  std::unique_ptr<Rig::Cq> receive_cq = rig.MakeCq();

  ControlReply Ask(ControlKind kind, uint32_t number = ControlRequest::kAll) {
    const Progress::Hold hold(rig.progress);
    return rig.hca.Control({kind, 0, number});
  }
  ControlReply TurnPort(bool down) {
    rig.fabric->down = down;
    return Ask(down ? ControlKind::kPortDown : ControlKind::kPortUp);
  }
  void Send(Rig::Qp& qp, uint32_t length = 100) {
    rig.PostSend(qp, {.address = rig.address(0), .length = length, .lkey = rig.key});
  }
  void ExpectCompletion(Rig::Cq& cq, CqeOpcode opcode) {
    const auto cqe = rig.Poll(cq);
    ASSERT_TRUE(cqe);
    EXPECT_EQ(cqe->opcode(), opcode);
  }
  void ExpectError(Rig::Cq& cq, CqeOpcode opcode, Syndrome syndrome) {
    const auto cqe = rig.Poll(cq, 600 * kSecond);
    ASSERT_TRUE(cqe);
    ASSERT_EQ(cqe->opcode(), opcode);
    EXPECT_EQ(SyndromeOf(*cqe), syndrome);
  }
  // From now on in rig.fabric->sent.
  void CountPackets() {
    rig.fabric->lose = [](size_t, const std::byte*) { return false; };
  }
  // The single event since the last look.
  mlx5::Eqe TheEvent() {
    const std::vector<mlx5::Eqe> events = rig.TakeEvents();
    EXPECT_EQ(events.size(), 1u);
    return events.empty() ? mlx5::Eqe{} : events[0];
  }
};

// Two connected queue pairs with receive queues of their own.
class PairTest : public ControlTest {
 protected:
  PairTest() { rig.Connect(*requester, *responder); }
  std::unique_ptr<Rig::Qp> requester = rig.MakeQp(*send_cq, nullptr);
  std::unique_ptr<Rig::Qp> responder = rig.MakeQp(*receive_cq, nullptr);
};

// Two queue pairs whose responders share an SRQ.
class SrqTest : public ControlTest {
 protected:
  SrqTest() { rig.Connect(*requester, *responder); }
  std::unique_ptr<Rig::Srq> srq = rig.MakeSrq();
  std::unique_ptr<Rig::Qp> requester = rig.MakeQp(*send_cq, nullptr);
  std::unique_ptr<Rig::Qp> responder = rig.MakeQp(*receive_cq, srq.get());
};

TEST_F(ControlTest, ChangesThatAreEventsOnlyReachEveryContext) {
  const std::pair<ControlKind, PortChange> cases[] = {
      {ControlKind::kLidChange, PortChange::kLid},
      {ControlKind::kGidChange, PortChange::kGuid},
      {ControlKind::kPkeyChange, PortChange::kPkey},
      {ControlKind::kSmChange, PortChange::kSubnetManager},
      {ControlKind::kClientReregister, PortChange::kReregister}};
  for (const auto& [kind, change] : cases) {
    const ControlReply reply = Ask(kind);
    EXPECT_EQ(reply.status, 0);
    EXPECT_EQ(reply.count, 1u);
    const mlx5::Eqe event = TheEvent();
    EXPECT_EQ(event.type, EventType::kPortChange);
    EXPECT_EQ(event.sub_type, static_cast<uint8_t>(change));
    EXPECT_EQ(event.port >> 4, 1);
  }
}

TEST_F(ControlTest, AnUnknownKindIsRefused) {
  EXPECT_EQ(Ask(ControlKind::kCount).status, EINVAL);
  EXPECT_EQ(Ask(static_cast<ControlKind>(0xdeadbeef)).status, EINVAL);
  EXPECT_TRUE(rig.TakeEvents().empty());
}

TEST_F(ControlTest, EachChangeOfAPortIsToldOnce) {
  EXPECT_EQ(TurnPort(false).count, 0u) << "it is up";
  EXPECT_EQ(TurnPort(true).count, 1u);
  EXPECT_EQ(TheEvent().sub_type, static_cast<uint8_t>(PortChange::kDown));
  bool up = true;
  EXPECT_EQ(rig.hca.QueryPort(&up), 0);
  EXPECT_FALSE(up);
  EXPECT_EQ(TurnPort(true).count, 0u);
  EXPECT_EQ(TurnPort(false).count, 1u);
  EXPECT_EQ(TheEvent().sub_type, static_cast<uint8_t>(PortChange::kActive));
  EXPECT_EQ(rig.hca.QueryPort(&up), 0);
  EXPECT_TRUE(up);
}

TEST_F(ControlTest, APortThatIsDownAtTheStartRaisesNoEvent) {
  rig.fabric->down = true;
  Hca late(Rig::GenericProfile(), 0, rig.progress);
  bool up = true;
  EXPECT_EQ(late.QueryPort(&up), 0);
  EXPECT_FALSE(up);
  EXPECT_EQ(late.FollowPort(), 0u);
}

TEST_F(PairTest, APortThatIsDownDropsEverythingUntilTheRetriesAreSpent) {
  rig.PostReceive(*responder, rig.address(kTarget), 100, rig.key);
  TurnPort(true);
  CountPackets();
  Send(*requester);
  ExpectError(*send_cq, CqeOpcode::kRequesterError, Syndrome::kRetryExceeded);
  EXPECT_EQ(rig.fabric->sent, 0u) << "nothing went out";
  EXPECT_GT(rig.progress.counters.Get(Counter::kDropped), 0u);
  EXPECT_EQ(rig.StateOf(*responder), QpState::kRts);
}

TEST_F(PairTest, TrafficGoesOnWhenThePortIsUpAgain) {
  rig.Fill(0, 100, 5);
  rig.PostReceive(*responder, rig.address(kTarget), 100, rig.key);
  TurnPort(true);
  Send(*requester);
  EXPECT_FALSE(rig.Poll(*send_cq, 100 * kMillisecond));
  TurnPort(false);
  ExpectCompletion(*send_cq, CqeOpcode::kRequester);
  ExpectCompletion(*receive_cq, CqeOpcode::kResponderSend);
  EXPECT_TRUE(rig.Holds(kTarget, 100, 5));
}

TEST_F(PairTest, PacketsOnTheirWayToAPortThatGoesDownAreDropped) {
  rig.PostReceive(*responder, rig.address(kTarget), 100, rig.key);
  rig.fabric->lose = [this](size_t, const std::byte*) {  // after it has been sent
    rig.fabric->down = true;
    rig.hca.FollowPort();
    return false;
  };
  Send(*requester);
  EXPECT_FALSE(rig.Poll(*receive_cq, kMillisecond));
  EXPECT_EQ(rig.fabric->sent, 1u);
  rig.fabric->lose = nullptr;
  TurnPort(false);
  ExpectCompletion(*receive_cq, CqeOpcode::kResponderSend);
}

TEST_F(PairTest, QpFatalFlushesBothQueues) {
  rig.PostReceive(*responder, rig.address(kTarget), 100, rig.key);
  rig.TakeEvents();
  const ControlReply reply = Ask(ControlKind::kQpFatal, responder->number);
  EXPECT_EQ(reply.status, 0);
  EXPECT_EQ(reply.count, 1u);
  EXPECT_EQ(rig.CountEvents(EventType::kWorkQueueCatastrophic, responder->number), 1u);
  EXPECT_EQ(rig.TakeEvents().size(), 1u) << "no LAST_WQE without an SRQ";
  EXPECT_EQ(rig.StateOf(*responder), QpState::kErr);
  EXPECT_EQ(rig.StateOf(*requester), QpState::kRts);
  ExpectError(*receive_cq, CqeOpcode::kResponderError, Syndrome::kFlushed);
  Send(*responder);
  ExpectError(*receive_cq, CqeOpcode::kRequesterError, Syndrome::kFlushed);
  Send(*requester);
  ExpectError(*send_cq, CqeOpcode::kRequesterError, Syndrome::kRetryExceeded);
}

TEST_F(PairTest, QpFatalHappensOnceToAQueuePair) {
  EXPECT_EQ(Ask(ControlKind::kQpFatal).count, 2u);
  EXPECT_EQ(Ask(ControlKind::kQpFatal, responder->number).status, EALREADY);
  EXPECT_EQ(rig.CountEvents(EventType::kWorkQueueCatastrophic, responder->number), 1u);
}

TEST_F(PairTest, PathEventsChangeNothingElse) {
  EXPECT_EQ(Ask(ControlKind::kPathMigrated, requester->number).count, 1u);
  EXPECT_EQ(Ask(ControlKind::kPathMigrationFailed, requester->number).count, 1u);
  EXPECT_EQ(rig.CountEvents(EventType::kPathMigrated, requester->number), 1u);
  EXPECT_EQ(rig.CountEvents(EventType::kPathMigrationFailed, requester->number), 1u);
  EXPECT_EQ(rig.TakeEvents().size(), 2u);
  rig.PostReceive(*responder, rig.address(kTarget), 100, rig.key);
  Send(*requester);
  ExpectCompletion(*send_cq, CqeOpcode::kRequester);
}

TEST_F(PairTest, NumbersThatNobodyHasAreRefused) {
  EXPECT_EQ(Ask(ControlKind::kQpFatal, 0xfffff0).status, ENOENT);
  EXPECT_EQ(Ask(ControlKind::kSrqError, 0xfffff0).status, ENOENT);
  EXPECT_EQ(Ask(ControlKind::kSrqError).status, ENOENT) << "there is none at all";
  EXPECT_TRUE(rig.TakeEvents().empty());
}

TEST_F(SrqTest, QpFatalOnAnSrqEndsItsReceivesToo) {
  rig.PostSrq(*srq, rig.address(kTarget), 100, rig.key);
  rig.TakeEvents();
  EXPECT_EQ(Ask(ControlKind::kQpFatal, responder->number).status, 0);
  const std::vector<mlx5::Eqe> events = rig.TakeEvents();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].type, EventType::kWorkQueueCatastrophic);
  EXPECT_EQ(events[1].type, EventType::kSrqLastWqe);
  EXPECT_FALSE(rig.Poll(*receive_cq, kMillisecond)) << "the receive stays in the SRQ";
}

TEST_F(SrqTest, SrqErrorTakesItsQueuePairsAlong) {
  auto other_requester = rig.MakeQp(*send_cq, nullptr);
  auto other = rig.MakeQp(*receive_cq, srq.get());
  rig.Connect(*other_requester, *other);
  auto unconnected = rig.MakeQp(*receive_cq, srq.get());
  rig.PostSrq(*srq, rig.address(kTarget), 100, rig.key);
  rig.TakeEvents();
  const ControlReply reply = Ask(ControlKind::kSrqError, srq->number);
  EXPECT_EQ(reply.status, 0);
  EXPECT_EQ(reply.count, 1u);
  EXPECT_EQ(rig.CountEvents(EventType::kSrqCatastrophic, srq->number), 1u);
  EXPECT_EQ(rig.CountEvents(EventType::kSrqLastWqe, responder->number), 1u);
  EXPECT_EQ(rig.CountEvents(EventType::kSrqLastWqe, other->number), 1u);
  EXPECT_EQ(rig.TakeEvents().size(), 3u);
  EXPECT_EQ(rig.StateOf(*responder), QpState::kErr);
  EXPECT_EQ(rig.StateOf(*requester), QpState::kRts);
  EXPECT_EQ(rig.StateOf(*unconnected), QpState::kReset);
  Send(*responder);
  ExpectError(*receive_cq, CqeOpcode::kRequesterError, Syndrome::kFlushed);
  EXPECT_EQ(Ask(ControlKind::kSrqError, srq->number).status, EALREADY);
}

TEST_F(SrqTest, AFailedSrqGivesOutNothing) {
  Ask(ControlKind::kSrqError);
  rig.PostSrq(*srq, rig.address(kTarget), 100, rig.key);
  auto requester2 = rig.MakeQp(*send_cq, nullptr);
  auto responder2 = rig.MakeQp(*receive_cq, srq.get());
  rig.Connect(*requester2, *responder2, {.rnr_retry = 1});
  Send(*requester2);
  ExpectError(*send_cq, CqeOpcode::kRequesterError, Syndrome::kRnrRetryExceeded);
  uint32_t limit;
  EXPECT_EQ(rig.hca.QuerySrqLimit(srq->number, &limit), EINVAL);
  EXPECT_EQ(rig.hca.ModifySrq({.srq = srq->number, .set_limit = true, .limit = 1}), EINVAL);
}

TEST_F(SrqTest, AFailedSrqIsDestroyedAsAnyOther) {
  Ask(ControlKind::kSrqError);
  EXPECT_EQ(rig.hca.DestroySrq(srq->number), EBUSY);
  ReleasedWqe released;
  EXPECT_EQ(rig.hca.DestroyQp(responder->number, &released), 0);
  EXPECT_EQ(rig.hca.DestroySrq(srq->number), 0);
  EXPECT_EQ(rig.hca.DestroySrq(srq->number), ENOENT);
}

TEST_F(SrqTest, AFatalErrorStopsTheDevice) {
  rig.PostSrq(*srq, rig.address(kTarget), 100, rig.key);
  rig.TakeEvents();
  EXPECT_EQ(Ask(ControlKind::kDeviceFatal).count, 1u);
  EXPECT_EQ(TheEvent().type, EventType::kInternalError);
  EXPECT_TRUE(rig.hca.failed());
  CountPackets();
  Send(*requester);
  EXPECT_FALSE(rig.Poll(*send_cq, 2 * kSecond)) << "not even an error completes";
  EXPECT_FALSE(rig.Poll(*receive_cq, kMillisecond));
  EXPECT_EQ(rig.fabric->sent, 0u);
  EXPECT_EQ(Ask(ControlKind::kGidChange).status, EIO);
  EXPECT_EQ(Ask(ControlKind::kDeviceFatal).status, EIO);
  EXPECT_EQ(Ask(ControlKind::kQpFatal).status, EIO);
  EXPECT_TRUE(rig.TakeEvents().empty());
}

TEST_F(SrqTest, APacketOnItsWayToAFailedDeviceVanishes) {
  constexpr uint32_t kBytes = Bth::kSize + 100;
  rig.PostSrq(*srq, rig.address(kTarget), 100, rig.key);
  std::vector<std::byte> packet;
  rig.fabric->lose = [&packet](size_t, const std::byte* bytes) {
    if (packet.empty()) packet.assign(bytes, bytes + kBytes);
    return true;
  };
  Send(*requester);
  rig.Poll(*send_cq, 5 * kMicrosecond);  // until it has left
  ASSERT_EQ(packet.size(), kBytes);
  Ask(ControlKind::kDeviceFatal);
  rig.fabric->lose = nullptr;
  Link& link = rig.fabric->link();
  std::memcpy(link.Reserve(responder->number, kBytes).bytes, packet.data(), kBytes);
  link.Commit({}, 0);
  EXPECT_FALSE(rig.Poll(*receive_cq, kSecond));
  EXPECT_EQ(rig.progress.counters.Get(Counter::kDropped), 1u);
}

TEST_F(SrqTest, CommandsToAFailedDeviceGiveEio) {
  Ask(ControlKind::kDeviceFatal);
  uint32_t number;
  bool up;
  EXPECT_EQ(rig.hca.QueryPort(&up), EIO);
  EXPECT_EQ(rig.hca.AllocPd(rig.context, &number), EIO);
  EXPECT_EQ(rig.hca.RegisterRegion({rig.pd, rig.at(0), 10, 0, kLocalWrite}, &number), EIO);
  CreateCqCommand create_cq{};
  create_cq.context = rig.context;
  EXPECT_EQ(rig.hca.CreateCq(create_cq, &number), EIO);
  EXPECT_EQ(rig.hca.ResizeCq(send_cq->number, nullptr, 16), EIO);
  CreateSrqCommand create_srq{};
  create_srq.context = rig.context;
  create_srq.pd = rig.pd;
  EXPECT_EQ(rig.hca.CreateSrq(create_srq, &number), EIO);
  EXPECT_EQ(rig.hca.ModifySrq({.srq = srq->number}), EIO);
  EXPECT_EQ(rig.hca.QuerySrqLimit(srq->number, &number), EIO);
  CreateQpReply reply;
  CreateQpCommand create_qp{};
  create_qp.context = rig.context;
  create_qp.pd = rig.pd;
  create_qp.send_cq = create_qp.receive_cq = send_cq->number;
  EXPECT_EQ(rig.hca.CreateQp(create_qp, &reply), EIO);
  QpAttributes attributes;
  EXPECT_EQ(rig.hca.QueryQp(requester->number, &attributes), EIO);
  attributes.state = QpState::kSqd;
  EXPECT_EQ(rig.Modify(*requester, qp_mask::kState, attributes), EIO);
  EXPECT_EQ(rig.Modify(*requester, qp_mask::kMinRnrTimer, attributes), EIO);
}

TEST_F(SrqTest, AFailedDeviceCanBeTakenDown) {
  // A message of two packets whose second never comes: its receive is claimed and given back.
  rig.PostSrq(*srq, rig.address(kTarget), 2000, rig.key);
  rig.fabric->lose = [first = true](size_t, const std::byte*) mutable {
    return !std::exchange(first, false);
  };
  Send(*requester, 2000);
  EXPECT_FALSE(rig.Poll(*receive_cq, kMillisecond));
  Ask(ControlKind::kDeviceFatal);
  QpAttributes attributes;
  attributes.state = QpState::kErr;
  EXPECT_EQ(rig.Modify(*requester, qp_mask::kState, attributes), 0);
  attributes.state = QpState::kReset;
  EXPECT_EQ(rig.Modify(*requester, qp_mask::kState, attributes), 0);
  EXPECT_FALSE(rig.Poll(*send_cq, kSecond)) << "no flush either";
  ReleasedWqe released;
  EXPECT_EQ(rig.hca.DestroyQp(responder->number, &released), 0);
  EXPECT_TRUE(released.any);
  EXPECT_EQ(rig.hca.DestroyQp(requester->number, &released), 0);
  EXPECT_FALSE(released.any);
  EXPECT_EQ(rig.hca.DestroySrq(srq->number), 0);
  EXPECT_EQ(rig.hca.DestroyCq(send_cq->number), 0);
  EXPECT_EQ(rig.hca.DestroyCq(receive_cq->number), 0);
  EXPECT_EQ(rig.hca.DeregisterRegion(rig.key), 0);
  EXPECT_EQ(rig.hca.DeallocPd(rig.pd), 0);
}

TEST_F(ControlTest, AFailedDeviceOpensAgainWhenAllContextsAreClosed) {
  Ask(ControlKind::kDeviceFatal);
  uint32_t context;
  EXPECT_EQ(rig.hca.OpenContext({}, &context), EIO);
  rig.hca.CloseContext(rig.context);
  EXPECT_EQ(rig.hca.OpenContext({}, &context), 0);
  EXPECT_FALSE(rig.hca.failed());
  uint32_t pd;
  EXPECT_EQ(rig.hca.AllocPd(context, &pd), 0);
}

TEST_F(SrqTest, AListShowsNumbersAndStates) {
  rig.PostSrq(*srq, rig.address(kTarget), 100, rig.key);
  ASSERT_EQ(rig.hca.ModifySrq({.srq = srq->number, .set_limit = true, .limit = 1}), 0);
  char expected[256];
  std::snprintf(expected, sizeof(expected),
                "port up, 1 context(s)\n"
                "QP  0x%06x  RTS    peer 0x%06x\n"
                "QP  0x%06x  RTS    peer 0x%06x  SRQ 0x%06x\n"
                "SRQ 0x%06x  limit 1  fill 1\n",
                requester->number, responder->number, responder->number, requester->number,
                srq->number, srq->number);
  const ControlReply reply = Ask(ControlKind::kList, 0);
  EXPECT_EQ(reply.text, expected);
  EXPECT_EQ(reply.count, 4u);
  EXPECT_EQ(Ask(ControlKind::kList, 4).count, 0u);
}

TEST_F(ControlTest, ALongListComesInPages) {
  std::vector<std::unique_ptr<Rig::Qp>> qps;
  for (int i = 0; i < 200; ++i) qps.push_back(rig.MakeQp(*send_cq, nullptr));
  std::string list;
  uint32_t lines = 0;
  int pages = 0;
  for (ControlReply page = Ask(ControlKind::kList, 0); page.count != 0;
       page = Ask(ControlKind::kList, lines)) {
    EXPECT_LE(page.text.size(), kControlTextBytes);
    list += page.text;
    lines += page.count;
    ++pages;
  }
  EXPECT_EQ(lines, 201u);
  EXPECT_EQ(std::count(list.begin(), list.end(), '\n'), 201);
  EXPECT_GT(pages, 1);
}

class BellTest : public ControlTest, private ControlHandler {
 protected:
  BellTest() { rig.progress.SetControlHandler(this); }
  int asked = 0;

 private:
  void OnControl() override { ++asked; }
};

TEST_F(BellTest, TheBellIsHeardOnceByWhoeverPolls) {
  rig.hca.Poll();
  EXPECT_EQ(asked, 1) << "the first look is made in any case";
  rig.hca.Poll();
  EXPECT_EQ(asked, 1);
  ++rig.fabric->bell;
  rig.hca.Poll();
  rig.hca.Poll();
  EXPECT_EQ(asked, 2);
}

}  // namespace
}  // namespace simhca
