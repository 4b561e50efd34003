#include <cerrno>

#include "tests/conformance/fixture.h"

namespace simhca::conformance {
namespace {

constexpr Nanoseconds kCode0 = Microseconds(655360);
constexpr Nanoseconds kCode12 = Microseconds(640);

// What may pass between the moment a device acts and the moment a test sees it.
Nanoseconds Slack() {
  return VirtualTime() ? Nanoseconds(Microseconds(100)) : Nanoseconds(Seconds(2));
}

// Messages that find no receive.
class Rnr : public SrqCases {
 protected:
  // Sends one message on `link`, posts a receive when 1 ms has passed, and returns the time from
  // the send to its success.
  Nanoseconds DeliveryTime(const Link& link) {
    const Nanoseconds start = device_.Now();
    EXPECT_EQ(0, PostSend(link.requester.get(), {.segments = {source_.Sge(0, kSlotBytes)}}));
    EXPECT_TRUE(StaysEmpty(device_, requester_cq_.get(), Milliseconds(1)));
    EXPECT_EQ(0, P(1));
    EXPECT_EQ(IBV_WC_SUCCESS, PollOne(device_, requester_cq_.get()).status);
    const Nanoseconds elapsed = device_.Now() - start;
    Receive(1);
    return elapsed;
  }
};

TEST_F(Rnr, Row24TimerCodeZeroStallsTheSenderFor655Milliseconds) {
  Rule("QPM-25");
  CreateSrq(4);
  const Link link = MakeLink({.rnr_retry = 7, .min_rnr_timer = 0}, srq_.get());
  source_.Fill(1, 0, kSlotBytes);
  const Nanoseconds elapsed = DeliveryTime(link);
  Record("delivered_after", elapsed);
  EXPECT_GE(elapsed, kCode0);
  EXPECT_LT(elapsed, kCode0 + Slack());
  EXPECT_TRUE(sink_.Holds(1, 0, kSlotBytes));
  EXPECT_TRUE(device_.AsyncEvents(kQuiet).empty());
}

TEST_F(Rnr, Row25TimerCode12DeliversAtTheNextMultipleOf640Microseconds) {
  Rule("QPM-25");
  CreateSrq(4);
  const Link link = MakeLink({.rnr_retry = 7, .min_rnr_timer = 12}, srq_.get());
  const Nanoseconds elapsed = DeliveryTime(link);
  Record("delivered_after", elapsed);
  EXPECT_GE(elapsed, VirtualTime() ? 2 * kCode12 : kCode12);
  EXPECT_LT(elapsed, 2 * kCode12 + Slack());
}

TEST_F(Rnr, Row26RetryCountZeroFailsAtOnceAtTheSenderOnly) {
  Rule("CE-10");
  CreateSrq(4);
  const Link link = MakeLink({.rnr_retry = 0, .min_rnr_timer = 0}, srq_.get());
  const Nanoseconds start = device_.Now();
  ASSERT_EQ(0, PostSend(link.requester.get(), {.wr_id = 1, .segments = {source_.Sge(0, 32)}}));
  const ibv_wc failed = PollOne(device_, requester_cq_.get());
  EXPECT_LT(device_.Now() - start, kCode0) << "no retry, so no wait";
  EXPECT_EQ(IBV_WC_RNR_RETRY_EXC_ERR, failed.status);
  EXPECT_EQ(1u, failed.wr_id);
  EXPECT_EQ(link.requester->qp_num, failed.qp_num);
  EXPECT_EQ(IBV_QPS_ERR, StateOf(link.requester.get()));
  EXPECT_EQ(IBV_QPS_RTS, StateOf(link.responder.get()));
  EXPECT_TRUE(StaysEmpty(device_, responder_cq_.get()));
  EXPECT_TRUE(StaysEmpty(device_, requester_cq_.get())) << "exactly one completion";
  EXPECT_TRUE(device_.AsyncEvents(kQuiet).empty());
}

TEST_F(Rnr, Row26TheRestOfTheSendQueueIsFlushedInOrder) {
  Rule("CE-13");
  CreateSrq(4);
  const Link link = MakeLink({.rnr_retry = 0}, srq_.get());
  ASSERT_EQ(0, P(2));
  SendRequest requests[5];
  ibv_send_wr wrs[5];
  for (int i = 0; i < 5; ++i) {
    requests[i] = {.wr_id = static_cast<uint64_t>(i), .segments = {source_.Sge(0, 32)}};
    // Errors complete whether or not the work request is signalled.
    if (i >= 3) requests[i].flags = 0;
    wrs[i] = MakeSendWr(requests[i]);
    if (i > 0) wrs[i - 1].next = &wrs[i];
  }
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(0, ibv_post_send(link.requester.get(), wrs, &bad));
  const std::vector<ibv_wc> completions = Poll(device_, requester_cq_.get(), 5);
  EXPECT_EQ((std::vector<uint64_t>{0, 1, 2, 3, 4}), IdsOf(completions));
  EXPECT_EQ((std::vector<ibv_wc_status>{IBV_WC_SUCCESS, IBV_WC_SUCCESS, IBV_WC_RNR_RETRY_EXC_ERR,
                                        IBV_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR}),
            StatusesOf(completions));
  EXPECT_EQ((std::vector<uint64_t>{0, 1}), Receive(2));
}

TEST_F(Rnr, Row27RetryCountIsSpentExactlyBeforeTheError) {
  Rule("CE-11");
  CreateSrq(4);
  for (uint8_t retries = 1; retries <= 6; ++retries) {
    SCOPED_TRACE(static_cast<int>(retries));
    const Link link = MakeLink({.rnr_retry = retries, .min_rnr_timer = 12}, srq_.get());
    const Nanoseconds start = device_.Now();
    ASSERT_EQ(0, PostSend(link.requester.get(), {.segments = {source_.Sge(0, 32)}}));
    EXPECT_EQ(IBV_WC_RNR_RETRY_EXC_ERR, PollOne(device_, requester_cq_.get()).status);
    const Nanoseconds elapsed = device_.Now() - start;
    Record("failed_after_" + std::to_string(retries) + "_retries", elapsed);
    EXPECT_GE(elapsed, retries * kCode12);
    EXPECT_LT(elapsed, retries * kCode12 + Slack());
  }
}

TEST_F(Rnr, RetryCountIsRefilledByProgress) {
  Rule("CE-10");
  CreateSrq(4);
  // A long timer, so that a busy machine does not make this program late by two of them.
  const Link link = MakeLink({.rnr_retry = 2, .min_rnr_timer = 27}, srq_.get());  // 122.88 ms
  for (int message = 0; message < 3; ++message) {
    ASSERT_EQ(0, PostSend(link.requester.get(), {.segments = {source_.Sge(0, 32)}}));
    ASSERT_TRUE(StaysEmpty(device_, requester_cq_.get(), Milliseconds(1)));
    ASSERT_EQ(0, P(1));
    ASSERT_EQ(IBV_WC_SUCCESS, PollOne(device_, requester_cq_.get()).status);
    Receive(1);
  }
}

TEST_F(Rnr, RetryCountSevenNeverGivesUp) {
  Rule("CE-10");
  CreateSrq(4);
  const Link link = MakeLink({.rnr_retry = 7, .min_rnr_timer = 1}, srq_.get());
  ASSERT_EQ(0, PostSend(link.requester.get(), {.segments = {source_.Sge(0, 32)}}));
  EXPECT_TRUE(StaysEmpty(device_, requester_cq_.get(), Milliseconds(2))) << "some 200 retries";
  ASSERT_EQ(0, P(1));
  EXPECT_EQ(IBV_WC_SUCCESS, PollOne(device_, requester_cq_.get()).status);
  EXPECT_EQ(1u, Receive(1).size());
}

TEST_F(Rnr, TheTimerIsTheResponders) {
  Rule("QPM-25");
  CreateSrq(4);
  const Link link{MakeQp(device_, pd_.get(), RequesterOptions()),
                  MakeQp(device_, pd_.get(), ResponderOptions(srq_.get()))};
  BringTo(
      device_, link.requester.get(), IBV_QPS_RTS,
      ConnectionAttributes(device_, link.responder->qp_num, {.rnr_retry = 1, .min_rnr_timer = 0}));
  BringTo(device_, link.responder.get(), IBV_QPS_RTS,
          ConnectionAttributes(device_, link.requester->qp_num, {.min_rnr_timer = 12}));
  const Nanoseconds start = device_.Now();
  ASSERT_EQ(0, PostSend(link.requester.get(), {.segments = {source_.Sge(0, 32)}}));
  EXPECT_EQ(IBV_WC_RNR_RETRY_EXC_ERR, PollOne(device_, requester_cq_.get()).status);
  EXPECT_GE(device_.Now() - start, kCode12);
  EXPECT_LT(device_.Now() - start, kCode0);
}

TEST_F(Rnr, AReceiveIsNotKeptForTheSenderThatWasRefused) {
  Rule("CE-10");
  CreateSrq(4);
  const Link stalled = MakeLink({.min_rnr_timer = 0}, srq_.get());
  const Link other = MakeLink({.min_rnr_timer = 12}, srq_.get());
  const Nanoseconds start = device_.Now();
  ASSERT_EQ(0, PostSend(stalled.requester.get(), {.wr_id = 9, .segments = {source_.Sge(0, 32)}}));
  EXPECT_TRUE(StaysEmpty(device_, requester_cq_.get(), Milliseconds(1)));
  ASSERT_EQ(0, P(1));
  EXPECT_EQ(std::vector<uint64_t>{0}, SendAndReceive(other, 1));
  ASSERT_EQ(0, P(1));
  const ibv_wc late = PollOne(device_, requester_cq_.get());
  EXPECT_EQ(IBV_WC_SUCCESS, late.status);
  EXPECT_EQ(9u, late.wr_id);
  EXPECT_GE(device_.Now() - start, kCode0);
  EXPECT_EQ(std::vector<uint64_t>{1}, Receive(1));
}

TEST_F(Rnr, MessagesBehindARefusedOneKeepTheirOrder) {
  Rule("CE-10");
  CreateSrq(8);
  const Link link = MakeLink({.min_rnr_timer = 12}, srq_.get());
  for (uint32_t i = 0; i < 6; ++i) {
    source_.Fill(i + 1, i * kSlotBytes, kSlotBytes);
    ASSERT_EQ(0, PostSend(link.requester.get(),
                          {.wr_id = i, .segments = {source_.Sge(i * kSlotBytes, kSlotBytes)}}));
  }
  EXPECT_TRUE(StaysEmpty(device_, requester_cq_.get(), Milliseconds(1)));
  ASSERT_EQ(0, P(6));
  EXPECT_EQ((std::vector<uint64_t>{0, 1, 2, 3, 4, 5}),
            IdsOf(Poll(device_, requester_cq_.get(), 6)));
  EXPECT_EQ((std::vector<uint64_t>{0, 1, 2, 3, 4, 5}), Receive(6));
  for (uint32_t i = 0; i < 6; ++i) EXPECT_TRUE(sink_.Holds(i + 1, i * kSlotBytes, kSlotBytes));
}

// Requests that get no answer at all.
class RetryExhaustion : public RcTest {};

TEST_F(RetryExhaustion, PeerInResetCostsEveryRetryAndThenFails) {
  Rule("ST-05, CE-12");
  const Link link{MakeQp(device_, pd_.get(), RequesterOptions()),
                  MakeQp(device_, pd_.get(), ResponderOptions())};
  constexpr uint8_t kRetries = 3;
  const Nanoseconds timeout(4096 * (1 << 8));  // code 8: 1.05 ms
  BringTo(device_, link.requester.get(), IBV_QPS_RTS,
          ConnectionAttributes(device_, link.responder->qp_num,
                               {.timeout = 8, .retry_count = kRetries}));
  const Nanoseconds start = device_.Now();
  for (uint64_t id = 0; id < 3; ++id) {
    ASSERT_EQ(0, PostSend(link.requester.get(), {.wr_id = id, .segments = {source_.Sge(0, 32)}}));
  }
  const std::vector<ibv_wc> completions = Poll(device_, requester_cq_.get(), 3);
  const Nanoseconds elapsed = device_.Now() - start;
  EXPECT_EQ((std::vector<uint64_t>{0, 1, 2}), IdsOf(completions));
  EXPECT_EQ(
      (std::vector<ibv_wc_status>{IBV_WC_RETRY_EXC_ERR, IBV_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR}),
      StatusesOf(completions));
  EXPECT_EQ(IBV_QPS_ERR, StateOf(link.requester.get()));
  EXPECT_EQ(IBV_QPS_RESET, StateOf(link.responder.get()));
  Record("failed_after", elapsed);
  EXPECT_GE(elapsed, (kRetries + 1) * timeout);
  if (VirtualTime()) {
    EXPECT_LT(elapsed, 4 * (kRetries + 1) * timeout + Slack()) << "a device may take four times";
  }
}

TEST_F(RetryExhaustion, PeerInInitDropsWhatComesAndKeepsItsReceive) {
  Rule("ST-05");
  const Link link{MakeQp(device_, pd_.get(), RequesterOptions()),
                  MakeQp(device_, pd_.get(), ResponderOptions())};
  const ConnectOptions options{.timeout = 8, .retry_count = 1};
  BringTo(device_, link.responder.get(), IBV_QPS_INIT,
          ConnectionAttributes(device_, link.requester->qp_num, options));
  ASSERT_EQ(0, PostReceive(link.responder.get(), 7, {sink_.Sge(0, 32)}));
  BringTo(device_, link.requester.get(), IBV_QPS_RTS,
          ConnectionAttributes(device_, link.responder->qp_num, options));
  ASSERT_EQ(0, PostSend(link.requester.get(), {.segments = {source_.Sge(0, 32)}}));
  EXPECT_EQ(IBV_WC_RETRY_EXC_ERR, PollOne(device_, requester_cq_.get()).status);
  EXPECT_TRUE(Poll(device_, responder_cq_.get(), 1, kQuiet).empty());
  EXPECT_EQ(IBV_QPS_INIT, StateOf(link.responder.get()));
  // Another requester, and the receive is used.
  const Qp second = MakeQp(device_, pd_.get(), RequesterOptions());
  ibv_qp_attr attr = ConnectionAttributes(device_, second->qp_num, options);
  attr.qp_state = IBV_QPS_RTR;
  ASSERT_EQ(0, ibv_modify_qp(link.responder.get(), &attr, kRtrMask));
  BringTo(device_, second.get(), IBV_QPS_RTS,
          ConnectionAttributes(device_, link.responder->qp_num, options));
  ASSERT_EQ(0, PostSend(second.get(), {.segments = {source_.Sge(0, 32)}}));
  EXPECT_EQ(7u, PollOne(device_, responder_cq_.get()).wr_id);
}

TEST_F(RetryExhaustion, PeerInErrorIsNoticedOnlyByTheRetries) {
  Rule("ST-13");
  const Link link = MakeLink({.timeout = 8, .retry_count = 1});
  ASSERT_EQ(0, Move(link.responder.get(), IBV_QPS_ERR));
  EXPECT_EQ(IBV_QPS_RTS, StateOf(link.requester.get())) << "the peer is told nothing";
  ASSERT_EQ(0, PostSend(link.requester.get(), {.segments = {source_.Sge(0, 32)}}));
  EXPECT_EQ(IBV_WC_RETRY_EXC_ERR, PollOne(device_, requester_cq_.get()).status);
}

TEST_F(RetryExhaustion, PeerThatWasDestroyedIsNoticedByTheRetries) {
  Rule("CE-12");
  Link link = MakeLink({.timeout = 8, .retry_count = 1});
  link.responder.reset();
  ASSERT_EQ(0, PostSend(link.requester.get(), {.segments = {source_.Sge(0, 32)}}));
  EXPECT_EQ(IBV_WC_RETRY_EXC_ERR, PollOne(device_, requester_cq_.get()).status);
}

TEST_F(RetryExhaustion, ARetryThatIsAnsweredInTimeSucceeds) {
  Rule("ST-05");
  const Link link{MakeQp(device_, pd_.get(), RequesterOptions()),
                  MakeQp(device_, pd_.get(), ResponderOptions())};
  const ConnectOptions options{.timeout = 14, .retry_count = 7};  // 67 ms each
  BringTo(device_, link.requester.get(), IBV_QPS_RTS,
          ConnectionAttributes(device_, link.responder->qp_num, options));
  source_.Fill(4, 0, 5000);
  ASSERT_EQ(0, PostSend(link.requester.get(), {.segments = {source_.Sge(0, 5000)}}));
  EXPECT_TRUE(StaysEmpty(device_, requester_cq_.get(), Milliseconds(1)));
  BringTo(device_, link.responder.get(), IBV_QPS_RTS,
          ConnectionAttributes(device_, link.requester->qp_num, options));
  ASSERT_EQ(0, PostReceive(link.responder.get(), 1, {sink_.Sge(0, 5000)}));
  EXPECT_EQ(IBV_WC_SUCCESS, PollOne(device_, requester_cq_.get()).status);
  EXPECT_EQ(5000u, PollOne(device_, responder_cq_.get()).byte_len);
  EXPECT_TRUE(sink_.Holds(4, 0, 5000));
}

}  // namespace
}  // namespace simhca::conformance
