#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "tests/conformance/fixture.h"

namespace simhca::conformance {
namespace {

// Completion channels.
class CqEvents : public RcTest {
 protected:
  CqEvents()
      : channel_(MakeChannel(device_)),
        cq_(MakeCq(device_, 64, channel_.get(), this)),
        link_(MakeLinkTo(cq_.get())) {}

  // A link whose responder receives into `cq`.
  Link MakeLinkTo(ibv_cq* cq) {
    QpOptions options = ResponderOptions();
    options.receive_cq = cq;
    Link link{MakeQp(device_, pd_.get(), RequesterOptions()), MakeQp(device_, pd_.get(), options)};
    Connect(device_, link.requester.get(), link.responder.get());
    return link;
  }
  // Sends one message and waits for the requester's success: the receive has completed too.
  void Deliver(const Link& link, unsigned flags = 0) {
    ASSERT_EQ(0, PostReceive(link.responder.get(), 1, {sink_.Sge(0, 8)}));
    SendAndExpectSuccess(link.requester.get(),
                         {.segments = {source_.Sge(0, 8)}, .flags = flags | IBV_SEND_SIGNALED});
  }
  // One event for `cq` waits in the channel; takes and acknowledges it.
  void ExpectEvent(ibv_cq* cq) {
    ASSERT_EQ(cq, NextCqEvent(device_, channel_.get(), kPatience));
    ibv_ack_cq_events(cq, 1);
  }
  bool NoEvent() { return NextCqEvent(device_, channel_.get(), kQuiet) == nullptr; }

