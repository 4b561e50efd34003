#include <cerrno>
#include <functional>
#include <ostream>

#include "tests/conformance/fixture.h"

namespace simhca::conformance {
namespace {

// What a failure does to its two queue pairs, and that it never costs an entry of the SRQ.
struct Failure {
  const char* name;
  // The request that fails; the link is connected, and the SRQ holds one special receive and then
  // ordinary ones.
  std::function<SendRequest(const Buffer& source, const Buffer& sink)> request;
  // Changes the first receive of the SRQ, if given.
  std::function<void(ibv_sge&)> first_receive = {};
  ibv_wc_status at_requester;
  // Of the responder's first completion; IBV_WC_SUCCESS: it has none.
  ibv_wc_status at_responder = IBV_WC_SUCCESS;
  ibv_qp_state responder_state = IBV_QPS_RTS;
  // The responder's event besides that of its last WQE; IBV_EVENT_COMM_EST: none.
  ibv_event_type event = IBV_EVENT_COMM_EST;
  ConnectOptions options = {};
  // Entries that stay claimed by a message that never ends, until its QP goes.
  uint32_t claimed = 0;
};

void PrintTo(const Failure& failure, std::ostream* out) { *out << failure.name; }

SendRequest Send(const Buffer& source, const Buffer&) { return {.segments = {source.Sge(0, 32)}}; }
SendRequest Write(const Buffer& source, const Buffer& sink) {
  return {.segments = {source.Sge(0, 32)},
          .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
          .remote_address = sink.address(),
          .rkey = sink.rkey()};
}
SendRequest Read(const Buffer& source, const Buffer& sink) {
  SendRequest request = Write(source, sink);
  request.opcode = IBV_WR_RDMA_READ;
  return request;
}
SendRequest WithBadKey(SendRequest request) {
  request.segments.back().lkey ^= 0x5500;
  return request;
}
SendRequest WithBadRkey(SendRequest request) {
  request.rkey ^= 0x5500;
  return request;
}

const Failure kFailures[] = {
    {.name = "BadLocalKey",
     .request = [](const Buffer& a, const Buffer& b) { return WithBadKey(Send(a, b)); },
     .at_requester = IBV_WC_LOC_PROT_ERR},
    {.name = "BadLocalKeyInALaterPacket",
     .request =
         [](const Buffer& source, const Buffer&) {
           return WithBadKey({.segments = {source.Sge(0, 256), source.Sge(256, 8)}});
         },
     .at_requester = IBV_WC_LOC_PROT_ERR,
     .options = {.mtu = IBV_MTU_256},
     .claimed = 1},
    {.name = "BadLocalKeyOfARead",
     .request = [](const Buffer& a, const Buffer& b) { return WithBadKey(Read(a, b)); },
     .at_requester = IBV_WC_LOC_PROT_ERR},
    {.name = "ReceiveTooShort",
     .request = [](const Buffer& source,
                   const Buffer&) { return SendRequest{.segments = {source.Sge(0, 1001)}}; },
     .at_requester = IBV_WC_REM_INV_REQ_ERR,
     .at_responder = IBV_WC_LOC_LEN_ERR,
     .responder_state = IBV_QPS_ERR},
    {.name = "ReceiveTooShortForALaterPacket",
     .request = [](const Buffer& source,
                   const Buffer&) { return SendRequest{.segments = {source.Sge(0, 1001)}}; },
     .at_requester = IBV_WC_REM_INV_REQ_ERR,
     .at_responder = IBV_WC_LOC_LEN_ERR,
     .responder_state = IBV_QPS_ERR,
     .options = {.mtu = IBV_MTU_256}},
    {.name = "BadLocalKeyOfTheReceive",
     .request = Send,
     .first_receive = [](ibv_sge& receive) { receive.lkey ^= 0x5500; },
     .at_requester = IBV_WC_REM_OP_ERR,
     .at_responder = IBV_WC_LOC_PROT_ERR,
     .responder_state = IBV_QPS_ERR},
    {.name = "BadRemoteKeyOfAWrite",
     .request = [](const Buffer& a, const Buffer& b) { return WithBadRkey(Write(a, b)); },
     .at_requester = IBV_WC_REM_ACCESS_ERR,
     .responder_state = IBV_QPS_ERR,
     .event = IBV_EVENT_QP_ACCESS_ERR},
    {.name = "BadRemoteKeyOfARead",
     .request = [](const Buffer& a, const Buffer& b) { return WithBadRkey(Read(a, b)); },
     .at_requester = IBV_WC_REM_ACCESS_ERR,
     .responder_state = IBV_QPS_ERR,
     .event = IBV_EVENT_QP_ACCESS_ERR},
    {.name = "WriteThatTheQpForbids",
     .request = Write,
     .at_requester = IBV_WC_REM_INV_REQ_ERR,
     .responder_state = IBV_QPS_ERR,
     .event = IBV_EVENT_QP_REQ_ERR,
     .options = {.access = IBV_ACCESS_LOCAL_WRITE}},
    {.name = "ReadThatTheQpForbids",
     .request = Read,
     .at_requester = IBV_WC_REM_INV_REQ_ERR,
     .responder_state = IBV_QPS_ERR,
     .event = IBV_EVENT_QP_REQ_ERR,
     .options = {.access = IBV_ACCESS_LOCAL_WRITE}},
};

class RcFailure : public SrqTest, public testing::WithParamInterface<Failure> {
 protected:
  static constexpr size_t kReceiveBytes = 1000;

