#include <algorithm>
#include <atomic>
#include <cerrno>
#include <functional>
#include <thread>

#include "tests/conformance/fixture.h"

namespace simhca::conformance {
namespace {

// What outlives what: refusals while others depend on an object, and events of one that goes.
class Lifetimes : public SrqTest {
 protected:
  // A queue pair whose remote key error has raised QP_ACCESS_ERR at its responder, unread; the
  // requester's completion is polled.
  Link MakeFailedLink(ibv_srq* srq = nullptr) {
    Link link = MakeLink({}, srq);
    EXPECT_EQ(0, PostSend(link.requester.get(), {.segments = {source_.Sge(0, 8)},
                                                 .opcode = IBV_WR_RDMA_WRITE,
                                                 .remote_address = sink_.address(),
                                                 .rkey = sink_.rkey() ^ 0x5500}));
    EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, PollOne(device_, requester_cq_.get()).status);
    return link;
  }
  // A small CQ in which more completions were written than it holds, for the queue pair `link`.
  void Overrun(ibv_cq* cq, Link* link) {
    QpOptions options = RequesterOptions();
    options.send_cq = cq;
    link->requester = MakeQp(device_, pd_.get(), options);
    link->responder = MakeQp(device_, pd_.get(), ResponderOptions());
    Connect(device_, link->requester.get(), link->responder.get());
    const uint32_t count = std::min(64, 2 * (cq->cqe + 1) + 2);
    for (uint32_t i = 0; i < count; ++i) {
      ASSERT_EQ(0, PostSend(link->requester.get(), {.segments = {source_.Sge(0, 8)},
                                                    .opcode = IBV_WR_RDMA_WRITE,
                                                    .remote_address = sink_.address(),
                                                    .rkey = sink_.rkey()}));
    }
  }
  // `destroy` in a second thread returns only after `acknowledge` has been called here.
  static void ExpectWaits(const std::function<int()>& destroy,
                          const std::function<void()>& acknowledge) {
    std::atomic<bool> started{false};
    std::atomic<bool> destroyed{false};
    std::thread destroyer([&] {
      started = true;
      EXPECT_EQ(0, destroy());
      destroyed = true;
    });
    while (!started) std::this_thread::yield();
    const auto until = std::chrono::steady_clock::now() + Milliseconds(50);
    while (std::chrono::steady_clock::now() < until && !destroyed) std::this_thread::yield();
    EXPECT_FALSE(destroyed);
    acknowledge();
    destroyer.join();
  }
  void ExpectNoEvents() { EXPECT_TRUE(device_.AsyncEvents(kQuiet).empty()); }
};

// ---- Dependants ----

TEST_F(Lifetimes, EveryDependantKeepsTheProtectionDomain) {
  Rule("DEV-11");
  Pd pd = MakePd(device_);
  const std::function<std::function<int()>()> dependants[] = {
      [&] {
        ibv_mr* mr = Register(pd.get(), {source_.data(), 64}).release();
        return [mr] { return ibv_dereg_mr(mr); };
      },
      [&] {
        ibv_srq* srq = MakeSrq(pd.get(), 4).release();
        return [srq] { return ibv_destroy_srq(srq); };
      },
      [&] {
        ibv_qp* qp = MakeQp(device_, pd.get(), RequesterOptions()).release();
        return [qp] { return ibv_destroy_qp(qp); };
      }};
  for (const auto& make : dependants) {
    const std::function<int()> first = make();
    EXPECT_EQ(EBUSY, ibv_dealloc_pd(pd.get()));
    const std::function<int()> second = make();
    EXPECT_EQ(EBUSY, ibv_dealloc_pd(pd.get())) << "the refused call has left it usable";
    EXPECT_EQ(0, first());
    EXPECT_EQ(EBUSY, ibv_dealloc_pd(pd.get())) << "one is left";
    EXPECT_EQ(0, second());
  }
  EXPECT_EQ(0, ibv_dealloc_pd(pd.release()));
}

TEST_F(Lifetimes, ACqOfBothQueuesIsKeptUntilItsLastQpGoes) {
  Rule("LIFE-01");
  Cq cq = MakeCq(device_, 16);
  QpOptions options;
  options.send_cq = options.receive_cq = cq.get();
  Link link{MakeQp(device_, pd_.get(), options), MakeQp(device_, pd_.get(), options)};
  EXPECT_EQ(EBUSY, ibv_destroy_cq(cq.get()));
  Connect(device_, link.requester.get(), link.responder.get());
  ASSERT_EQ(0, PostReceive(link.responder.get(), 1, {sink_.Sge(0, 8)}));
  ASSERT_EQ(0, PostSend(link.requester.get(), {.wr_id = 2, .segments = {source_.Sge(0, 8)}}));
  EXPECT_EQ(2u, Poll(device_, cq.get(), 2).size()) << "the refused call has left it usable";
  link.requester.reset();
  EXPECT_EQ(EBUSY, ibv_destroy_cq(cq.get()));
  link.responder.reset();
  EXPECT_EQ(0, ibv_destroy_cq(cq.release()));
}

TEST_F(Lifetimes, AnSrqIsKeptUntilItsLastQpGoesAndWorksAfterTheRefusal) {
  Rule("LIFE-02");
  CreateSrq(4);
  Link first = MakeLink({}, srq_.get());
  Link second = MakeLink({}, srq_.get());
  EXPECT_EQ(EBUSY, ibv_destroy_srq(srq_.get()));
  first = Link{};
  EXPECT_EQ(EBUSY, ibv_destroy_srq(srq_.get()));
  ASSERT_EQ(0, P(1));
  SendAndReceive(second, 1);
  second = Link{};
  EXPECT_EQ(0, ibv_destroy_srq(srq_.release()));
}

TEST_F(Lifetimes, AChannelIsKeptUntilItsLastCqGoes) {
  Rule("LIFE-03");
  Channel channel = MakeChannel(device_);
  Cq first = MakeCq(device_, 4, channel.get());
  Cq second = MakeCq(device_, 4, channel.get());
  EXPECT_EQ(EBUSY, ibv_destroy_comp_channel(channel.get()));
  first.reset();
  EXPECT_EQ(EBUSY, ibv_destroy_comp_channel(channel.get()));
  second.reset();
  EXPECT_EQ(0, ibv_destroy_comp_channel(channel.release()));
}

// The device looks a region up when it needs it; nothing keeps one.
TEST_F(Lifetimes, ARegionInUseCanBeDeregistered) {
  Rule("MR-10");
  CreateSrq(4);
  const Link link = MakeLink({}, srq_.get());
  std::vector<std::byte> memory(64);
  Mr mr = Register(pd_.get(), memory);
  ASSERT_EQ(0, PostSrqReceive(srq_.get(), 1,
                              {{reinterpret_cast<uintptr_t>(memory.data()), 64, mr->lkey}}));
  EXPECT_EQ(0, ibv_dereg_mr(mr.release()));
  ASSERT_EQ(0, PostSend(link.requester.get(), {.segments = {source_.Sge(0, 8)}}));
  EXPECT_EQ(IBV_WC_REM_OP_ERR, PollOne(device_, requester_cq_.get()).status);
  EXPECT_EQ(IBV_WC_LOC_PROT_ERR, PollOne(device_, responder_cq_.get()).status);
}

// ---- Events of an object that goes ----

TEST_F(Lifetimes, DestroyingAQpDropsItsUnreadEvents) {
  Rule("LIFE-04");
  CreateSrq(4);
  MakeFailedLink();
  MakeFailedLink(srq_.get());
  ExpectNoEvents();
}

TEST_F(Lifetimes, DestroyingAQpLeavesTheEventsOfOthers) {
  Rule("LIFE-04");
  Link first = MakeFailedLink();
  const Link second = MakeFailedLink();
  first = Link{};
  const std::vector<ibv_async_event> events = device_.AsyncEvents(kQuiet);
  ASSERT_EQ(1u, events.size());
  EXPECT_EQ(IBV_EVENT_QP_ACCESS_ERR, events[0].event_type);
  EXPECT_EQ(second.responder.get(), events[0].element.qp);
}

TEST_F(Lifetimes, DestroyingAQpInAnotherThreadWaitsForItsAcknowledgement) {
  Rule("LIFE-05");
  Link link = MakeFailedLink();
  std::optional<ibv_async_event> event = device_.NextAsyncEvent(kPatience);
  ASSERT_TRUE(event.has_value());
  ASSERT_EQ(link.responder.get(), event->element.qp);
  ExpectWaits([&] { return ibv_destroy_qp(link.responder.get()); },
              [&] { ibv_ack_async_event(&*event); });
  static_cast<void>(link.responder.release());
}

TEST_F(Lifetimes, DestroyingACqDropsItsUnreadError) {
  Rule("LIFE-04");
  Cq cq = MakeCq(device_, 4);
  {
    Link link;
    Overrun(cq.get(), &link);
    EXPECT_TRUE(StaysEmpty(device_, responder_cq_.get())) << "time for the writes";
  }
  EXPECT_EQ(0, ibv_destroy_cq(cq.release()));
  ExpectNoEvents();
}

TEST_F(Lifetimes, DestroyingACqInAnotherThreadWaitsForItsError) {
  Rule("LIFE-05");
  Cq cq = MakeCq(device_, 4);
  Link link;
  Overrun(cq.get(), &link);
  std::optional<ibv_async_event> event = device_.NextAsyncEvent(kPatience);
  ASSERT_TRUE(event.has_value());
  ASSERT_EQ(IBV_EVENT_CQ_ERR, event->event_type);
  link = Link{};
  ExpectWaits([&] { return ibv_destroy_cq(cq.get()); }, [&] { ibv_ack_async_event(&*event); });
  static_cast<void>(cq.release());
}

// ---- Completions of a queue pair that goes ----

TEST_F(Lifetimes, NothingCompletesForAQpThatIsGone) {
  Rule("LIFE-06");
  CreateSrq(8);
  ASSERT_EQ(0, P(capacity_));
  for (int round = 0; round < 10; ++round) {
    Link link = MakeLink({.timeout = 8, .retry_count = 0}, srq_.get());
    for (int i = 0; i < 4; ++i) {
      ASSERT_EQ(0, PostSend(link.requester.get(), {.segments = {source_.Sge(0, kSlotBytes)}}));
    }
    if (round % 2 == 0) {
      link.requester.reset();
      link.responder.reset();
    } else {
      link.responder.reset();
      link.requester.reset();
    }
    EXPECT_TRUE(StaysEmpty(device_, requester_cq_.get(), Microseconds(200)));
    EXPECT_TRUE(StaysEmpty(device_, responder_cq_.get(), Microseconds(200)));
  }
  ExpectNoEvents();
}

TEST_F(Lifetimes, AQpOfAnErrorStateLeavesNoFlushedCompletions) {
  Rule("LIFE-06");
  {
    const Link link = MakeLink();
    for (uint64_t id = 0; id < 4; ++id) {
      ASSERT_EQ(0, PostReceive(link.responder.get(), id, {sink_.Sge(0, 8)}));
    }
    ASSERT_EQ(0, Move(link.responder.get(), IBV_QPS_ERR));
  }
  EXPECT_TRUE(StaysEmpty(device_, responder_cq_.get()));
}

// ---- Contexts ----

TEST_F(Lifetimes, AContextWithEveryKindOfObjectAtWorkCanBeClosed) {
  Rule("LIFE-08");
  CreateSrq(8);
  ASSERT_EQ(0, P(capacity_));
  const Qp survivor = MakeQp(device_, pd_.get(), RequesterOptions());
  std::vector<std::byte> memory(4096);
  {
    const Device other;
    ibv_pd* pd = MakePd(other).release();
    ibv_comp_channel* channel = MakeChannel(other).release();
    ibv_cq* cq = MakeCq(other, 16, channel).release();
    ibv_srq* srq = MakeSrq(pd, 16).release();
    ibv_mr* mr = Register(pd, memory).release();
    QpOptions options;
    options.send_cq = options.receive_cq = cq;
    options.srq = srq;
    ibv_qp* qp = MakeQp(other, pd, options).release();
    Connect(device_, survivor.get(), qp, {.timeout = 8, .retry_count = 1});
    for (uint64_t id = 0; id < 8; ++id) {
      const auto address = reinterpret_cast<uintptr_t>(memory.data());
      ASSERT_EQ(0, PostSrqReceive(srq, id, {{address, 64, mr->lkey}}));
    }
    ibv_srq_attr limit{};
    limit.srq_limit = 8;
    ASSERT_EQ(0, ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT));
    ASSERT_EQ(0, ibv_req_notify_cq(cq, 0));
    SendAndExpectSuccess(survivor.get(), {.wr_id = 1, .segments = {source_.Sge(0, 8)}});
    EXPECT_EQ(0u, PollOne(other, cq).wr_id);
    // An event of the SRQ and one of the CQ are unread; messages are on their way.
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(0, PostSend(survivor.get(), {.wr_id = 2, .segments = {source_.Sge(0, 4096)}}));
    }
  }
  EXPECT_EQ(3u, Poll(device_, requester_cq_.get(), 3).size()) << "done or failed, but told";
  ASSERT_EQ(0, PostSend(survivor.get(), {.wr_id = 3, .segments = {source_.Sge(0, 8)}}));
  const ibv_wc failed = PollOne(device_, requester_cq_.get());
  EXPECT_TRUE(failed.status == IBV_WC_RETRY_EXC_ERR || failed.status == IBV_WC_WR_FLUSH_ERR)
      << failed.status;
  ExpectNothingLost(0);
}

TEST_F(Lifetimes, ObjectsOfAClosedContextCountNoMoreAgainstTheDevice) {
  Rule("LIFE-08");
  for (int round = 0; round < 50; ++round) {
    const Device other;
    ibv_pd* pd = MakePd(other).release();
    ibv_cq* cq = MakeCq(other, 16).release();
    QpOptions options;
    options.send_cq = options.receive_cq = cq;
    options.srq = MakeSrq(pd, 16).release();
    MakeQp(other, pd, options).release();
  }
  const Link link = MakeLink();
  ASSERT_EQ(0, PostReceive(link.responder.get(), 1, {sink_.Sge(0, 8)}));
  SendAndExpectSuccess(link.requester.get(), {.segments = {source_.Sge(0, 8)}});
}

}  // namespace
}  // namespace simhca::conformance
