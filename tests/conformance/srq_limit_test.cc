#include <atomic>
#include <cerrno>
#include <thread>

#include "tests/conformance/fixture.h"

namespace simhca::conformance {
namespace {

TEST_F(SrqCases, Row05LimitGivenAtCreationIsIgnored) {
  Rule("SRQ-01");
  ibv_srq_init_attr init{};
  init.attr.max_wr = 16;
  init.attr.max_sge = 1;
  init.attr.srq_limit = 7;
  srq_.reset(ibv_create_srq(pd_.get(), &init));
  ASSERT_NE(nullptr, srq_);
  EXPECT_EQ(0u, Query().srq_limit);
  const Link link = MakeLink({}, srq_.get());
  ASSERT_EQ(0, P(16));
  SendAndReceive(link, 16);
  EXPECT_EQ(0u, Query().srq_limit);
  EXPECT_EQ(0u, LimitEvents());
}

TEST_F(SrqCases, Row09LimitAboveTheSizeIsRefusedAndTheArmedOneStays) {
  Rule("SRQ-11");
  CreateSrq(16);
  const Link link = MakeLink({}, srq_.get());
  ASSERT_EQ(0, P(4));
  ASSERT_EQ(0, SetLimit(3));
  EXPECT_EQ(EINVAL, SetLimit(Query().max_wr + 1));
  EXPECT_EQ(EINVAL, SetLimit(UINT32_MAX));
  EXPECT_EQ(3u, Query().srq_limit);
  SendAndReceive(link, 2);
  EXPECT_EQ(1u, LimitEvents());
}

TEST_F(SrqTest, LimitEqualToTheSizeIsAccepted) {
  Rule("SRQ-11");
  CreateSrq(16);
  const Link link = MakeLink({}, srq_.get());
  ASSERT_EQ(0, P(capacity_));
  ASSERT_EQ(0, SetLimit(capacity_));
  EXPECT_EQ(capacity_, Query().srq_limit);
  EXPECT_EQ(0u, LimitEvents());
  SendAndReceive(link, 1);
  EXPECT_EQ(1u, LimitEvents());
}

TEST_F(SrqCases, Row10OneInvalidAttributeChangesNeither) {
  Rule("SRQ-07");
  CreateSrq(16);
  ASSERT_EQ(0, P(8));
  ASSERT_EQ(0, SetLimit(2));
  const uint32_t max_wr = Query().max_wr;

  ibv_srq_attr attr{};
  attr.max_wr = static_cast<uint32_t>(device_.attributes().max_srq_wr) + 1;
  attr.srq_limit = 5;
  EXPECT_NE(0, ibv_modify_srq(srq_.get(), &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT));
  EXPECT_EQ(2u, Query().srq_limit);
  EXPECT_EQ(max_wr, Query().max_wr);

  attr.max_wr = 64;
  attr.srq_limit = 0x7fffffff;
  EXPECT_NE(0, ibv_modify_srq(srq_.get(), &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT));
  EXPECT_EQ(2u, Query().srq_limit);
  EXPECT_EQ(max_wr, Query().max_wr);
}

TEST_F(SrqTest, EmptyModifyMaskIsLegalAndDoesNothing) {
  Rule("SRQ-08");
  CreateSrq(16, 2);
  ASSERT_EQ(0, P(8));
  ASSERT_EQ(0, SetLimit(4));
  const ibv_srq_attr before = Query();
  ibv_srq_attr attr{.max_wr = 1, .max_sge = 1, .srq_limit = 1};
  EXPECT_EQ(0, ibv_modify_srq(srq_.get(), &attr, 0));
  EXPECT_EQ(before.max_wr, Query().max_wr);
  EXPECT_EQ(before.max_sge, Query().max_sge);
  EXPECT_EQ(4u, Query().srq_limit);
}

TEST_F(SrqCases, Row11NoEventWhileTheLimitNumberIsLeft) {
  Rule("SRQ-12");
  CreateSrq(10);
  const Link link = MakeLink({}, srq_.get());
  ASSERT_EQ(0, P(10));
  EXPECT_EQ(0u, Query().srq_limit);
  ASSERT_EQ(0, SetLimit(7));
  EXPECT_EQ(7u, Query().srq_limit);
  SendAndReceive(link, 3);
  EXPECT_EQ(0u, LimitEvents());
  EXPECT_EQ(7u, Query().srq_limit) << "an armed limit is shown, never a fill level";
}

TEST_F(SrqCases, Row12OneEventAtSixLeftDisarms) {
  Rule("SRQ-12");
  CreateSrq(10);
  const Link link = MakeLink({}, srq_.get());
  ASSERT_EQ(0, P(10));
  ASSERT_EQ(0, SetLimit(7));
  SendAndReceive(link, 4);
  EXPECT_EQ(1u, LimitEvents());
  EXPECT_EQ(0u, Query().srq_limit);
}

TEST_F(SrqCases, Row13NoSecondEventUntilArmedAgain) {
  Rule("SRQ-12");
  CreateSrq(10);
  const Link link = MakeLink({}, srq_.get());
  ASSERT_EQ(0, P(10));
  ASSERT_EQ(0, SetLimit(7));
  SendAndReceive(link, 4);
  ASSERT_EQ(1u, LimitEvents());
  SendAndReceive(link, 3);
  EXPECT_EQ(0u, LimitEvents());
  ASSERT_EQ(0, P(7));
  SendAndReceive(link, 4);
  EXPECT_EQ(0u, LimitEvents()) << "crossing again without arming is silent";
  ASSERT_EQ(0, P(4));
  ASSERT_EQ(0, SetLimit(7));
  SendAndReceive(link, 4);
  EXPECT_EQ(1u, LimitEvents());
}

TEST_F(SrqCases, Row14LimitZeroDisarmsWithoutAnEvent) {
  Rule("SRQ-13");
  CreateSrq(10);
  const Link link = MakeLink({}, srq_.get());
  ASSERT_EQ(0, P(10));
  ASSERT_EQ(0, SetLimit(7));
  ASSERT_EQ(0, SetLimit(0));
  EXPECT_EQ(0u, Query().srq_limit);
  SendAndReceive(link, 10);
  EXPECT_EQ(0u, LimitEvents());
}

TEST_F(SrqTest, ArmingAgainReplacesTheLimit) {
  Rule("SRQ-13");
  CreateSrq(10);
  const Link link = MakeLink({}, srq_.get());
  ASSERT_EQ(0, P(10));
  ASSERT_EQ(0, SetLimit(8));
  ASSERT_EQ(0, SetLimit(3));
  EXPECT_EQ(3u, Query().srq_limit);
  SendAndReceive(link, 7);
  EXPECT_EQ(0u, LimitEvents()) << "the limit of 8 is gone";
  SendAndReceive(link, 1);
  EXPECT_EQ(1u, LimitEvents());
}

TEST_F(SrqTest, RefillingAnArmedSrqKeepsItQuiet) {
  Rule("SRQ-12");
  CreateSrq(10);
  const Link link = MakeLink({}, srq_.get());
  ASSERT_EQ(0, P(8));
  ASSERT_EQ(0, SetLimit(5));
  for (int round = 0; round < 10; ++round) {
    SendAndReceive(link, 3);
    ASSERT_EQ(0, P(3));
  }
  EXPECT_EQ(0u, LimitEvents());
  SendAndReceive(link, 4);
  EXPECT_EQ(1u, LimitEvents());
}

TEST_F(SrqCases, Row21ArmingSeesAllOfAListPostedBefore) {
  Rule("SRQ-12");
  CreateSrq(64);
  const Link link = MakeLink({}, srq_.get());
  ReceiveChain chain(64, {sink_.Sge(0, kSlotBytes)});
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(0, ibv_post_srq_recv(srq_.get(), chain.head(), &bad));
  ASSERT_EQ(0, SetLimit(64));
  EXPECT_EQ(0u, LimitEvents());
  EXPECT_EQ(64u, Query().srq_limit);
  SendAndReceive(link, 1);
  EXPECT_EQ(1u, LimitEvents());
}

TEST_F(SrqCases, Row31DestroyInAnotherThreadWaitsUntilTheEventIsAcknowledged) {
  Rule("LIFE-05");
  CreateSrq(4);
  {
    const Link link = MakeLink({}, srq_.get());
    ASSERT_EQ(0, P(2));
    ASSERT_EQ(0, SetLimit(2));
    SendAndReceive(link, 1);
  }
  std::optional<ibv_async_event> event = device_.NextAsyncEvent(kPatience);
  ASSERT_TRUE(event.has_value());
  ASSERT_EQ(IBV_EVENT_SRQ_LIMIT_REACHED, event->event_type);
  ASSERT_EQ(srq_.get(), event->element.srq);

  std::atomic<bool> started{false};
  std::atomic<bool> destroyed{false};
  std::thread destroyer([&] {
    started = true;
    EXPECT_EQ(0, ibv_destroy_srq(srq_.get()));
    destroyed = true;
  });
  while (!started) std::this_thread::yield();
  const auto until = std::chrono::steady_clock::now() + Milliseconds(50);
  while (std::chrono::steady_clock::now() < until && !destroyed) std::this_thread::yield();
  EXPECT_FALSE(destroyed);
  ibv_ack_async_event(&*event);
  destroyer.join();
  EXPECT_TRUE(destroyed);
  static_cast<void>(srq_.release());
}

TEST_F(SrqTest, DestroyDropsALimitEventThatNobodyRead) {
  Rule("LIFE-04");
  CreateSrq(4);
  {
    const Link link = MakeLink({}, srq_.get());
    ASSERT_EQ(0, P(2));
    ASSERT_EQ(0, SetLimit(2));
    SendAndReceive(link, 1);
  }
  EXPECT_EQ(0, ibv_destroy_srq(srq_.release()));
  EXPECT_TRUE(device_.AsyncEvents(kQuiet).empty());
}

TEST_F(SrqTest, EventNamesTheSrqThatRanLow) {
  Rule("SRQ-12");
  CreateSrq(8);
  const Link link = MakeLink({}, srq_.get());
  const Srq other = MakeSrq(pd_.get(), 8);
  ASSERT_EQ(0, PostSrqReceive(other.get(), 0, {sink_.Sge(0, kSlotBytes)}));
  ibv_srq_attr attr{};
  attr.srq_limit = 1;
  ASSERT_EQ(0, ibv_modify_srq(other.get(), &attr, IBV_SRQ_LIMIT));
  ASSERT_EQ(0, P(4));
  ASSERT_EQ(0, SetLimit(4));
  SendAndReceive(link, 1);
  EXPECT_EQ(1u, LimitEvents());
}

TEST_F(SrqTest, ArmingBelowTheFillRaisesTheEventAtOnceOnTheDefaultProfile) {
  Rule("SRQ-14");
  if (!device_.generic()) GTEST_SKIP() << "devices differ in when this event comes";
  CreateSrq(16);
  ASSERT_EQ(0, P(3));
  ASSERT_EQ(0, SetLimit(7));
  ibv_async_event event{};
  ASSERT_EQ(0, ibv_get_async_event(device_.context(), &event));
  EXPECT_EQ(IBV_EVENT_SRQ_LIMIT_REACHED, event.event_type);
  EXPECT_EQ(srq_.get(), event.element.srq);
  ibv_ack_async_event(&event);
  EXPECT_EQ(0u, Query().srq_limit);
}

}  // namespace
}  // namespace simhca::conformance