  RcFailure() {
    CreateSrq(8);
    ibv_sge first = sink_.Sge(0, kReceiveBytes);
    if (GetParam().first_receive) GetParam().first_receive(first);
    EXPECT_EQ(0, PostSrqReceive(srq_.get(), 100, {first}));
    for (uint64_t id = 101; id < 100 + capacity_; ++id) {
      EXPECT_EQ(0, PostSrqReceive(srq_.get(), id, {sink_.Sge(0, kReceiveBytes)}));
    }
    link_ = MakeLink(GetParam().options, srq_.get());
  }

  // The failing request and two behind it.  Returns when the requester has its completions.
  void Fail() {
    SendRequest request = GetParam().request(source_, sink_);
    request.wr_id = 1;
    ASSERT_EQ(0, PostSend(link_.requester.get(), request)) << "never checked at the post";
    const std::vector<ibv_wc> failed = Poll(device_, requester_cq_.get(), 1);
    ASSERT_EQ(1u, failed.size());
    EXPECT_EQ(1u, failed[0].wr_id);
    EXPECT_EQ(GetParam().at_requester, failed[0].status) << ibv_wc_status_str(failed[0].status);
    EXPECT_EQ(link_.requester->qp_num, failed[0].qp_num);
  }
  // Events of the responder's queue pair, those of other kinds being failures.
  void ExpectEvents() {
    size_t last_wqe = 0;
    size_t own = 0;
    for (const ibv_async_event& event : device_.AsyncEvents(kQuiet)) {
      EXPECT_EQ(link_.responder.get(), event.element.qp);
      if (event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED) {
        ++last_wqe;
      } else {
        EXPECT_EQ(GetParam().event, event.event_type);
        ++own;
      }
    }
    EXPECT_EQ(GetParam().responder_state == IBV_QPS_ERR ? 1u : 0u, last_wqe);
    EXPECT_EQ(GetParam().event != IBV_EVENT_COMM_EST ? 1u : 0u, own);
  }

