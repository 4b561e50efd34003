#include <cerrno>

#include "tests/conformance/fixture.h"

namespace simhca::conformance {
namespace {

// The checks of ibv_post_send and ibv_post_recv on an RC queue pair.
class RcPost : public RcTest {
 protected:
  Link MakeSmallLink(uint32_t max_send_wr, uint32_t max_recv_wr) {
    QpOptions requester = RequesterOptions();
    QpOptions responder = ResponderOptions();
    requester.cap.max_send_wr = max_send_wr;
    responder.cap.max_recv_wr = max_recv_wr;
    Link link{MakeQp(device_, pd_.get(), requester, &requester_cap_),
              MakeQp(device_, pd_.get(), responder, &responder_cap_)};
    Connect(device_, link.requester.get(), link.responder.get());
    return link;
  }
  SendRequest SmallWrite(uint64_t wr_id, unsigned flags) const {
    return {.wr_id = wr_id,
            .segments = {source_.Sge(0, 8)},
            .opcode = IBV_WR_RDMA_WRITE,
            .flags = flags,
            .remote_address = sink_.address(),
            .rkey = sink_.rkey()};
  }

  ibv_qp_cap requester_cap_{};
  ibv_qp_cap responder_cap_{};
};

TEST_F(RcPost, SendQueueTakesWhatWasGrantedAndFreesASlotAtThePoll) {
  Rule("POST-08");
  const Link link = MakeSmallLink(8, 8);
  const uint32_t slots = requester_cap_.max_send_wr;
  for (uint32_t i = 0; i < slots; ++i) {
    ASSERT_EQ(0, PostSend(link.requester.get(), SmallWrite(i, IBV_SEND_SIGNALED)));
  }
  EXPECT_EQ(ENOMEM, PostSend(link.requester.get(), SmallWrite(99, IBV_SEND_SIGNALED)));
  EXPECT_EQ(0u, PollOne(device_, requester_cq_.get()).wr_id);
  EXPECT_EQ(0, PostSend(link.requester.get(), SmallWrite(100, IBV_SEND_SIGNALED)));
  EXPECT_EQ(ENOMEM, PostSend(link.requester.get(), SmallWrite(99, IBV_SEND_SIGNALED)));
  const std::vector<ibv_wc> rest = Poll(device_, requester_cq_.get(), slots);
  ASSERT_EQ(slots, rest.size());
  EXPECT_EQ(100u, rest.back().wr_id);
}

TEST_F(RcPost, SlotsOfUnsignalledSendsAreFreeWithTheNextPolledCompletion) {
  Rule("POST-08");
  const Link link = MakeSmallLink(8, 8);
  const uint32_t slots = requester_cap_.max_send_wr;
  for (uint32_t round = 0; round < 3; ++round) {
    for (uint32_t i = 0; i + 1 < slots; ++i) {
      ASSERT_EQ(0, PostSend(link.requester.get(), SmallWrite(i, 0)));
    }
    ASSERT_EQ(0, PostSend(link.requester.get(), SmallWrite(77, IBV_SEND_SIGNALED)));
    EXPECT_EQ(ENOMEM, PostSend(link.requester.get(), SmallWrite(99, 0)));
    EXPECT_EQ(77u, PollOne(device_, requester_cq_.get()).wr_id);
  }
}

TEST_F(RcPost, ReceiveQueueTakesWhatWasGrantedAndFreesASlotAtThePoll) {
  Rule("POST-08");
  const Link link = MakeSmallLink(8, 8);
  const uint32_t slots = responder_cap_.max_recv_wr;
  for (uint32_t i = 0; i < slots; ++i) {
    ASSERT_EQ(0, PostReceive(link.responder.get(), i, {sink_.Sge(0, 8)}));
  }
  EXPECT_EQ(ENOMEM, PostReceive(link.responder.get(), 99, {sink_.Sge(0, 8)}));
  SendAndExpectSuccess(link.requester.get(), {.segments = {source_.Sge(0, 8)}});
  EXPECT_EQ(ENOMEM, PostReceive(link.responder.get(), 99, {sink_.Sge(0, 8)}));
  EXPECT_EQ(0u, PollOne(device_, responder_cq_.get()).wr_id);
  EXPECT_EQ(0, PostReceive(link.responder.get(), 100, {sink_.Sge(0, 8)}));
  EXPECT_EQ(ENOMEM, PostReceive(link.responder.get(), 99, {sink_.Sge(0, 8)}));
}

TEST_F(RcPost, SendListStopsAtTheFirstBadRequest) {
  Rule("POST-01, POST-09");
  const Link link = MakeLink();
  for (uint64_t id = 0; id < 5; ++id) {
    ASSERT_EQ(0, PostReceive(link.responder.get(), id, {sink_.Sge(0, 64)}));
  }
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(0, ibv_query_qp(link.requester.get(), &attr, IBV_QP_CAP, &init));
  SendRequest requests[5];
  ibv_send_wr wrs[5];
  for (int i = 0; i < 5; ++i) {
    requests[i] = {.wr_id = static_cast<uint64_t>(i), .segments = {source_.Sge(0, 8)}};
    if (i == 2) requests[i].segments.assign(init.cap.max_send_sge + 1, source_.Sge(0, 1));
    wrs[i] = MakeSendWr(requests[i]);
    if (i > 0) wrs[i - 1].next = &wrs[i];
  }
  ibv_send_wr* bad = nullptr;
  ExpectRefusedPost(device_, ibv_post_send(link.requester.get(), wrs, &bad));
  EXPECT_EQ(&wrs[2], bad);
  EXPECT_EQ((std::vector<uint64_t>{0, 1}), IdsOf(Poll(device_, requester_cq_.get(), 2)));
  EXPECT_EQ((std::vector<uint64_t>{0, 1}), IdsOf(Poll(device_, responder_cq_.get(), 2)));
  EXPECT_TRUE(StaysEmpty(device_, requester_cq_.get()));
}

TEST_F(RcPost, ReceiveListStopsAtTheFirstBadRequest) {
  Rule("POST-01, POST-09");
  const Link link = MakeLink();
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(0, ibv_query_qp(link.responder.get(), &attr, IBV_QP_CAP, &init));
  ReceiveChain chain(5, {sink_.Sge(0, 64)});
  std::vector<ibv_sge> too_many(init.cap.max_recv_sge + 1, sink_.Sge(0, 1));
  chain[2].sg_list = too_many.data();
  chain[2].num_sge = static_cast<int>(too_many.size());
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(EINVAL, ibv_post_recv(link.responder.get(), chain.head(), &bad));
  EXPECT_EQ(&chain[2], bad);
  for (int i = 0; i < 2; ++i) {
    SendAndExpectSuccess(link.requester.get(), {.segments = {source_.Sge(0, 8)}});
  }
  EXPECT_EQ((std::vector<uint64_t>{0, 1}), IdsOf(Poll(device_, responder_cq_.get(), 2)));
  ASSERT_EQ(0, Move(link.responder.get(), IBV_QPS_ERR));
  EXPECT_TRUE(StaysEmpty(device_, responder_cq_.get())) << "nothing else was posted";
}

TEST_F(RcPost, ReceiveListLongerThanTheQueueStopsWhereItIsFull) {
  Rule("POST-07");
  const Link link = MakeSmallLink(8, 8);
  const uint32_t slots = responder_cap_.max_recv_wr;
  ReceiveChain chain(slots + 3, {sink_.Sge(0, 64)});
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(ENOMEM, ibv_post_recv(link.responder.get(), chain.head(), &bad));
  EXPECT_EQ(&chain[slots], bad);
}

TEST_F(RcPost, BadWrIsUntouchedOnSuccess) {
  Rule("POST-03");
  const Link link = MakeLink();
  SendRequest request = SmallWrite(1, IBV_SEND_SIGNALED);
  ibv_send_wr wr = MakeSendWr(request);
  ibv_send_wr send_marker{};
  ibv_send_wr* bad_send = &send_marker;
  EXPECT_EQ(0, ibv_post_send(link.requester.get(), &wr, &bad_send));
  EXPECT_EQ(&send_marker, bad_send);
  ReceiveChain chain(1, {sink_.Sge(0, 64)});
  ibv_recv_wr receive_marker{};
  ibv_recv_wr* bad_receive = &receive_marker;
  EXPECT_EQ(0, ibv_post_recv(link.responder.get(), chain.head(), &bad_receive));
  EXPECT_EQ(&receive_marker, bad_receive);
}

TEST_F(RcPost, InlineDataLongerThanGrantedIsRefused) {
  Rule("POST-10");
  const Link link = MakeSmallLink(8, 8);
  SendRequest request = SmallWrite(1, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
  request.segments = {source_.Sge(0, requester_cap_.max_inline_data)};
  EXPECT_EQ(0, PostSend(link.requester.get(), request));
  EXPECT_EQ(IBV_WC_SUCCESS, PollOne(device_, requester_cq_.get()).status);
  request.segments = {source_.Sge(0, requester_cap_.max_inline_data + 1)};
  ExpectRefusedPost(device_, PostSend(link.requester.get(), request));
  request.segments = {source_.Sge(0, requester_cap_.max_inline_data), source_.Sge(0, 1)};
  ExpectRefusedPost(device_, PostSend(link.requester.get(), request));
  EXPECT_TRUE(StaysEmpty(device_, requester_cq_.get()));
}

TEST_F(RcPost, OperationsThatAnRcQpDoesNotKnowAreRefusedOnTheDefaultProfile) {
  Rule("POST-05");
  if (!device_.generic()) GTEST_SKIP() << "other devices check only the range";
  const Link link = MakeLink();
  SendRequest request = SmallWrite(1, IBV_SEND_SIGNALED);
  request.opcode = IBV_WR_TSO;
  const int result = PostSend(link.requester.get(), request);
  EXPECT_TRUE(result == EINVAL || result == EOPNOTSUPP) << result;
  request.opcode = static_cast<ibv_wr_opcode>(13);  // between the last operation and the next
  EXPECT_EQ(EINVAL, PostSend(link.requester.get(), request));
  EXPECT_TRUE(StaysEmpty(device_, requester_cq_.get()));
}

TEST_F(RcPost, InlineReadIsRefusedOnTheDefaultProfile) {
  Rule("POST-11");
  if (!device_.generic()) GTEST_SKIP() << "other devices do not check this";
  const Link link = MakeLink();
  SendRequest request = SmallWrite(1, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
  request.opcode = IBV_WR_RDMA_READ;
  EXPECT_EQ(EINVAL, PostSend(link.requester.get(), request));
}

// A request that is bad in two ways is refused for the first: operation, room, segments.
TEST_F(RcPost, AFullQueueIsReportedBeforeTooManySegments) {
  Rule("POST-04");
  const Link link = MakeSmallLink(8, 8);
  ASSERT_EQ(0, Move(link.requester.get(), IBV_QPS_SQD));
  for (uint32_t i = 0; i < requester_cap_.max_send_wr; ++i) {
    ASSERT_EQ(0, PostSend(link.requester.get(), SmallWrite(i, 0)));
  }
  for (uint32_t i = 0; i < responder_cap_.max_recv_wr; ++i) {
    ASSERT_EQ(0, PostReceive(link.responder.get(), i, {sink_.Sge(0, 8)}));
  }
  SendRequest request = SmallWrite(1, IBV_SEND_SIGNALED);
  request.segments.assign(requester_cap_.max_send_sge + 1, source_.Sge(0, 1));
  EXPECT_EQ(ENOMEM, PostSend(link.requester.get(), request));
  const std::vector<ibv_sge> segments(responder_cap_.max_recv_sge + 1, sink_.Sge(0, 1));
  EXPECT_EQ(ENOMEM, PostReceive(link.responder.get(), 1, segments));
  request.opcode = static_cast<ibv_wr_opcode>(99);
  EXPECT_EQ(EINVAL, PostSend(link.requester.get(), request));
}

TEST_F(RcPost, NegativeNumbersOfSegmentsAreRefusedOnTheSimulator) {
  Rule("POST-09");
  if (!device_.simulated()) GTEST_SKIP() << "devices differ";
  const Link link = MakeLink();
  ibv_send_wr send{};
  send.num_sge = -1;
  ibv_send_wr* bad_send = nullptr;
  EXPECT_EQ(EINVAL, ibv_post_send(link.requester.get(), &send, &bad_send));
  EXPECT_EQ(&send, bad_send);
  ibv_recv_wr receive{};
  receive.num_sge = -1;
  ibv_recv_wr* bad_receive = nullptr;
  EXPECT_EQ(EINVAL, ibv_post_recv(link.responder.get(), &receive, &bad_receive));
  EXPECT_EQ(&receive, bad_receive);
}

TEST_F(RcPost, NothingBehindABadRequestIsLookedAt) {
  Rule("POST-02");
  const Link link = MakeLink();
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(0, ibv_query_qp(link.requester.get(), &attr, IBV_QP_CAP, &init));
  SendRequest request{.segments = std::vector<ibv_sge>(init.cap.max_send_sge + 1)};
  ibv_send_wr send = MakeSendWr(request);
  send.next = reinterpret_cast<ibv_send_wr*>(8);  // whoever reads it dies
  ibv_send_wr* bad_send = nullptr;
  EXPECT_NE(0, ibv_post_send(link.requester.get(), &send, &bad_send));
  EXPECT_EQ(&send, bad_send);
  std::vector<ibv_sge> segments(init.cap.max_recv_sge + 1);
  ibv_recv_wr receive{};
  receive.next = reinterpret_cast<ibv_recv_wr*>(8);
  receive.sg_list = segments.data();
  receive.num_sge = static_cast<int>(segments.size());
  ibv_recv_wr* bad_receive = nullptr;
  EXPECT_EQ(EINVAL, ibv_post_recv(link.requester.get(), &receive, &bad_receive));
  EXPECT_EQ(&receive, bad_receive);
}

TEST_F(RcPost, SendListLongerThanTheQueueStopsWhereItIsFull) {
  Rule("POST-07");
  const Link link = MakeSmallLink(8, 8);
  const uint32_t slots = requester_cap_.max_send_wr;
  SendRequest request = SmallWrite(5, IBV_SEND_SIGNALED);
  std::vector<ibv_send_wr> wrs(slots + 3, MakeSendWr(request));
  for (uint32_t i = 0; i + 1 < wrs.size(); ++i) wrs[i].next = &wrs[i + 1];
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(ENOMEM, ibv_post_send(link.requester.get(), wrs.data(), &bad));
  EXPECT_EQ(&wrs[slots], bad);
  EXPECT_EQ(slots, Poll(device_, requester_cq_.get(), slots + 1, kQuiet).size());
}

TEST_F(RcPost, AnOperationTheDeviceLacksStopsTheListToo) {
  Rule("POST-01, POST-06");
  if (!device_.generic()) GTEST_SKIP() << "other devices have it";
  const Link link = MakeLink();
  SendRequest request = SmallWrite(1, IBV_SEND_SIGNALED);
  std::vector<ibv_send_wr> wrs(3, MakeSendWr(request));
  wrs[0].next = &wrs[1];
  wrs[1].next = &wrs[2];
  wrs[1].opcode = IBV_WR_LOCAL_INV;
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(EOPNOTSUPP, ibv_post_send(link.requester.get(), wrs.data(), &bad));
  EXPECT_EQ(&wrs[1], bad);
  EXPECT_EQ(1u, Poll(device_, requester_cq_.get(), 2, kQuiet).size());
}

TEST_F(RcPost, EmptyListsAreFine) {
  Rule("POST-03");
  const Link link = MakeLink();
  ibv_send_wr* bad_send = nullptr;
  ibv_recv_wr* bad_receive = nullptr;
  EXPECT_EQ(0, ibv_post_send(link.requester.get(), nullptr, &bad_send));
  EXPECT_EQ(0, ibv_post_recv(link.responder.get(), nullptr, &bad_receive));
  EXPECT_TRUE(StaysEmpty(device_, requester_cq_.get()));
}

// Which posts a state allows.
class RcPostInState : public RcPost {
 protected:
  RcPostInState()
      : qp_(MakeQp(device_, pd_.get(), RequesterOptions())),
        peer_(MakeQp(device_, pd_.get(), ResponderOptions())) {}

  void Enter(ibv_qp_state state) {
    BringTo(device_, qp_.get(), state, ConnectionAttributes(device_, peer_->qp_num, {}));
  }

  Qp qp_;
  Qp peer_;
};

TEST_F(RcPostInState, ResetAllowsNeither) {
  Rule("ST-01");
  ExpectRefusedPost(device_, PostSend(qp_.get(), SmallWrite(1, IBV_SEND_SIGNALED)));
  SendRequest request = SmallWrite(1, IBV_SEND_SIGNALED);
  ibv_send_wr wr = MakeSendWr(request);
  ibv_send_wr* bad = nullptr;
  EXPECT_NE(0, ibv_post_send(qp_.get(), &wr, &bad));
  EXPECT_EQ(&wr, bad);
  EXPECT_EQ(EINVAL, PostReceive(qp_.get(), 1, {source_.Sge(0, 8)}));
}

TEST_F(RcPostInState, InitAllowsReceivesAndKeepsThem) {
  Rule("ST-02");
  Enter(IBV_QPS_INIT);
  ExpectRefusedPost(device_, PostSend(qp_.get(), SmallWrite(1, IBV_SEND_SIGNALED)));
  ASSERT_EQ(0, PostReceive(qp_.get(), 5, {source_.Sge(0, 8)}));
  EXPECT_TRUE(StaysEmpty(device_, requester_cq_.get(), Microseconds(100)));
  ibv_qp_attr attr = ConnectionAttributes(device_, peer_->qp_num, {});
  attr.qp_state = IBV_QPS_RTR;
  ASSERT_EQ(0, ibv_modify_qp(qp_.get(), &attr, kRtrMask));
  BringTo(device_, peer_.get(), IBV_QPS_RTS, ConnectionAttributes(device_, qp_->qp_num, {}));
  ASSERT_EQ(0, PostSend(peer_.get(), {.segments = {sink_.Sge(0, 8)}}));
  EXPECT_EQ(IBV_WC_SUCCESS, PollOne(device_, responder_cq_.get()).status);
  EXPECT_EQ(5u, PollOne(device_, requester_cq_.get()).wr_id);
}

TEST_F(RcPostInState, ReadyToReceiveAllowsReceivesOnly) {
  Rule("ST-03");
  Enter(IBV_QPS_RTR);
  ExpectRefusedPost(device_, PostSend(qp_.get(), SmallWrite(1, IBV_SEND_SIGNALED)));
  EXPECT_EQ(0, PostReceive(qp_.get(), 5, {source_.Sge(0, 8)}));
}

TEST_F(RcPostInState, SendsPostedInSendQueueDrainedStartWithReadyToSend) {
  Rule("ST-06");
  Enter(IBV_QPS_RTS);
  BringTo(device_, peer_.get(), IBV_QPS_RTS, ConnectionAttributes(device_, qp_->qp_num, {}));
  ASSERT_EQ(0, Move(qp_.get(), IBV_QPS_SQD));
  source_.Fill(1, 0, 8);
  EXPECT_EQ(0, PostSend(qp_.get(), SmallWrite(1, IBV_SEND_SIGNALED)));
  EXPECT_TRUE(StaysEmpty(device_, requester_cq_.get()));
  EXPECT_TRUE(sink_.Untouched(0, 8));
  EXPECT_TRUE(device_.AsyncEvents(kQuiet).empty()) << "no event that was not asked for";
  ASSERT_EQ(0, Move(qp_.get(), IBV_QPS_RTS));
  EXPECT_EQ(IBV_WC_SUCCESS, PollOne(device_, requester_cq_.get()).status);
  EXPECT_TRUE(sink_.Holds(1, 0, 8));
}

TEST_F(RcPostInState, SendQueueDrainedRaisesItsEventWhenAsked) {
  Rule("ST-08");
  Enter(IBV_QPS_RTS);
  BringTo(device_, peer_.get(), IBV_QPS_RTS, ConnectionAttributes(device_, qp_->qp_num, {}));
  ASSERT_EQ(0, PostSend(qp_.get(), SmallWrite(1, IBV_SEND_SIGNALED)));
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_SQD;
  attr.en_sqd_async_notify = 1;
  ASSERT_EQ(0, ibv_modify_qp(qp_.get(), &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
  const std::vector<ibv_async_event> events = device_.AsyncEvents(kQuiet);
  ASSERT_EQ(1u, events.size());
  EXPECT_EQ(IBV_EVENT_SQ_DRAINED, events[0].event_type);
  EXPECT_EQ(qp_.get(), events[0].element.qp);
}

}  // namespace
}  // namespace simhca::conformance
