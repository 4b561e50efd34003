#include <algorithm>
#include <cerrno>
#include <climits>

#include "tests/conformance/fixture.h"

namespace simhca::conformance {
namespace {

class CqBasics : public RcTest {
 protected:
  void ExpectRefused(int entries, int vector) {
    errno = 0;
    EXPECT_EQ(nullptr, ibv_create_cq(device_.context(), entries, nullptr, nullptr, vector));
    EXPECT_EQ(EINVAL, errno);
  }
  // A link whose requester completes to `cq`.
  Link MakeLinkTo(ibv_cq* cq) {
    QpOptions options = RequesterOptions();
    options.send_cq = cq;
    Link link{MakeQp(device_, pd_.get(), options), MakeQp(device_, pd_.get(), ResponderOptions())};
    Connect(device_, link.requester.get(), link.responder.get());
    return link;
  }
  SendRequest SmallWrite(uint64_t wr_id) const {
    return {.wr_id = wr_id,
            .segments = {source_.Sge(0, 8)},
            .opcode = IBV_WR_RDMA_WRITE,
            .remote_address = sink_.address(),
            .rkey = sink_.rkey()};
  }
  // Posts `count` writes and waits until they are done, without polling their CQ.
  void Complete(const Link& link, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      ASSERT_EQ(0, PostSend(link.requester.get(), SmallWrite(i)));
    }
    EXPECT_TRUE(StaysEmpty(device_, responder_cq_.get()));
  }
};

TEST_F(CqBasics, CreateFillsInWhatWasGiven) {
  Rule("CQ-02");
  int own = 0;
  const Channel channel = MakeChannel(device_);
  const Cq cq = MakeCq(device_, 10, channel.get(), &own);
  EXPECT_EQ(device_.context(), cq->context);
  EXPECT_EQ(channel.get(), cq->channel);
  EXPECT_EQ(&own, cq->cq_context);
  EXPECT_GE(cq->cqe, 10);
  EXPECT_EQ(0u, cq->comp_events_completed);
  EXPECT_EQ(0u, cq->async_events_completed);
}

TEST_F(CqBasics, SizesAndVectorsOutOfRangeAreRefused) {
  Rule("CQ-01");
  ExpectRefused(0, 0);
  ExpectRefused(-1, 0);
  ExpectRefused(INT_MIN, 0);
  ExpectRefused(device_.attributes().max_cqe + 1, 0);
  ExpectRefused(INT_MAX, 0);
  ExpectRefused(10, device_.context()->num_comp_vectors);
  EXPECT_GE(device_.context()->num_comp_vectors, 1);
}

TEST_F(CqBasics, PollingNothingGivesZero) {
  Rule("RET-04, CQ-08");
  ibv_wc wc{};
  EXPECT_EQ(0, ibv_poll_cq(requester_cq_.get(), 1, &wc));
  EXPECT_EQ(0, ibv_poll_cq(requester_cq_.get(), 0, &wc));
  EXPECT_EQ(0, ibv_poll_cq(requester_cq_.get(), -1, &wc));
}

TEST_F(CqBasics, OnePollTakesAtMostWhatItWasAskedFor) {
  Rule("CQ-08");
  const Cq cq = MakeCq(device_, 16);
  const Link link = MakeLinkTo(cq.get());
  Complete(link, 5);
  ibv_wc wcs[8] = {};
  EXPECT_EQ(2, ibv_poll_cq(cq.get(), 2, wcs));
  EXPECT_EQ(0u, wcs[0].wr_id);
  EXPECT_EQ(1u, wcs[1].wr_id);
  EXPECT_EQ(0, ibv_poll_cq(cq.get(), 0, wcs));
  EXPECT_EQ(3, ibv_poll_cq(cq.get(), 8, wcs));
  EXPECT_EQ(2u, wcs[0].wr_id);
  EXPECT_EQ(4u, wcs[2].wr_id);
  EXPECT_EQ(0, ibv_poll_cq(cq.get(), 8, wcs));
}

TEST_F(CqBasics, TheRingIsUsedOverAndOver) {
  Rule("CQ-08");
  const Cq cq = MakeCq(device_, 3);
  const Link link = MakeLinkTo(cq.get());
  for (uint64_t id = 0; id < 200; ++id) {
    ASSERT_EQ(0, PostSend(link.requester.get(), SmallWrite(id)));
    EXPECT_EQ(id, PollOne(device_, cq.get()).wr_id);
  }
}

TEST_F(CqBasics, ResizeKeepsUnpolledCompletionsInOrder) {
  Rule("CQ-10");
  const Cq cq = MakeCq(device_, 8);
  const Link link = MakeLinkTo(cq.get());
  Complete(link, 8);
  ASSERT_EQ(0u, PollOne(device_, cq.get()).wr_id);
  ASSERT_EQ(0, ibv_resize_cq(cq.get(), 40));
  EXPECT_GE(cq->cqe, 40);
  for (uint32_t i = 8; i < 40; ++i) {
    ASSERT_EQ(0, PostSend(link.requester.get(), SmallWrite(i)));
  }
  const std::vector<ibv_wc> wcs = Poll(device_, cq.get(), 39);
  ASSERT_EQ(39u, wcs.size());
  for (uint32_t i = 0; i < 39; ++i) EXPECT_EQ(i + 1, wcs[i].wr_id);
  EXPECT_TRUE(device_.AsyncEvents(Microseconds(100)).empty());

  ASSERT_EQ(0, ibv_resize_cq(cq.get(), 4));
  EXPECT_GE(cq->cqe, 4);
  for (uint64_t id = 0; id < 20; ++id) {
    ASSERT_EQ(0, PostSend(link.requester.get(), SmallWrite(id)));
    EXPECT_EQ(id, PollOne(device_, cq.get()).wr_id);
  }
}

TEST_F(CqBasics, ResizeBelowTheUnpolledCompletionsIsRefused) {
  Rule("CQ-09");
  const Cq cq = MakeCq(device_, 32);
  const Link link = MakeLinkTo(cq.get());
  Complete(link, 20);
  const int before = cq->cqe;
  EXPECT_EQ(EINVAL, ibv_resize_cq(cq.get(), 4));
  EXPECT_EQ(EINVAL, ibv_resize_cq(cq.get(), 0));
  EXPECT_EQ(EINVAL, ibv_resize_cq(cq.get(), -1));
  EXPECT_EQ(EINVAL, ibv_resize_cq(cq.get(), device_.attributes().max_cqe + 1));
  EXPECT_EQ(before, cq->cqe);
  const std::vector<ibv_wc> wcs = Poll(device_, cq.get(), 20);
  ASSERT_EQ(20u, wcs.size());
  for (uint32_t i = 0; i < 20; ++i) EXPECT_EQ(i, wcs[i].wr_id);
}

TEST_F(CqBasics, OneCqServesSendsAndReceivesOfSeveralQps) {
  Rule("CQ-08");
  const Cq cq = MakeCq(device_, 64);
  QpOptions options;
  options.send_cq = cq.get();
  options.receive_cq = cq.get();
  const Qp a = MakeQp(device_, pd_.get(), options);
  const Qp b = MakeQp(device_, pd_.get(), options);
  Connect(device_, a.get(), b.get());
  ASSERT_EQ(0, PostReceive(b.get(), 1, {sink_.Sge(0, 8)}));
  ASSERT_EQ(0, PostReceive(a.get(), 2, {sink_.Sge(8, 8)}));
  ASSERT_EQ(0, PostSend(a.get(), {.wr_id = 3, .segments = {source_.Sge(0, 8)}}));
  ASSERT_EQ(0, PostSend(b.get(), {.wr_id = 4, .segments = {source_.Sge(0, 8)}}));
  unsigned seen = 0;
  for (const ibv_wc& wc : Poll(device_, cq.get(), 4)) {
    EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
    EXPECT_EQ(wc.wr_id == 2 || wc.wr_id == 3 ? a->qp_num : b->qp_num, wc.qp_num);
    EXPECT_EQ(wc.wr_id <= 2 ? IBV_WC_RECV : IBV_WC_SEND, wc.opcode);
    seen |= 1u << wc.wr_id;
  }
  EXPECT_EQ(0x1eu, seen);
}

TEST_F(CqBasics, OverrunRaisesCqErrAndStopsItsQps) {
  Rule("CQ-15");
  const Cq cq = MakeCq(device_, 4);
  QpOptions options = RequesterOptions();
  options.send_cq = cq.get();
  options.cap.max_send_wr = 64;
  const Link link{MakeQp(device_, pd_.get(), options),
                  MakeQp(device_, pd_.get(), ResponderOptions())};
  Connect(device_, link.requester.get(), link.responder.get());
  // A ring has at most twice the entries that its size admits to.
  const uint32_t count = std::min(64, 2 * (cq->cqe + 1) + 2);
  for (uint32_t i = 0; i < count; ++i) {
    ASSERT_EQ(0, PostSend(link.requester.get(), SmallWrite(i)));
  }
  std::optional<ibv_async_event> event = device_.NextAsyncEvent(kPatience);
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(IBV_EVENT_CQ_ERR, event->event_type);
  EXPECT_EQ(cq.get(), event->element.cq);
  ibv_ack_async_event(&*event);
  EXPECT_EQ(IBV_QPS_ERR, StateOf(link.requester.get()));
}

TEST_F(CqBasics, WhatAnErrorLeavesValidNamesTheRequest) {
  Rule("CE-14");
  const Cq cq = MakeCq(device_, 16);
  const Link link = MakeLinkTo(cq.get());
  SendRequest write = SmallWrite(0x123456789abcdef0);
  write.rkey ^= 0x5500;
  ASSERT_EQ(0, PostSend(link.requester.get(), write));
  const ibv_wc wc = PollOne(device_, cq.get());
  EXPECT_EQ(0x123456789abcdef0u, wc.wr_id);
  EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, wc.status);
  EXPECT_EQ(link.requester->qp_num, wc.qp_num);
  EXPECT_STREQ("remote access error", ibv_wc_status_str(wc.status));
}

