#include "tests/conformance/objects.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace simhca::conformance {

void Destroyer::operator()(ibv_pd* pd) const { EXPECT_EQ(0, ibv_dealloc_pd(pd)); }
void Destroyer::operator()(ibv_mr* mr) const { EXPECT_EQ(0, ibv_dereg_mr(mr)); }
void Destroyer::operator()(ibv_comp_channel* channel) const {
  EXPECT_EQ(0, ibv_destroy_comp_channel(channel));
}
void Destroyer::operator()(ibv_cq* cq) const { EXPECT_EQ(0, ibv_destroy_cq(cq)); }
void Destroyer::operator()(ibv_srq* srq) const { EXPECT_EQ(0, ibv_destroy_srq(srq)); }
void Destroyer::operator()(ibv_qp* qp) const { EXPECT_EQ(0, ibv_destroy_qp(qp)); }

Pd MakePd(const Device& device) {
  Pd pd(ibv_alloc_pd(device.context()));
  Require(pd != nullptr, "ibv_alloc_pd");
  return pd;
}

Mr Register(ibv_pd* pd, std::span<std::byte> memory, int access) {
  Mr mr(ibv_reg_mr(pd, memory.data(), memory.size(), access));
  Require(mr != nullptr, "ibv_reg_mr");
  return mr;
}

Channel MakeChannel(const Device& device) {
  Channel channel(ibv_create_comp_channel(device.context()));
  Require(channel != nullptr, "ibv_create_comp_channel");
  const int flags = fcntl(channel->fd, F_GETFL);
  Require(fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK) == 0, "O_NONBLOCK on a channel");
  return channel;
}

Cq MakeCq(const Device& device, int entries, ibv_comp_channel* channel, void* context) {
  Cq cq(ibv_create_cq(device.context(), entries, context, channel, 0));
  Require(cq != nullptr, "ibv_create_cq");
  return cq;
}

Srq MakeSrq(ibv_pd* pd, uint32_t max_wr, uint32_t max_sge, ibv_srq_attr* granted) {
  ibv_srq_init_attr init{};
  init.attr.max_wr = max_wr;
  init.attr.max_sge = max_sge;
  Srq srq(ibv_create_srq(pd, &init));
  Require(srq != nullptr, "ibv_create_srq");
  if (granted != nullptr) *granted = init.attr;
  return srq;
}

Qp MakeQp(const Device& device, ibv_pd* pd, const QpOptions& options, ibv_qp_cap* granted) {
  ibv_qp_init_attr_ex init{};
  init.qp_type = IBV_QPT_RC;
  init.send_cq = options.send_cq;
  init.recv_cq = options.receive_cq;
  init.srq = options.srq;
  init.cap = options.cap;
  init.sq_sig_all = options.signal_all ? 1 : 0;
  init.pd = pd;
  init.comp_mask = IBV_QP_INIT_ATTR_PD;
  if (options.send_ops != 0) {
    init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    init.send_ops_flags = options.send_ops;
  }
  Qp qp(ibv_create_qp_ex(device.context(), &init));
  Require(qp != nullptr, "creating a queue pair");
  if (granted != nullptr) *granted = init.cap;
  return qp;
}

namespace {

std::byte PatternByte(uint32_t seed, size_t place) {
  const uint32_t mixed = (seed * 2654435761u) ^ (static_cast<uint32_t>(place) * 2246822519u);
  return static_cast<std::byte>((mixed >> 13) ^ mixed);
}

}  // namespace

Buffer::Buffer(ibv_pd* pd, size_t size, int access)
    : memory_(size, kFiller), mr_(Register(pd, memory_, access)) {}

void Buffer::RegisterOnly(ibv_pd* pd, size_t offset, size_t length) {
  mr_ = Register(pd, std::span(memory_).subspan(offset, length), kAllAccess);
}

void Buffer::Fill(uint32_t seed, size_t offset, size_t length) {
  for (size_t i = 0; i < length; ++i) memory_[offset + i] = PatternByte(seed, i);
}

bool Buffer::Holds(uint32_t seed, size_t offset, size_t length, size_t from) const {
  for (size_t i = 0; i < length; ++i) {
    if (memory_[offset + i] != PatternByte(seed, from + i)) return false;
  }
  return true;
}

bool Buffer::Untouched(size_t offset, size_t length) const {
  const auto begin = memory_.begin() + static_cast<ptrdiff_t>(offset);
  return std::all_of(begin, begin + static_cast<ptrdiff_t>(length),
                     [](std::byte byte) { return byte == kFiller; });
}

void Buffer::Clear() { std::fill(memory_.begin(), memory_.end(), kFiller); }

ibv_qp_attr ConnectionAttributes(const Device& device, uint32_t peer_qpn,
                                 const ConnectOptions& options) {
  ibv_qp_attr attr{};
  attr.pkey_index = 0;
  attr.port_num = device.port();
  attr.qp_access_flags = static_cast<unsigned>(options.access);
  attr.path_mtu = std::min(options.mtu, device.port_attributes().active_mtu);
  attr.dest_qp_num = peer_qpn;
  attr.rq_psn = options.psn;
  attr.sq_psn = options.psn;
  attr.max_rd_atomic = options.rd_atomic;
  attr.max_dest_rd_atomic = options.rd_atomic;
  attr.min_rnr_timer = options.min_rnr_timer;
  attr.timeout = options.timeout;
  attr.retry_cnt = options.retry_count;
  attr.rnr_retry = options.rnr_retry;
  attr.ah_attr.port_num = device.port();
  attr.ah_attr.dlid = device.port_attributes().lid;
  if (device.port_attributes().link_layer == IBV_LINK_LAYER_ETHERNET) {
    attr.ah_attr.is_global = 1;
    attr.ah_attr.grh.dgid = device.gid();
    attr.ah_attr.grh.sgid_index = static_cast<uint8_t>(device.gid_index());
    attr.ah_attr.grh.hop_limit = 64;
  }
  return attr;
}