  Link link_;
};

TEST_P(RcFailure, LeavesItsStatusesStatesAndEvents) {
  Rule("CE-01, CE-02, CE-05, CE-06, CE-07, CE-08, CE-16");
  Fail();
  EXPECT_EQ(IBV_QPS_ERR, StateOf(link_.requester.get()));
  ExpectEvents();
  EXPECT_EQ(GetParam().responder_state, StateOf(link_.responder.get()));
  const std::vector<ibv_wc> at_responder = Poll(device_, responder_cq_.get(), 2, kQuiet);
  if (GetParam().at_responder == IBV_WC_SUCCESS) {
    EXPECT_TRUE(at_responder.empty());
  } else {
    ASSERT_EQ(1u, at_responder.size()) << "unclaimed entries stay in the SRQ";
    EXPECT_EQ(100u, at_responder[0].wr_id);
    EXPECT_EQ(GetParam().at_responder, at_responder[0].status);
    EXPECT_EQ(link_.responder->qp_num, at_responder[0].qp_num);
  }
  for (uint64_t id = 2; id <= 3; ++id) {
    ASSERT_EQ(0, PostSend(link_.requester.get(), {.wr_id = id, .segments = {source_.Sge(0, 8)}}));
    const ibv_wc flushed = PollOne(device_, requester_cq_.get());
    EXPECT_EQ(id, flushed.wr_id);
    EXPECT_EQ(IBV_WC_WR_FLUSH_ERR, flushed.status);
  }
  EXPECT_TRUE(StaysEmpty(device_, requester_cq_.get(), Microseconds(100)));
}

TEST_P(RcFailure, CostsTheSrqNoEntryWhileItsQpsAreThere) {
  Rule("SRQ-22");
  Fail();
  const std::vector<ibv_wc> completed = Poll(device_, responder_cq_.get(), 2, kQuiet);
  const auto polled = static_cast<uint32_t>(completed.size());
  EXPECT_EQ(capacity_, polled + CountReceivable() + GetParam().claimed);
  EXPECT_EQ(0, P(capacity_ - GetParam().claimed));
  EXPECT_EQ(ENOMEM, P(1));
  link_ = Link{};
  EXPECT_EQ(0, P(GetParam().claimed));
  ExpectNothingLost(0);
  EXPECT_TRUE(StaysEmpty(device_, responder_cq_.get(), Microseconds(100)));
}

TEST_P(RcFailure, CostsTheSrqNoEntryWhenItsQpsAreDestroyedUnpolled) {
  Rule("SRQ-22");
  Fail();
  EXPECT_TRUE(StaysEmpty(device_, requester_cq_.get())) << "time for the responder";
  link_ = Link{};
  EXPECT_TRUE(StaysEmpty(device_, responder_cq_.get(), Microseconds(100)));
  while (P(1) == 0) {
  }
  ExpectNothingLost(0);
}

TEST_P(RcFailure, CostsTheSrqNoEntryWhenItsQpsAreReset) {
  Rule("SRQ-22");
  Fail();
  EXPECT_TRUE(StaysEmpty(device_, requester_cq_.get())) << "time for the responder";
  ASSERT_EQ(0, Move(link_.responder.get(), IBV_QPS_RESET));
  ASSERT_EQ(0, Move(link_.requester.get(), IBV_QPS_RESET));
  EXPECT_TRUE(StaysEmpty(device_, responder_cq_.get(), Microseconds(100)));
  while (P(1) == 0) {
  }
  ExpectNothingLost(0);
  Connect(device_, link_.requester.get(), link_.responder.get());
  ASSERT_EQ(0, P(2));
  SendAndReceive(link_, 2);
}

TEST_P(RcFailure, ClaimedEntriesAreFlushedByTheErrorState) {
  Rule("SRQ-23");
  Fail();
  EXPECT_TRUE(StaysEmpty(device_, requester_cq_.get())) << "time for the responder";
  ASSERT_EQ(0, Move(link_.responder.get(), IBV_QPS_ERR));
  const std::vector<ibv_wc> completed = Poll(device_, responder_cq_.get(), 3, kQuiet);
  const bool failed = GetParam().at_responder != IBV_WC_SUCCESS;
  ASSERT_EQ(GetParam().claimed + (failed ? 1 : 0), completed.size());
  for (const ibv_wc& wc : completed) {
    EXPECT_EQ(100u, wc.wr_id);
    EXPECT_EQ(failed ? GetParam().at_responder : IBV_WC_WR_FLUSH_ERR, wc.status);
  }
  ExpectNothingLost(static_cast<uint32_t>(completed.size()));
}

INSTANTIATE_TEST_SUITE_P(Kinds, RcFailure, testing::ValuesIn(kFailures),
                         [](const auto& info) { return std::string(info.param.name); });

// Other ways in which messages do not end as their sender wished.
class SrqConservation : public SrqTest {
 protected:
  SrqConservation() {
    CreateSrq(8);
    EXPECT_EQ(0, P(capacity_));
  }
  SendRequest Message(size_t length) const { return {.segments = {source_.Sge(0, length)}}; }
  uint32_t PolledReceives() {
    return static_cast<uint32_t>(Poll(device_, responder_cq_.get(), 100, kQuiet).size());
  }
};

TEST_F(SrqConservation, AfterReceiverNotReadyErrors) {
  Rule("SRQ-22");
  const Link link = MakeLink({.rnr_retry = 0}, srq_.get());
  SendAndReceive(link, capacity_);
  ASSERT_EQ(0, PostSend(link.requester.get(), Message(kSlotBytes)));
  EXPECT_EQ(IBV_WC_RNR_RETRY_EXC_ERR, PollOne(device_, requester_cq_.get()).status);
  EXPECT_EQ(IBV_QPS_RTS, StateOf(link.responder.get()));
  EXPECT_EQ(0, P(capacity_));
  EXPECT_EQ(ENOMEM, P(1));
  ExpectNothingLost(0);
}

TEST_F(SrqConservation, AfterAPeerThatVanishedAmidItsMessages) {
  Rule("SRQ-22");
  for (int round = 0; round < 5; ++round) {
    Link link = MakeLink({.mtu = IBV_MTU_256}, srq_.get());
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(0, PostSend(link.requester.get(), Message(kSlotBytes)));
    }
    link.requester.reset();
    const uint32_t polled = PolledReceives();
    EXPECT_LE(polled, 3u);
    link.responder.reset();
    EXPECT_EQ(0, P(polled));
    EXPECT_EQ(ENOMEM, P(1));
  }
  ExpectNothingLost(0);
}

TEST_F(SrqConservation, AfterAResponderThatVanishedAmidItsMessages) {
  Rule("SRQ-22");
  for (int round = 0; round < 5; ++round) {
    Link link = MakeLink({.timeout = 8, .retry_count = 0}, srq_.get());
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(0, PostSend(link.requester.get(), Message(kSlotBytes)));
    }
    link.responder.reset();
    EXPECT_EQ(3u, Poll(device_, requester_cq_.get(), 3).size()) << "each succeeds or fails";
    EXPECT_EQ(0u, PolledReceives()) << "nothing of a queue pair that is gone";
    while (P(1) == 0) {
    }
  }
  ExpectNothingLost(0);
}