// The second queue pair on the CQ learns of it at its next completion at the latest.
TEST_F(CqBasics, OverrunOfOneQpStopsTheOtherQpsOfTheCqToo) {
  Rule("CQ-16");
  const Cq cq = MakeCq(device_, 4);
  const Link first = MakeLinkTo(cq.get());
  const Link second = MakeLinkTo(cq.get());
  const uint32_t count = std::min(64, 2 * (cq->cqe + 1) + 2);
  for (uint32_t i = 0; i < count; ++i) {
    ASSERT_EQ(0, PostSend(first.requester.get(), SmallWrite(i)));
  }
  EXPECT_TRUE(StaysEmpty(device_, responder_cq_.get()));
  EXPECT_EQ(IBV_QPS_ERR, StateOf(first.requester.get()));
  ASSERT_EQ(0, PostSend(second.requester.get(), SmallWrite(0)));
  const std::vector<ibv_async_event> events = device_.AsyncEvents(kQuiet);
  ASSERT_EQ(1u, events.size()) << "one event, however many completions are lost";
  EXPECT_EQ(IBV_EVENT_CQ_ERR, events[0].event_type);
  EXPECT_EQ(cq.get(), events[0].element.cq);
  EXPECT_EQ(IBV_QPS_ERR, StateOf(second.requester.get()));
  EXPECT_EQ(IBV_QPS_RTS, StateOf(first.responder.get())) << "on another CQ";
}

