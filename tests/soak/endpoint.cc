#include "tests/soak/endpoint.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>

namespace simhca::soak {
namespace {

constexpr uint64_t kSendId = uint64_t{1} << 32;

template <typename T>
T* Require(T* object, const char* what) {
  if (object == nullptr) Die(std::string(what) + ": " + std::strerror(errno));
  return object;
}

void RequireZero(int error, const char* what) {
  if (error != 0) Die(std::string(what) + ": " + std::strerror(error));
}

uint32_t LengthOf(uint64_t sequence) {
  return sizeof(MessageHeader) + static_cast<uint32_t>(sequence * 2654435761u % 3000);
}

// FNV-1a over the message, its `check` taken as 0.
uint32_t CheckOf(const std::byte* message, uint32_t length) {
  uint32_t hash = 2166136261u;
  for (uint32_t i = 0; i < length; ++i) {
    const bool check = i >= offsetof(MessageHeader, check) && i < sizeof(MessageHeader);
    hash = (hash ^ (check ? 0 : static_cast<uint32_t>(message[i]))) * 16777619u;
  }
  return hash;
}

}  // namespace

void Die(const std::string& what) {
  std::fprintf(stderr, "soak (process %d): %s\n", getpid(), what.c_str());
  std::_Exit(1);
}

Endpoint::Endpoint() {
  int count = 0;
  ibv_device** list = Require(ibv_get_device_list(&count), "ibv_get_device_list");
  if (count == 0) Die("there is no device");
  context_ = Require(ibv_open_device(list[0]), "ibv_open_device");
  ibv_free_device_list(list);
  pd_ = Require(ibv_alloc_pd(context_), "ibv_alloc_pd");
  mr_ = Require(ibv_reg_mr(pd_, memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE),
                "ibv_reg_mr");
  cq_ = Require(ibv_create_cq(context_, 1024, nullptr, nullptr, 0), "ibv_create_cq");
  ibv_srq_init_attr attributes{};
  attributes.attr = {.max_wr = kReceives, .max_sge = 1, .srq_limit = 0};
  srq_ = Require(ibv_create_srq(pd_, &attributes), "ibv_create_srq");
  if (ibv_query_gid(context_, 1, 0, &gid_) != 0) Die("ibv_query_gid failed");
  for (uint32_t slot = 0; slot < kReceives; ++slot) PostReceive(slot);
}

Endpoint::~Endpoint() {
  RequireZero(ibv_destroy_srq(srq_), "ibv_destroy_srq");
  RequireZero(ibv_destroy_cq(cq_), "ibv_destroy_cq");
  RequireZero(ibv_dereg_mr(mr_), "ibv_dereg_mr");
  RequireZero(ibv_dealloc_pd(pd_), "ibv_dealloc_pd");
  RequireZero(ibv_close_device(context_), "ibv_close_device");
}

ibv_qp* Endpoint::CreateQp() {
  ibv_qp_init_attr attributes{};
  attributes.send_cq = attributes.recv_cq = cq_;
  attributes.srq = srq_;
  attributes.qp_type = IBV_QPT_RC;
  attributes.cap = {.max_send_wr = 32,
                    .max_recv_wr = 0,
                    .max_send_sge = 1,
                    .max_recv_sge = 0,
                    .max_inline_data = 0};
  attributes.sq_sig_all = 1;
  return Require(ibv_create_qp(pd_, &attributes), "ibv_create_qp");
}

void Endpoint::Connect(ibv_qp* qp, uint32_t remote_qpn, uint8_t rnr_retry) {
  const char* const failed = ConnectRc(qp, {.remote_gid = gid_,
                                            .remote_qpn = remote_qpn,
                                            .min_rnr_timer = 1,
                                            .timeout = kTimeout,
                                            .rnr_retry = rnr_retry});
  if (failed != nullptr) RequireZero(errno, failed);
}

void Endpoint::DestroyQp(ibv_qp* qp) {
  const uint32_t number = qp->qp_num;
  RequireZero(ibv_destroy_qp(qp), "ibv_destroy_qp");
  std::replace(send_slots_, send_slots_ + kSendSlots, number, 0u);
}

void Endpoint::PostReceive(uint64_t slot) {
  ibv_sge segment{reinterpret_cast<uint64_t>(ReceiveBuffer(slot)), kMessageBytes, mr_->lkey};
  ibv_recv_wr request{.wr_id = slot, .next = nullptr, .sg_list = &segment, .num_sge = 1};
  ibv_recv_wr* bad = nullptr;
  posted_[slot] = true;
  RequireZero(ibv_post_srq_recv(srq_, &request, &bad), "ibv_post_srq_recv");
}

void Endpoint::Send(ibv_qp* qp, uint64_t sequence, uint64_t credit) {
  uint32_t* const free = std::find(send_slots_, send_slots_ + kSendSlots, 0u);
  const auto slot = static_cast<uint32_t>(free - send_slots_);
  if (slot == kSendSlots) Die("more sends are under way than there are buffers");
  *free = qp->qp_num;
  std::byte* message = memory_.data() + (kReceives + slot) * kMessageBytes;
  MessageHeader header{sequence, credit, LengthOf(sequence), 0};
  std::memcpy(message, &header, sizeof header);
  for (uint32_t i = sizeof header; i < header.length; ++i) {
    message[i] = static_cast<std::byte>(sequence + i);
  }
  header.check = CheckOf(message, header.length);
  std::memcpy(message, &header, sizeof header);
  ibv_sge segment{reinterpret_cast<uint64_t>(message), header.length, mr_->lkey};
  ibv_send_wr request{};
  request.wr_id = kSendId | slot;
  request.sg_list = &segment;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  ibv_send_wr* bad = nullptr;
  RequireZero(ibv_post_send(qp, &request, &bad), "ibv_post_send");
}

size_t Endpoint::Poll(const std::function<void(const Completion&)>& handler) {
  ibv_wc wcs[16];
  const int count = ibv_poll_cq(cq_, 16, wcs);
  if (count < 0) Die("ibv_poll_cq failed");
  for (const ibv_wc& wc : std::span(wcs, static_cast<size_t>(count))) {
    Completion completion{.qpn = wc.qp_num,
                          .status = wc.status,
                          .receive = (wc.wr_id & kSendId) == 0,
                          .header = {},
                          .intact = false};
    if (completion.receive) {
      if (wc.wr_id >= kReceives || !posted_[wc.wr_id]) {
        Die("receive " + std::to_string(wc.wr_id) + " completed without being posted");
      }
      posted_[wc.wr_id] = false;
      if (wc.status == IBV_WC_SUCCESS) {
        const std::byte* message = ReceiveBuffer(wc.wr_id);
        std::memcpy(&completion.header, message, sizeof(MessageHeader));
        completion.intact = wc.byte_len == completion.header.length &&
                            wc.byte_len == LengthOf(completion.header.sequence) &&
                            completion.header.check == CheckOf(message, wc.byte_len);
      }
      if (repost_) PostReceive(wc.wr_id);
    } else {
      send_slots_[wc.wr_id & ~kSendId] = 0;
    }
    handler(completion);
  }
  return static_cast<size_t>(count);
}

uint32_t Endpoint::CountReceives() {
  repost_ = false;
  ibv_qp* const sender = CreateQp();
  ibv_qp* const receiver = CreateQp();
  Connect(sender, receiver->qp_num, 0);
  Connect(receiver, sender->qp_num, 0);
  uint32_t received = 0;
  for (bool refused = false; !refused;) {
    Send(sender, received);
    for (bool sent = false; !sent;) {
      const size_t found = Poll([&](const Completion& completion) {
        if (completion.receive) {
          received += completion.status == IBV_WC_SUCCESS;
        } else {
          sent = true;
          refused = completion.status == IBV_WC_RNR_RETRY_EXC_ERR;
          if (!refused && completion.status != IBV_WC_SUCCESS) {
            Die(std::string("counting receives: ") + ibv_wc_status_str(completion.status));
          }
        }
      });
      if (found == 0) sched_yield();
    }
  }
  DestroyQp(sender);
  DestroyQp(receiver);
  return received;
}

}  // namespace simhca::soak
