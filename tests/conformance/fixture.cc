#include "tests/conformance/fixture.h"

#include <cerrno>

namespace simhca::conformance {

void ExpectRefusedPost(const Device& device, int result) {
  if (device.generic()) {
    EXPECT_EQ(EINVAL, result);
  } else {
    EXPECT_TRUE(result == EINVAL || result == ENOMEM) << result;
  }
}

std::vector<ibv_wc_status> StatusesOf(const std::vector<ibv_wc>& completions) {
  std::vector<ibv_wc_status> statuses;
  for (const ibv_wc& wc : completions) statuses.push_back(wc.status);
  return statuses;
}

std::vector<uint64_t> IdsOf(const std::vector<ibv_wc>& completions) {
  std::vector<uint64_t> ids;
  for (const ibv_wc& wc : completions) ids.push_back(wc.wr_id);
  return ids;
}

RcTest::RcTest()
    : pd_(MakePd(device_)),
      requester_cq_(MakeCq(device_, 512)),
      responder_cq_(MakeCq(device_, 512)),
      source_(pd_.get(), kBufferBytes),
      sink_(pd_.get(), kBufferBytes) {}

QpOptions RcTest::RequesterOptions() const {
  QpOptions options;
  options.send_cq = requester_cq_.get();
  options.receive_cq = requester_cq_.get();
  return options;
}

QpOptions RcTest::ResponderOptions(ibv_srq* srq) const {
  QpOptions options;
  options.send_cq = responder_cq_.get();
  options.receive_cq = responder_cq_.get();
  options.srq = srq;
  return options;
}

Link RcTest::MakeLink(const ConnectOptions& options, ibv_srq* srq) {
  Link link{MakeQp(device_, pd_.get(), RequesterOptions()),
            MakeQp(device_, pd_.get(), ResponderOptions(srq))};
  Connect(device_, link.requester.get(), link.responder.get(), options);
  return link;
}

void RcTest::SendAndExpectSuccess(ibv_qp* qp, SendRequest request) {
  const uint64_t wr_id = request.wr_id;
  ASSERT_EQ(0, PostSend(qp, std::move(request)));
  const ibv_wc wc = PollOne(device_, requester_cq_.get());
  EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
  EXPECT_EQ(wr_id, wc.wr_id);
}

void RcTest::Record(const std::string& what, Nanoseconds duration) {
  RecordProperty(what + "_ns", std::to_string(duration.count()));
}

void SrqTest::CreateSrq(uint32_t max_wr, uint32_t max_sge) {
  ibv_srq_attr granted{};
  srq_ = MakeSrq(pd_.get(), max_wr, max_sge, &granted);
  capacity_ = granted.max_wr;
}

ibv_srq_attr SrqTest::Query() const {
  ibv_srq_attr attr{};
  errno = ibv_query_srq(srq_.get(), &attr);
  Require(errno == 0, "ibv_query_srq");
  return attr;
}

int SrqTest::SetLimit(uint32_t limit) {
  ibv_srq_attr attr{};
  attr.srq_limit = limit;
  return ibv_modify_srq(srq_.get(), &attr, IBV_SRQ_LIMIT);
}

int SrqTest::Resize(uint32_t max_wr) {
  ibv_srq_attr attr{};
  attr.max_wr = max_wr;
  return ibv_modify_srq(srq_.get(), &attr, IBV_SRQ_MAX_WR);
}

int SrqTest::P(uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    const size_t slot = next_id_ % (sink_.size() / kSlotBytes);
    const int result =
        PostSrqReceive(srq_.get(), next_id_, {sink_.Sge(slot * kSlotBytes, kSlotBytes)});
    if (result != 0) return result;
    ++next_id_;
  }
  return 0;
}

void SrqTest::S(ibv_qp* requester, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    SendAndExpectSuccess(requester, {.wr_id = i, .segments = {source_.Sge(0, kSlotBytes)}});
  }
}

std::vector<uint64_t> SrqTest::Receive(size_t count) {
  const std::vector<ibv_wc> completions = Poll(device_, responder_cq_.get(), count);
  EXPECT_EQ(count, completions.size());
  for (const ibv_wc& wc : completions) {
    EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
    EXPECT_EQ(IBV_WC_RECV, wc.opcode);
  }
  return IdsOf(completions);
}

std::vector<uint64_t> SrqTest::SendAndReceive(const Link& link, uint32_t count) {
  S(link.requester.get(), count);
  return Receive(count);
}

uint32_t SrqTest::CountReceivable() {
  const Link link = MakeLink({.rnr_retry = 0}, srq_.get());
  for (uint32_t received = 0;; ++received) {
    EXPECT_EQ(0, PostSend(link.requester.get(), {.segments = {source_.Sge(0, kSlotBytes)}}));
    const ibv_wc wc = PollOne(device_, requester_cq_.get());
    if (wc.status != IBV_WC_SUCCESS) {
      EXPECT_EQ(IBV_WC_RNR_RETRY_EXC_ERR, wc.status);
      return received;
    }
    Receive(1);
  }
}

void SrqTest::ExpectNothingLost(uint32_t completed) {
  EXPECT_EQ(capacity_, completed + CountReceivable());
  EXPECT_EQ(0, P(capacity_));
  EXPECT_EQ(ENOMEM, P(1));
  EXPECT_EQ(capacity_, CountReceivable());
}

size_t SrqTest::LimitEvents() {
  const std::vector<ibv_async_event> events = device_.AsyncEvents(kQuiet);
  for (const ibv_async_event& event : events) {
    EXPECT_EQ(IBV_EVENT_SRQ_LIMIT_REACHED, event.event_type);
    EXPECT_EQ(srq_.get(), event.element.srq);
  }
  return events.size();
}

}  // namespace simhca::conformance