TEST_F(CqBasics, OverrunByReceivesStopsTheResponder) {
  Rule("CQ-15");
  const Cq cq = MakeCq(device_, 4);
  QpOptions options = ResponderOptions();
  options.receive_cq = cq.get();
  const Link link{MakeQp(device_, pd_.get(), RequesterOptions()),
                  MakeQp(device_, pd_.get(), options)};
  Connect(device_, link.requester.get(), link.responder.get(), {.timeout = 8, .retry_count = 1});
  const uint32_t count = std::min(64, 2 * (cq->cqe + 1) + 2);
  for (uint32_t i = 0; i < count; ++i) {
    ASSERT_EQ(0, PostReceive(link.responder.get(), i, {sink_.Sge(0, 8)}));
    ASSERT_EQ(0, PostSend(link.requester.get(), {.wr_id = i, .segments = {source_.Sge(0, 8)}}));
  }
  EXPECT_EQ(count, Poll(device_, requester_cq_.get(), count).size());
  const std::vector<ibv_async_event> events = device_.AsyncEvents(kQuiet);
  ASSERT_EQ(1u, events.size());
  EXPECT_EQ(IBV_EVENT_CQ_ERR, events[0].event_type);
  EXPECT_EQ(IBV_QPS_ERR, StateOf(link.responder.get()));
}

TEST_F(CqBasics, ResizeToExactlyTheUnpolledCompletionsKeepsThem) {
  Rule("CQ-10");
  const Cq cq = MakeCq(device_, 32);
  const Link link = MakeLinkTo(cq.get());
  Complete(link, 20);
  ASSERT_EQ(0, ibv_resize_cq(cq.get(), 20));
  EXPECT_GE(cq->cqe, 20);
  const std::vector<ibv_wc> wcs = Poll(device_, cq.get(), 20);
  ASSERT_EQ(20u, wcs.size());
  for (uint32_t i = 0; i < 20; ++i) EXPECT_EQ(i, wcs[i].wr_id);
  EXPECT_TRUE(device_.AsyncEvents(Microseconds(100)).empty());
}

TEST_F(CqBasics, AnArmedCqStaysArmedThroughAResize) {
  Rule("CQ-10");
  const Channel channel = MakeChannel(device_);
  const Cq cq = MakeCq(device_, 8, channel.get());
  const Link link = MakeLinkTo(cq.get());
  ASSERT_EQ(0, ibv_req_notify_cq(cq.get(), 0));
  ASSERT_EQ(0, ibv_resize_cq(cq.get(), 40));
  ASSERT_EQ(0, PostSend(link.requester.get(), SmallWrite(1)));
  ASSERT_EQ(cq.get(), NextCqEvent(device_, channel.get(), kPatience));
  ibv_ack_cq_events(cq.get(), 1);
}

}  // namespace
}  // namespace simhca::conformance