void BringTo(const Device&, ibv_qp* qp, ibv_qp_state state, ibv_qp_attr attributes) {
  constexpr std::pair<ibv_qp_state, int> kSteps[] = {
      {IBV_QPS_INIT, kInitMask}, {IBV_QPS_RTR, kRtrMask}, {IBV_QPS_RTS, kRtsMask}};
  for (const auto& [step, mask] : kSteps) {
    attributes.qp_state = step;
    errno = ibv_modify_qp(qp, &attributes, mask);
    Require(errno == 0, "connecting a queue pair");
    if (step == state) return;
  }
}

void Connect(const Device& device, ibv_qp* a, ibv_qp* b, const ConnectOptions& options) {
  BringTo(device, a, IBV_QPS_RTS, ConnectionAttributes(device, b->qp_num, options));
  BringTo(device, b, IBV_QPS_RTS, ConnectionAttributes(device, a->qp_num, options));
}

int Move(ibv_qp* qp, ibv_qp_state state) {
  ibv_qp_attr attr{};
  attr.qp_state = state;
  return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

ibv_qp_state StateOf(ibv_qp* qp) {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  errno = ibv_query_qp(qp, &attr, IBV_QP_STATE, &init);
  Require(errno == 0, "ibv_query_qp");
  return attr.qp_state;
}

ibv_send_wr MakeSendWr(SendRequest& request) {
  ibv_send_wr wr{};
  wr.wr_id = request.wr_id;
  wr.sg_list = request.segments.data();
  wr.num_sge = static_cast<int>(request.segments.size());
  wr.opcode = request.opcode;
  wr.send_flags = request.flags;
  wr.imm_data = request.imm_data;
  wr.wr.rdma.remote_addr = request.remote_address;
  wr.wr.rdma.rkey = request.rkey;
  return wr;
}

int PostSend(ibv_qp* qp, SendRequest request) {
  ibv_send_wr wr = MakeSendWr(request);
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(qp, &wr, &bad);
}

int PostReceive(ibv_qp* qp, uint64_t wr_id, std::vector<ibv_sge> segments) {
  ibv_recv_wr wr{wr_id, nullptr, segments.data(), static_cast<int>(segments.size())};
  ibv_recv_wr* bad = nullptr;
  return ibv_post_recv(qp, &wr, &bad);
}

int PostSrqReceive(ibv_srq* srq, uint64_t wr_id, std::vector<ibv_sge> segments) {
  ibv_recv_wr wr{wr_id, nullptr, segments.data(), static_cast<int>(segments.size())};
  ibv_recv_wr* bad = nullptr;
  return ibv_post_srq_recv(srq, &wr, &bad);
}

ReceiveChain::ReceiveChain(size_t count, std::vector<ibv_sge> segments, uint64_t first_id)
    : segments_(std::move(segments)), requests_(count) {
  for (size_t i = 0; i < count; ++i) {
    requests_[i].wr_id = first_id + i;
    requests_[i].next = i + 1 < count ? &requests_[i + 1] : nullptr;
    requests_[i].sg_list = segments_.data();
    requests_[i].num_sge = static_cast<int>(segments_.size());
  }
}

std::vector<ibv_wc> Poll(const Device& device, ibv_cq* cq, size_t count, Nanoseconds within) {
  std::vector<ibv_wc> completions;
  Deadline deadline(device, within);
  while (completions.size() < count) {
    ibv_wc wc{};
    const int polled = ibv_poll_cq(cq, 1, &wc);
    Require(polled >= 0, "ibv_poll_cq");
    if (polled == 1) {
      completions.push_back(wc);
    } else if (deadline.Passed()) {
      break;
    }
  }
  return completions;
}

ibv_wc PollOne(const Device& device, ibv_cq* cq, Nanoseconds within) {
  const std::vector<ibv_wc> completions = Poll(device, cq, 1, within);
  if (!completions.empty()) return completions.front();
  ADD_FAILURE() << "no completion came";
  ibv_wc none{};
  none.status = IBV_WC_GENERAL_ERR;
  return none;
}

bool StaysEmpty(const Device& device, ibv_cq* cq, Nanoseconds window) {
  return Poll(device, cq, 1, window).empty();
}

ibv_cq* NextCqEvent(const Device& device, ibv_comp_channel* channel, Nanoseconds within,
                    void** context) {
  Deadline deadline(device, within);
  do {
    ibv_cq* cq = nullptr;
    void* cq_context = nullptr;
    if (ibv_get_cq_event(channel, &cq, &cq_context) == 0) {
      if (context != nullptr) *context = cq_context;
      return cq;
    }
    Require(errno == EAGAIN || errno == EWOULDBLOCK, "ibv_get_cq_event");
  } while (!deadline.Passed());
  return nullptr;
}

}  // namespace simhca::conformance
