#include "bench/loopback_pair.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

namespace simhca::bench {

namespace {

constexpr uint32_t kLongestList = 64;     // work requests of one ibv_post_srq_recv
constexpr uint32_t kSignalInterval = 64;  // of sends that are not waited for one by one
constexpr int kPollBatch = 16;
constexpr int kDeadlineMs = 10'000;
constexpr uint32_t kEmptyPollsPerClock = 1024;

ibv_device* FindDevice(ibv_device** list, const std::string& name) {
  for (; *list != nullptr; ++list) {
    if (name.empty() || name == ibv_get_device_name(*list)) return *list;
  }
  return nullptr;
}

}  // namespace

LoopbackPair::LoopbackPair(const DeviceChoice& choice, const PairOptions& options) {
  Open(choice) && CreateQueues(options) && CreateQps(options) &&
      Connect(sender_.get(), receiver_.get(), choice.gid_index) &&
      Connect(receiver_.get(), sender_.get(), choice.gid_index);
  if (ok()) PrepareReceives(options.message_bytes);
}

bool LoopbackPair::Fail(const std::string& what, int code) {
  if (error_.empty()) error_ = what + (code == 0 ? "" : std::string(": ") + std::strerror(code));
  return false;
}

bool LoopbackPair::Open(const DeviceChoice& choice) {
  ibv_device** list = ibv_get_device_list(nullptr);
  if (list == nullptr) return Fail("ibv_get_device_list", errno);
  ibv_device* device = FindDevice(list, choice.name);
  if (device != nullptr) context_.reset(ibv_open_device(device));
  const int code = errno;
  ibv_free_device_list(list);
  if (device == nullptr) {
    return Fail(choice.name.empty() ? "there is no device" : "no device " + choice.name, 0);
  }
  return context_ != nullptr || Fail("ibv_open_device", code);
}

bool LoopbackPair::CreateQueues(const PairOptions& options) {
  pd_.reset(ibv_alloc_pd(context_.get()));
  if (pd_ == nullptr) return Fail("ibv_alloc_pd", errno);

  buffer_.resize(2 * size_t{std::max(options.message_bytes, 1u)});
  region_.reset(ibv_reg_mr(pd_.get(), buffer_.data(), buffer_.size(), IBV_ACCESS_LOCAL_WRITE));
  if (region_ == nullptr) return Fail("ibv_reg_mr", errno);

  const int entries = static_cast<int>(options.depth);
  send_cq_.reset(ibv_create_cq(context_.get(), entries, nullptr, nullptr, 0));
  receive_cq_.reset(ibv_create_cq(context_.get(), entries, nullptr, nullptr, 0));
  if (send_cq_ == nullptr || receive_cq_ == nullptr) return Fail("ibv_create_cq", errno);

  ibv_srq_init_attr attributes{};
  attributes.attr.max_wr = options.depth;
  attributes.attr.max_sge = 1;
  srq_.reset(ibv_create_srq(pd_.get(), &attributes));
  if (srq_ == nullptr) return Fail("ibv_create_srq", errno);
  capacity_ = std::min(attributes.attr.max_wr, options.depth);
  return true;
}

bool LoopbackPair::CreateQps(const PairOptions& options) {
  ibv_qp_init_attr_ex attributes{};
  attributes.qp_type = IBV_QPT_RC;
  attributes.send_cq = send_cq_.get();
  attributes.recv_cq = receive_cq_.get();
  attributes.cap.max_send_wr = options.depth;
  attributes.cap.max_send_sge = 1;
  attributes.comp_mask = IBV_QP_INIT_ATTR_PD;
  attributes.pd = pd_.get();
  if (options.extended_sends) {
    attributes.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attributes.send_ops_flags = IBV_QP_EX_WITH_SEND;
  }
  sender_.reset(ibv_create_qp_ex(context_.get(), &attributes));
  if (sender_ == nullptr) return Fail("ibv_create_qp_ex for the sender", errno);

  attributes = {};
  attributes.qp_type = IBV_QPT_RC;
  attributes.send_cq = send_cq_.get();
  attributes.recv_cq = receive_cq_.get();
  attributes.srq = srq_.get();
  attributes.cap.max_send_wr = 1;
  attributes.cap.max_send_sge = 1;
  attributes.comp_mask = IBV_QP_INIT_ATTR_PD;
  attributes.pd = pd_.get();
  receiver_.reset(ibv_create_qp_ex(context_.get(), &attributes));
  return receiver_ != nullptr || Fail("ibv_create_qp_ex for the receiver", errno);
}

bool LoopbackPair::Connect(ibv_qp* qp, ibv_qp* peer, int gid_index) {
  ibv_port_attr port{};
  if (const int code = ibv_query_port(context_.get(), 1, &port))
    return Fail("ibv_query_port", code);

  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = 1;
  if (const int code = ibv_modify_qp(
          qp, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)) {
    return Fail("ibv_modify_qp to INIT", code);
  }

  attributes = {};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = port.active_mtu;
  attributes.dest_qp_num = peer->qp_num;
  attributes.min_rnr_timer = 12;  // 0.64 ms
  attributes.ah_attr.port_num = 1;
  attributes.ah_attr.dlid = port.lid;
  if (port.link_layer == IBV_LINK_LAYER_ETHERNET) {
    attributes.ah_attr.is_global = 1;
    attributes.ah_attr.grh.sgid_index = static_cast<uint8_t>(gid_index);
    attributes.ah_attr.grh.hop_limit = 64;
    if (ibv_query_gid(context_.get(), 1, gid_index, &attributes.ah_attr.grh.dgid) != 0) {
      return Fail("ibv_query_gid", errno);
    }
  }
  if (const int code =
          ibv_modify_qp(qp, &attributes,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)) {
    return Fail("ibv_modify_qp to RTR", code);
  }

  attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = 14;  // 67 ms
  attributes.retry_cnt = 7;
  attributes.rnr_retry = 7;
  if (const int code =
          ibv_modify_qp(qp, &attributes,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                            IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC)) {
    return Fail("ibv_modify_qp to RTS", code);
  }
  return true;
}

void LoopbackPair::PrepareReceives(uint32_t bytes) {
  receive_segment_.addr = reinterpret_cast<uintptr_t>(buffer_.data() + buffer_.size() / 2);
  receive_segment_.length = bytes;
  receive_segment_.lkey = region_->lkey;
  receives_.resize(kLongestList);
  for (ibv_recv_wr& receive : receives_) {
    receive.sg_list = &receive_segment_;
    receive.num_sge = 1;
    receive.next = &receive + 1;
  }
  receives_.back().next = nullptr;
}

ibv_sge LoopbackPair::send_segment(uint32_t bytes) const {
  return {
      .addr = reinterpret_cast<uintptr_t>(buffer_.data()), .length = bytes, .lkey = region_->lkey};
}

bool LoopbackPair::PostReceives(uint32_t count, uint32_t batch) {
  // The list ends behind the last work request of a call.
  ibv_recv_wr* const first = receives_.data();
  while (count > 0 && ok()) {
    const uint32_t now = std::min({count, batch, kLongestList});
    ibv_recv_wr& last = first[now - 1];
    ibv_recv_wr* const behind = std::exchange(last.next, nullptr);
    ibv_recv_wr* bad = nullptr;
    const int code = ibv_post_srq_recv(srq_.get(), first, &bad);
    last.next = behind;
    if (code != 0) return Fail("ibv_post_srq_recv", code);
    count -= now;
  }
  return ok();
}

bool LoopbackPair::PostSend(uint32_t bytes, bool signaled) {
  ibv_sge segment = send_segment(bytes);
  ibv_send_wr send{};
  send.sg_list = &segment;
  send.num_sge = 1;
  send.opcode = IBV_WR_SEND;
  send.send_flags = signaled ? IBV_SEND_SIGNALED : 0;
  ibv_send_wr* bad = nullptr;
  const int code = ibv_post_send(sender_.get(), &send, &bad);
  return code == 0 || Fail("ibv_post_send", code);
}

bool LoopbackPair::Send(uint32_t count, uint32_t bytes) {
  uint32_t signals = 0;
  for (uint32_t i = 1; i <= count && ok(); ++i) {
    const bool signaled = i % kSignalInterval == 0 || i == count;
    signals += signaled;
    PostSend(bytes, signaled);
  }
  return ok() && AwaitSends(signals);
}

bool LoopbackPair::Await(ibv_cq* cq, uint32_t count) {
  ibv_wc completions[kPollBatch];
  uint32_t empty_polls = 0;
  std::chrono::steady_clock::time_point start;
  while (count > 0 && ok()) {
    const int wanted = static_cast<int>(std::min<uint32_t>(count, kPollBatch));
    const int got = ibv_poll_cq(cq, wanted, completions);
    if (got < 0) return Fail("ibv_poll_cq", 0);
    for (int i = 0; i < got; ++i) {
      if (completions[i].status != IBV_WC_SUCCESS) {
        return Fail(ibv_wc_status_str(completions[i].status), 0);
      }
    }
    count -= static_cast<uint32_t>(got);
    if (got > 0 || ++empty_polls % kEmptyPollsPerClock != 0) continue;
    const auto now = std::chrono::steady_clock::now();
    if (empty_polls == kEmptyPollsPerClock) start = now;
    if (now - start > std::chrono::milliseconds(kDeadlineMs))
      return Fail("no completion", ETIMEDOUT);
  }
  return ok();
}

bool LoopbackPair::ArmLimit(uint32_t limit) {
  ibv_srq_attr attributes{};
  attributes.srq_limit = limit;
  const int code = ibv_modify_srq(srq_.get(), &attributes, IBV_SRQ_LIMIT);
  return code == 0 || Fail("ibv_modify_srq", code);
}

bool LoopbackPair::AwaitLimitEvent() {
  while (ok()) {
    // As an event loop does it; also keeps a device that raises no event from blocking for ever.
    pollfd descriptor{.fd = context_->async_fd, .events = POLLIN, .revents = 0};
    const int ready = poll(&descriptor, 1, kDeadlineMs);
    if (ready <= 0) return Fail("no limit event", ready == 0 ? ETIMEDOUT : errno);
    ibv_async_event event;
    if (ibv_get_async_event(context_.get(), &event) != 0) return Fail("ibv_get_async_event", errno);
    ibv_ack_async_event(&event);
    if (event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && event.element.srq == srq_.get()) {
      return true;
    }
  }
  return false;
}

}  // namespace simhca::bench