TEST_F(SrqConservation, AfterTheErrorStateWithMessagesInTheCq) {
  Rule("SRQ-22");
  const Link link = MakeLink({}, srq_.get());
  S(link.requester.get(), 3);
  ASSERT_EQ(0, Move(link.responder.get(), IBV_QPS_ERR));
  EXPECT_EQ((std::vector<uint64_t>{0, 1, 2}), Receive(3)) << "what had arrived stays";
  ExpectNothingLost(3);
}

TEST_F(SrqConservation, AfterResetsOfOneQpAmongOthers) {
  Rule("SRQ-22");
  const Link link = MakeLink({}, srq_.get());
  const Link other = MakeLink({}, srq_.get());
  for (int round = 0; round < 20; ++round) {
    S(link.requester.get(), 2);
    S(other.requester.get(), 1);
    ASSERT_EQ(0, Move(link.responder.get(), IBV_QPS_RESET));
    ASSERT_EQ(0, Move(link.requester.get(), IBV_QPS_RESET));
    Receive(1);
    ASSERT_EQ(0, P(3));
    ASSERT_EQ(ENOMEM, P(1));
    Connect(device_, link.requester.get(), link.responder.get());
  }
  ExpectNothingLost(0);
}

}  // namespace
}  // namespace simhca::conformance
