#include "tests/conformance/traffic.h"

#include <algorithm>

namespace simhca::conformance {

TrafficTest::TrafficTest() : receive_buffer_(pd_.get(), kReceives * kPeerMessageBytes) {
  CreateSrq(kReceives);
  for (uint32_t slot = 0; slot < kReceives; ++slot) Post(slot);
}

void TrafficTest::Post(uint64_t slot) {
  ASSERT_EQ(0, PostSrqReceive(srq_.get(), slot,
                              {receive_buffer_.Sge(slot * kPeerMessageBytes, kPeerMessageBytes)}));
  ++posted_;
}

Lane& TrafficTest::AddLane(PeerProcess& peer, const ConnectOptions& options) {
  QpOptions qp_options = RequesterOptions();
  qp_options.receive_cq = responder_cq_.get();
  qp_options.srq = srq_.get();
  Lane& lane = *lanes_.emplace_back(std::make_unique<Lane>());
  lane.qp = MakeQp(device_, pd_.get(), qp_options);
  const std::optional<uint64_t> number = peer.ReadNumber();
  Require(number.has_value(), "the peer's queue pair number");
  BringTo(device_, lane.qp.get(), IBV_QPS_RTS,
          ConnectionAttributes(device_, static_cast<uint32_t>(*number), options));
  peer.WriteNumber(lane.qp->qp_num);
  return lane;
}

void TrafficTest::RemoveLane(Lane& lane) {
  // What it still holds of the SRQ comes back as flushed completions before it goes.
  EXPECT_EQ(0, Move(lane.qp.get(), IBV_QPS_ERR));
  Turn();
  std::erase_if(lanes_, [&](const auto& other) { return other.get() == &lane; });
}

void TrafficTest::Send(Lane& lane) {
  while (lane.sending && lane.failures.empty() && lane.in_flight < kStreamInFlight) {
    ASSERT_EQ(0, PostSend(lane.qp.get(), {.wr_id = reinterpret_cast<uintptr_t>(&lane),
                                          .segments = {source_.Sge(0, kPeerMessageBytes)}}));
    ++lane.in_flight;
  }
}

void TrafficTest::TakeReceive(const ibv_wc& wc) {
  ++completed_;
  if (repost_) Post(wc.wr_id);
  for (const auto& lane : lanes_) {
    if (lane->qp->qp_num != wc.qp_num) continue;
    if (wc.status == IBV_WC_SUCCESS) ++lane->received;
    return;
  }
}

void TrafficTest::Turn() {
  constexpr int kBatch = 32;
  ibv_wc wcs[kBatch];
  for (const auto& lane : lanes_) Send(*lane);
  int count = ibv_poll_cq(responder_cq_.get(), kBatch, wcs);
  for (int i = 0; i < count; ++i) TakeReceive(wcs[i]);
  count = ibv_poll_cq(requester_cq_.get(), kBatch, wcs);
  for (int i = 0; i < count; ++i) {
    Lane& lane = *reinterpret_cast<Lane*>(wcs[i].wr_id);
    --lane.in_flight;
    if (wcs[i].status == IBV_WC_SUCCESS) {
      ++lane.sent;
    } else {
      lane.failures.push_back(wcs[i].status);
    }
  }
}

bool TrafficTest::RunUntil(const std::function<bool()>& done) {
  Deadline deadline(device_, kPatience);
  while (!done()) {
    if (HasFatalFailure() || deadline.Passed()) return false;
    Turn();
  }
  return true;
}

bool TrafficTest::Streams(Lane& lane) {
  const uint64_t sent = lane.sent + kMinimum;
  const uint64_t received = lane.received + kMinimum;
  return RunUntil([&] {
           return !lane.failures.empty() || (lane.sent >= sent && lane.received >= received);
         }) &&
         lane.failures.empty();
}

void TrafficTest::Finish(PeerProcess& peer, Lane& lane) {
  lane.sending = false;
  ASSERT_TRUE(RunUntil([&] { return lane.in_flight == 0; }));
  EXPECT_EQ(std::vector<ibv_wc_status>{}, lane.failures);
  peer.WriteNumber(0);
  // Its last sends need our receives, so its answer is read while traffic goes on.
  ASSERT_TRUE(RunUntil([&] { return peer.HasWritten(); }));
  const std::optional<uint64_t> sent = peer.ReadNumber();
  ASSERT_TRUE(sent.has_value());
  EXPECT_EQ(*sent, lane.received);
  peer.WriteNumber(0);
  EXPECT_EQ(0, peer.Wait());
}

}  // namespace simhca::conformance
