#include <cerrno>

#include "tests/conformance/fixture.h"

namespace simhca::conformance {
namespace {

// The state in which a send queue comes to rest: what was begun is finished, the rest waits.
class SendQueueDrained : public SrqTest {
 protected:
  SendQueueDrained() { CreateSrq(8); }

  int Drain(const Link& link, bool notify) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_SQD;
    attr.en_sqd_async_notify = notify ? 1 : 0;
    return ibv_modify_qp(link.requester.get(), &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
  }
  int Change(const Link& link, const ibv_qp_attr& wanted, int mask) {
    ibv_qp_attr attr = wanted;
    return ibv_modify_qp(link.requester.get(), &attr, mask);
  }
  bool Draining(const Link& link) {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    EXPECT_EQ(0, ibv_query_qp(link.requester.get(), &attr, IBV_QP_STATE, &init));
    return attr.sq_draining != 0;
  }
  SendRequest SmallSend(uint64_t wr_id, unsigned flags = IBV_SEND_SIGNALED) const {
    return {.wr_id = wr_id, .segments = {source_.Sge(0, kSlotBytes)}, .flags = flags};
  }
  // SQ_DRAINED events of `qp` that come within kQuiet; any other is a failure.
  size_t DrainedEvents(const ibv_qp* qp) {
    const std::vector<ibv_async_event> events = device_.AsyncEvents(kQuiet);
    for (const ibv_async_event& event : events) {
      EXPECT_EQ(IBV_EVENT_SQ_DRAINED, event.event_type);
      EXPECT_EQ(qp, event.element.qp);
    }
    return events.size();
  }
};

TEST_F(SendQueueDrained, ABegunMessageIsFinishedBeforeTheEvent) {
  Rule("ST-07, ST-08");
  const Link link = MakeLink({.min_rnr_timer = 12}, srq_.get());
  ASSERT_EQ(0, PostSend(link.requester.get(), SmallSend(1)));
  ASSERT_TRUE(StaysEmpty(device_, requester_cq_.get(), Milliseconds(1))) << "no receive is there";
  ASSERT_EQ(0, Drain(link, true));
  ASSERT_EQ(0, PostSend(link.requester.get(), SmallSend(2)));
  EXPECT_EQ(0u, DrainedEvents(link.requester.get()));
  EXPECT_TRUE(Draining(link));

  ASSERT_EQ(0, P(2));
  const ibv_wc begun = PollOne(device_, requester_cq_.get());
  EXPECT_EQ(IBV_WC_SUCCESS, begun.status);
  EXPECT_EQ(1u, begun.wr_id);
  EXPECT_EQ(1u, DrainedEvents(link.requester.get()));
  EXPECT_FALSE(Draining(link));
  EXPECT_TRUE(StaysEmpty(device_, requester_cq_.get())) << "the second was posted in SQD";

  ASSERT_EQ(0, Move(link.requester.get(), IBV_QPS_RTS));
  EXPECT_EQ(2u, PollOne(device_, requester_cq_.get()).wr_id);
  EXPECT_EQ((std::vector<uint64_t>{0, 1}), Receive(2));
  EXPECT_EQ(0u, DrainedEvents(link.requester.get()));
}

TEST_F(SendQueueDrained, TheEventComesOncePerMoveThatAskedForIt) {
  Rule("ST-08");
  const Link link = MakeLink({}, srq_.get());
  ASSERT_EQ(0, Drain(link, true));
  EXPECT_EQ(1u, DrainedEvents(link.requester.get())) << "an idle queue is drained at once";
  ASSERT_EQ(0, Move(link.requester.get(), IBV_QPS_RTS));
  ASSERT_EQ(0, Move(link.requester.get(), IBV_QPS_SQD));
  EXPECT_EQ(0u, DrainedEvents(link.requester.get())) << "not asked for this time";
  ASSERT_EQ(0, Move(link.requester.get(), IBV_QPS_RTS));
  ASSERT_EQ(0, Drain(link, false));
  EXPECT_EQ(0u, DrainedEvents(link.requester.get()));
  ASSERT_EQ(0, Move(link.requester.get(), IBV_QPS_RTS));
  ASSERT_EQ(0, Drain(link, true));
  EXPECT_EQ(1u, DrainedEvents(link.requester.get()));
}

TEST_F(SendQueueDrained, NoEventComesWhenTheQpLeavesBeforeItIsDrained) {
  Rule("ST-08");
  const Link link = MakeLink({.min_rnr_timer = 20}, srq_.get());
  ASSERT_EQ(0, PostSend(link.requester.get(), SmallSend(1)));
  ASSERT_TRUE(StaysEmpty(device_, requester_cq_.get(), Milliseconds(1)));
  ASSERT_EQ(0, Drain(link, true));
  ASSERT_EQ(0, Move(link.requester.get(), IBV_QPS_ERR));
  EXPECT_EQ(IBV_WC_WR_FLUSH_ERR, PollOne(device_, requester_cq_.get()).status);
  EXPECT_EQ(0u, DrainedEvents(link.requester.get()));
}

TEST_F(SendQueueDrained, ReceivesGoOn) {
  Rule("ST-09");
  const Link link = MakeLink({}, srq_.get());
  ASSERT_EQ(0, Move(link.requester.get(), IBV_QPS_SQD));
  ASSERT_EQ(0, PostReceive(link.requester.get(), 7, {source_.Sge(1000, 64)}));
  sink_.Fill(3, 0, 64);
  ASSERT_EQ(0, PostSend(link.responder.get(), {.segments = {sink_.Sge(0, 64)}}));
  EXPECT_EQ(IBV_WC_SUCCESS, PollOne(device_, responder_cq_.get()).status);
  EXPECT_EQ(7u, PollOne(device_, requester_cq_.get()).wr_id);
  EXPECT_TRUE(source_.Holds(3, 1000, 64));
  ASSERT_EQ(0, PostSend(link.responder.get(), {.segments = {sink_.Sge(2000, 5000)},
                                               .opcode = IBV_WR_RDMA_READ,
                                               .remote_address = source_.address(),
                                               .rkey = source_.rkey()}));
  EXPECT_EQ(IBV_WC_SUCCESS, PollOne(device_, responder_cq_.get()).status);
}

TEST_F(SendQueueDrained, WaitingSendsAreFlushedInOrderByTheErrorState) {
  Rule("ST-11");
  const Link link = MakeLink({}, srq_.get());
  ASSERT_EQ(0, Move(link.requester.get(), IBV_QPS_SQD));
  for (uint64_t id = 1; id <= 5; ++id) {
    ASSERT_EQ(0, PostSend(link.requester.get(), SmallSend(id, id % 2 ? 0 : IBV_SEND_SIGNALED)));
  }
  ASSERT_EQ(0, Move(link.requester.get(), IBV_QPS_ERR));
  const std::vector<ibv_wc> flushed = Poll(device_, requester_cq_.get(), 5);
  EXPECT_EQ((std::vector<uint64_t>{1, 2, 3, 4, 5}), IdsOf(flushed));
  EXPECT_EQ(std::vector<ibv_wc_status>(5, IBV_WC_WR_FLUSH_ERR), StatusesOf(flushed));
}

TEST_F(SendQueueDrained, WaitingSendsVanishWithAReset) {
  Rule("ST-11");
  const Link link = MakeLink({}, srq_.get());
  ASSERT_EQ(0, Move(link.requester.get(), IBV_QPS_SQD));
  ASSERT_EQ(0, PostSend(link.requester.get(), SmallSend(1)));
  ASSERT_EQ(0, Move(link.requester.get(), IBV_QPS_RESET));
  EXPECT_TRUE(StaysEmpty(device_, requester_cq_.get()));
}

TEST_F(SendQueueDrained, AChangedRnrRetryCountIsTheOneThatCounts) {
  Rule("ST-10");
  const Link link = MakeLink({.rnr_retry = 7, .min_rnr_timer = 12}, srq_.get());
  ASSERT_EQ(0, Move(link.requester.get(), IBV_QPS_SQD));
  ibv_qp_attr attr{};
  attr.rnr_retry = 2;
  ASSERT_EQ(0, Change(link, attr, IBV_QP_RNR_RETRY));
  EXPECT_EQ(IBV_QPS_SQD, StateOf(link.requester.get()));
  ASSERT_EQ(0, Move(link.requester.get(), IBV_QPS_RTS));
  const Nanoseconds start = device_.Now();
  ASSERT_EQ(0, PostSend(link.requester.get(), SmallSend(1)));
  EXPECT_EQ(IBV_WC_RNR_RETRY_EXC_ERR, PollOne(device_, requester_cq_.get()).status);
  const Nanoseconds elapsed = device_.Now() - start;
  EXPECT_GE(elapsed, 2 * Microseconds(640));
  if (VirtualTime()) {
    EXPECT_LT(elapsed, 3 * Microseconds(640));
  }

  // And upwards.
  const Link other = MakeLink({.rnr_retry = 0, .min_rnr_timer = 12}, srq_.get());
  ASSERT_EQ(0, Move(other.requester.get(), IBV_QPS_SQD));
  attr.rnr_retry = 7;
  ASSERT_EQ(0, Change(other, attr, IBV_QP_RNR_RETRY));
  ASSERT_EQ(0, Move(other.requester.get(), IBV_QPS_RTS));
  ASSERT_EQ(0, PostSend(other.requester.get(), SmallSend(1)));
  EXPECT_TRUE(StaysEmpty(device_, requester_cq_.get(), Milliseconds(2)));
  ASSERT_EQ(0, P(1));
  EXPECT_EQ(IBV_WC_SUCCESS, PollOne(device_, requester_cq_.get()).status);
}

TEST_F(SendQueueDrained, AChangedRetryCountAndTimeoutAreTheOnesThatCount) {
  Rule("ST-10");
  // Code 12 is 16.8 ms: seven retries take at least 134 ms, none at most four times one timeout.
  const Link link = MakeLink({.timeout = 12, .retry_count = 7}, srq_.get());
  ASSERT_EQ(0, Move(link.responder.get(), IBV_QPS_RESET));
  ASSERT_EQ(0, Move(link.requester.get(), IBV_QPS_SQD));
  ibv_qp_attr attr{};
  attr.retry_cnt = 0;
  attr.timeout = 8;  // 1.05 ms
  ASSERT_EQ(0, Change(link, attr, IBV_QP_RETRY_CNT | IBV_QP_TIMEOUT));
  ASSERT_EQ(0, Move(link.requester.get(), IBV_QPS_RTS));
  const Nanoseconds start = device_.Now();
  ASSERT_EQ(0, PostSend(link.requester.get(), SmallSend(1)));
  EXPECT_EQ(IBV_WC_RETRY_EXC_ERR, PollOne(device_, requester_cq_.get()).status);
  EXPECT_GE(device_.Now() - start, Microseconds(1048));
  if (VirtualTime()) {
    EXPECT_LT(device_.Now() - start, Milliseconds(8));
  }
}

TEST_F(SendQueueDrained, AccessAndTimerOfTheReceivingSideCanBeChanged) {
  Rule("ST-10");
  const Link link = MakeLink({.min_rnr_timer = 0}, srq_.get());
  ASSERT_EQ(0, Move(link.requester.get(), IBV_QPS_SQD));
  ibv_qp_attr attr{};
  attr.min_rnr_timer = 1;
  attr.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
  ASSERT_EQ(0, Change(link, attr, IBV_QP_MIN_RNR_TIMER | IBV_QP_ACCESS_FLAGS));
  const Nanoseconds start = device_.Now();
  ASSERT_EQ(0, PostSend(link.responder.get(), {.segments = {sink_.Sge(0, 8)}}));
  EXPECT_TRUE(StaysEmpty(device_, responder_cq_.get(), Microseconds(200)));
  ASSERT_EQ(0, PostReceive(link.requester.get(), 7, {source_.Sge(0, 64)}));
  EXPECT_EQ(IBV_WC_SUCCESS, PollOne(device_, responder_cq_.get()).status);
  if (VirtualTime()) {
    EXPECT_LT(device_.Now() - start, Milliseconds(1)) << "the old timer is 655 ms";
  }
  ASSERT_EQ(0, PostSend(link.responder.get(), {.segments = {sink_.Sge(0, 8)},
                                               .opcode = IBV_WR_RDMA_WRITE,
                                               .remote_address = source_.address(),
                                               .rkey = source_.rkey()}));
  EXPECT_EQ(IBV_WC_REM_INV_REQ_ERR, PollOne(device_, responder_cq_.get()).status);
}

TEST_F(SendQueueDrained, ThePathCanBeGivenAgain) {
  Rule("ST-10");
  const Link link = MakeLink({}, srq_.get());
  ASSERT_EQ(0, Move(link.requester.get(), IBV_QPS_SQD));
  const ibv_qp_attr attr = ConnectionAttributes(device_, link.responder->qp_num, {});
  ASSERT_EQ(0, Change(link, attr, IBV_QP_AV | IBV_QP_PORT));
  ASSERT_EQ(0, Change(link, attr, IBV_QP_AV));
  ASSERT_EQ(0, Move(link.requester.get(), IBV_QPS_RTS));
  ASSERT_EQ(0, P(1));
  SendAndReceive(link, 1);
}

}  // namespace
}  // namespace simhca::conformance
