#include <chrono>

#include "tests/conformance/fixture.h"
#include "tests/conformance/peer_process.h"

namespace simhca::conformance {
namespace {

// Left out by the program under virtual time, where one process holds all devices.
class TwoProcesses : public SrqTest {
 protected:
  // Connects `qp` to the peer, which waits for the number of `qp` before it does the same.
  void ConnectTo(PeerProcess& peer, ibv_qp* qp, const ConnectOptions& options = {}) {
    const std::optional<uint64_t> number = peer.ReadNumber();
    Require(number.has_value(), "the peer's queue pair number");
    BringTo(device_, qp, IBV_QPS_RTS,
            ConnectionAttributes(device_, static_cast<uint32_t>(*number), options));
  }
};

TEST_F(TwoProcesses, Row41SendsOfAPeerThatExitsAtOnceStillArrive) {
  const Qp qp = MakeQp(device_, pd_.get(), ResponderOptions());
  PeerProcess peer("exit-after-send");
  ConnectTo(peer, qp.get());
  for (uint32_t i = 0; i < kExitMessages; ++i) {
    ASSERT_EQ(0, PostReceive(qp.get(), i, {sink_.Sge(i * kPeerMessageBytes, kPeerMessageBytes)}));
  }
  peer.WriteNumber(qp->qp_num);
  EXPECT_EQ(0, peer.Wait());
  const std::vector<ibv_wc> received = Poll(device_, responder_cq_.get(), kExitMessages);
  ASSERT_EQ(kExitMessages, received.size());
  for (uint32_t i = 0; i < kExitMessages; ++i) {
    EXPECT_EQ(IBV_WC_SUCCESS, received[i].status);
    EXPECT_EQ(i, received[i].wr_id);
    EXPECT_EQ(PeerMessageLength(i), received[i].byte_len);
    EXPECT_TRUE(sink_.Holds(i, i * kPeerMessageBytes, PeerMessageLength(i)));
  }
}

TEST_F(TwoProcesses, MessagesOfAnotherProcessArriveInAnSrq) {
  constexpr uint32_t kReceives = 12;
  CreateSrq(kReceives);
  const Qp qp = MakeQp(device_, pd_.get(), ResponderOptions(srq_.get()));
  const auto post = [&](uint64_t slot) {
    return PostSrqReceive(srq_.get(), slot,
                          {sink_.Sge(slot * kPeerMessageBytes, kPeerMessageBytes)});
  };
  for (uint64_t slot = 0; slot < kReceives; ++slot) ASSERT_EQ(0, post(slot));
  PeerProcess peer("send-to-srq");
  ConnectTo(peer, qp.get(), {.min_rnr_timer = 1});
  peer.WriteNumber(qp->qp_num);
  for (uint32_t i = 0; i < kSrqMessages; ++i) {
    const ibv_wc wc = PollOne(device_, responder_cq_.get());
    ASSERT_EQ(IBV_WC_SUCCESS, wc.status) << i;
    EXPECT_EQ(qp->qp_num, wc.qp_num);
    EXPECT_EQ(PeerMessageLength(i), wc.byte_len);
    EXPECT_TRUE(sink_.Holds(i, wc.wr_id * kPeerMessageBytes, wc.byte_len)) << i;
    ASSERT_EQ(0, post(wc.wr_id));
  }
  EXPECT_EQ(0, peer.Wait());
}

TEST_F(TwoProcesses, LimitEventIsRaisedByAnotherProcess) {
  CreateSrq(kSrqMessages);
  const Qp qp = MakeQp(device_, pd_.get(), ResponderOptions(srq_.get()));
  for (uint32_t i = 0; i < kSrqMessages; ++i) {
    ASSERT_EQ(0, PostSrqReceive(srq_.get(), i, {sink_.Sge(0, kPeerMessageBytes)}));
  }
  ASSERT_EQ(0, SetLimit(kSrqMessages / 2));
  PeerProcess peer("send-to-srq");
  ConnectTo(peer, qp.get());
  peer.WriteNumber(qp->qp_num);
  std::optional<ibv_async_event> event = device_.NextAsyncEvent(kPatience);
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(IBV_EVENT_SRQ_LIMIT_REACHED, event->event_type);
  EXPECT_EQ(srq_.get(), event->element.srq);
  ibv_ack_async_event(&*event);
  EXPECT_EQ(kSrqMessages, Poll(device_, responder_cq_.get(), kSrqMessages).size());
  EXPECT_EQ(0, peer.Wait());
}

// The device goes on by itself while its program waits for something else.
TEST_F(TwoProcesses, LongMessageLeavesASenderThatCallsNoVerbs) {
  Buffer message(pd_.get(), kLongMessageBytes);
  const Qp qp = MakeQp(device_, pd_.get(), RequesterOptions());
  PeerProcess peer("receive-long");
  ConnectTo(peer, qp.get(), {.mtu = IBV_MTU_4096});
  peer.WriteNumber(qp->qp_num);
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(0, PostSend(qp.get(), {.segments = {message.Sge(0, kLongMessageBytes)}}));
  EXPECT_EQ(kLongMessageBytes, peer.ReadNumber());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
  EXPECT_EQ(IBV_WC_SUCCESS, PollOne(device_, requester_cq_.get()).status);
  EXPECT_EQ(0, peer.Wait());
}

TEST_F(TwoProcesses, SendsToAPeerThatIsGoneFailByTheRetries) {
  Rule("CE-12");
  const Qp qp = MakeQp(device_, pd_.get(), RequesterOptions());
  PeerProcess peer("exit-after-connect");
  ConnectTo(peer, qp.get(), {.timeout = 10, .retry_count = 2});
  peer.WriteNumber(qp->qp_num);
  ASSERT_TRUE(peer.ReadNumber().has_value());
  ASSERT_EQ(0, peer.Wait());
  ASSERT_EQ(0, PostSend(qp.get(), {.wr_id = 6, .segments = {source_.Sge(0, 64)}}));
  const ibv_wc wc = PollOne(device_, requester_cq_.get());
  EXPECT_EQ(IBV_WC_RETRY_EXC_ERR, wc.status);
  EXPECT_EQ(6u, wc.wr_id);
}

}  // namespace
}  // namespace simhca::conformance