  Channel channel_;
  Cq cq_;
  Link link_;
};

TEST_F(CqEvents, WithoutArmingThereIsNoEvent) {
  Rule("CQ-11");
  Deliver(link_);
  EXPECT_TRUE(NoEvent());
}

TEST_F(CqEvents, EmptyChannelThatDoesNotBlockSaysEagain) {
  Rule("CQ-17");
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  errno = 0;
  EXPECT_EQ(-1, ibv_get_cq_event(channel_.get(), &cq, &context));
  EXPECT_EQ(EAGAIN, errno);
}

TEST_F(CqEvents, OneEventForTheFirstCompletionAfterArming) {
  Rule("CQ-11");
  ASSERT_EQ(0, ibv_req_notify_cq(cq_.get(), 0));
  EXPECT_TRUE(NoEvent());
  Deliver(link_);
  void* context = nullptr;
  ASSERT_EQ(cq_.get(), NextCqEvent(device_, channel_.get(), kPatience, &context));
  EXPECT_EQ(this, context);
  ibv_ack_cq_events(cq_.get(), 1);
  Deliver(link_);
  EXPECT_TRUE(NoEvent()) << "one shot";
  ASSERT_EQ(0, ibv_req_notify_cq(cq_.get(), 0));
  EXPECT_EQ(2u, Poll(device_, cq_.get(), 2).size());
  Deliver(link_);
  ExpectEvent(cq_.get());
}

TEST_F(CqEvents, ACompletionThatIsAlreadyThereRaisesNoEvent) {
  Rule("CQ-12");
  if (!device_.simulated()) GTEST_SKIP() << "adapters may report it at once";
  Deliver(link_);
  ASSERT_EQ(0, ibv_req_notify_cq(cq_.get(), 0));
  EXPECT_TRUE(NoEvent());
  Deliver(link_);
  ExpectEvent(cq_.get());
}

TEST_F(CqEvents, SolicitedArmingWaitsForASolicitedMessage) {
  Rule("CQ-13");
  ASSERT_EQ(0, ibv_req_notify_cq(cq_.get(), 1));
  Deliver(link_);
  Deliver(link_);
  EXPECT_TRUE(NoEvent());
  Deliver(link_, IBV_SEND_SOLICITED);
  ExpectEvent(cq_.get());
  Deliver(link_, IBV_SEND_SOLICITED);
  EXPECT_TRUE(NoEvent()) << "one shot";
}

TEST_F(CqEvents, SolicitedArmingIsServedByAnError) {
  Rule("CQ-13");
  ASSERT_EQ(0, ibv_req_notify_cq(cq_.get(), 1));
  ASSERT_EQ(0, PostReceive(link_.responder.get(), 1, {sink_.Sge(0, 8)}));
  ASSERT_EQ(0, Move(link_.responder.get(), IBV_QPS_ERR));
  ExpectEvent(cq_.get());
  EXPECT_EQ(IBV_WC_WR_FLUSH_ERR, PollOne(device_, cq_.get()).status);
}

TEST_F(CqEvents, ArmingForAnyBeatsArmingForSolicited) {
  Rule("CQ-14");
  ASSERT_EQ(0, ibv_req_notify_cq(cq_.get(), 1));
  ASSERT_EQ(0, ibv_req_notify_cq(cq_.get(), 0));
  Deliver(link_);
  ExpectEvent(cq_.get());

  EXPECT_EQ(1u, Poll(device_, cq_.get(), 1).size());
  ASSERT_EQ(0, ibv_req_notify_cq(cq_.get(), 0));
  ASSERT_EQ(0, ibv_req_notify_cq(cq_.get(), 1));
  Deliver(link_);
  ExpectEvent(cq_.get());
}

TEST_F(CqEvents, ArmingTwiceGivesOneEvent) {
  Rule("CQ-11");
  ASSERT_EQ(0, ibv_req_notify_cq(cq_.get(), 0));
  ASSERT_EQ(0, ibv_req_notify_cq(cq_.get(), 0));
  Deliver(link_);
  ExpectEvent(cq_.get());
  Deliver(link_);
  EXPECT_TRUE(NoEvent());
}

TEST_F(CqEvents, SendCompletionsRaiseEventsToo) {
  Rule("CQ-11");
  const Cq send_cq = MakeCq(device_, 16, channel_.get());
  QpOptions options = RequesterOptions();
  options.send_cq = send_cq.get();
  const Link link{MakeQp(device_, pd_.get(), options),
                  MakeQp(device_, pd_.get(), ResponderOptions())};
  Connect(device_, link.requester.get(), link.responder.get());
  ASSERT_EQ(0, ibv_req_notify_cq(send_cq.get(), 0));
  ASSERT_EQ(0, PostSend(link.requester.get(), {.wr_id = 4,
                                               .segments = {source_.Sge(0, 8)},
                                               .opcode = IBV_WR_RDMA_WRITE,
                                               .remote_address = sink_.address(),
                                               .rkey = sink_.rkey()}));
  ExpectEvent(send_cq.get());
  EXPECT_EQ(4u, PollOne(device_, send_cq.get()).wr_id);
}

TEST_F(CqEvents, OneChannelTellsItsCqsApart) {
  Rule("CQ-11");
  const Cq second = MakeCq(device_, 64, channel_.get());
  const Link other = MakeLinkTo(second.get());
  ASSERT_EQ(0, ibv_req_notify_cq(cq_.get(), 0));
  ASSERT_EQ(0, ibv_req_notify_cq(second.get(), 0));
  Deliver(other);
  ExpectEvent(second.get());
  EXPECT_TRUE(NoEvent());
  Deliver(link_);
  ExpectEvent(cq_.get());
}

TEST_F(CqEvents, SeveralEventsMayBeAcknowledgedAtOnce) {
  Rule("LIFE-05");
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(0, ibv_req_notify_cq(cq_.get(), 0));
    Deliver(link_);
    ASSERT_EQ(cq_.get(), NextCqEvent(device_, channel_.get(), kPatience));
    EXPECT_EQ(1u, Poll(device_, cq_.get(), 1).size());
  }
  ibv_ack_cq_events(cq_.get(), 3);
  EXPECT_EQ(3u, cq_->comp_events_completed);
}

TEST_F(CqEvents, ChannelCannotBeDestroyedWhileACqUsesIt) {
  Rule("LIFE-03");
  EXPECT_EQ(EBUSY, ibv_destroy_comp_channel(channel_.get()));
  ASSERT_EQ(0, ibv_req_notify_cq(cq_.get(), 0));
  Deliver(link_);
  ExpectEvent(cq_.get());
}

TEST_F(CqEvents, DestroyDropsAnEventThatNobodyRead) {
  Rule("LIFE-04");
  Cq cq = MakeCq(device_, 64, channel_.get());
  {
    const Link link = MakeLinkTo(cq.get());
    ASSERT_EQ(0, ibv_req_notify_cq(cq.get(), 0));
    Deliver(link);
  }
  EXPECT_EQ(0, ibv_destroy_cq(cq.release()));
  EXPECT_TRUE(NoEvent());
}

TEST_F(CqEvents, DestroyInAnotherThreadWaitsForTheAcknowledgement) {
  Rule("LIFE-05");
  Cq cq = MakeCq(device_, 64, channel_.get());
  {
    const Link link = MakeLinkTo(cq.get());
    ASSERT_EQ(0, ibv_req_notify_cq(cq.get(), 0));
    Deliver(link);
    ASSERT_EQ(cq.get(), NextCqEvent(device_, channel_.get(), kPatience));
  }
  std::atomic<bool> started{false};
  std::atomic<bool> destroyed{false};
  std::thread destroyer([&] {
    started = true;
    EXPECT_EQ(0, ibv_destroy_cq(cq.get()));
    destroyed = true;
  });
  while (!started) std::this_thread::yield();
  const auto until = std::chrono::steady_clock::now() + Milliseconds(50);
  while (std::chrono::steady_clock::now() < until && !destroyed) std::this_thread::yield();
  EXPECT_FALSE(destroyed);
  ibv_ack_cq_events(cq.get(), 1);
  destroyer.join();
  static_cast<void>(cq.release());
}

TEST_F(CqEvents, BlockingGetInAnotherThreadIsWokenByACompletion) {
  Rule("CQ-17");
  const Channel channel(ibv_create_comp_channel(device_.context()));
  ASSERT_NE(nullptr, channel);
  const Cq cq = MakeCq(device_, 64, channel.get());
  const Link link = MakeLinkTo(cq.get());
  ASSERT_EQ(0, ibv_req_notify_cq(cq.get(), 0));
  std::thread waiter([&] {
    ibv_cq* woken = nullptr;
    void* context = nullptr;
    EXPECT_EQ(0, ibv_get_cq_event(channel.get(), &woken, &context));
    EXPECT_EQ(cq.get(), woken);
    ibv_ack_cq_events(woken, 1);
  });
  Deliver(link);
  waiter.join();
}

// read() semantics: a handler that does not ask for a restart ends the call.
TEST_F(CqEvents, BlockingCallReturnsWhenASignalIsHandled) {
  Rule("CQ-17");
  struct sigaction action {};
  action.sa_handler = [](int) {};
  struct sigaction before {};
  ASSERT_EQ(0, sigaction(SIGALRM, &action, &before));
  ASSERT_EQ(0, fcntl(channel_->fd, F_SETFL, 0));
  // More than once, should the first come before the call has begun to block.
  const itimerval soon{.it_interval = {0, 50'000}, .it_value = {0, 50'000}};
  ASSERT_EQ(0, setitimer(ITIMER_REAL, &soon, nullptr));
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  EXPECT_EQ(-1, ibv_get_cq_event(channel_.get(), &cq, &context));
  EXPECT_EQ(EINTR, errno);
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &before, nullptr);
}

}  // namespace
}  // namespace simhca::conformance
