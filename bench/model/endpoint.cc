#include "bench/model/endpoint.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "sim/wire/gid.h"

namespace simhca::bench {

namespace {

constexpr uint32_t kEventEntries = 64;

// A command that the device refuses is a mistake in the benchmark.
void Require(int error, const char* command) {
  if (error == 0) return;
  std::fprintf(stderr, "%s: errno %d\n", command, error);
  std::exit(1);
}

}  // namespace

Endpoint::Endpoint(Hca& device, const Options& options)
    : device_(device),
      options_(options),
      buffer_(std::max(64u, options.message_bytes)),
      event_ring_(kEventEntries * sizeof(mlx5::Eqe)) {
  auto* events = reinterpret_cast<mlx5::Eqe*>(event_ring_.data());
  for (uint32_t i = 0; i < kEventEntries; ++i) events[i].owner = 1;
  Require(device_.OpenContext({this, event_ring_.data(), kEventEntries}, &context_), "open");
  Require(device_.AllocPd(context_, &pd_), "alloc pd");
  Require(device_.RegisterRegion({pd_, buffer_.data(), buffer_.size(), address(),
                                  kLocalWrite | kRemoteWrite | kRemoteRead},
                                 &key_),
          "register");
  const uint32_t receives = options.srq ? options.receives : options.receives * options.qps;
  MakeCq(&send_cq_, std::bit_ceil(options.qps * send_blocks() + 1));
  MakeCq(&receive_cq_, std::bit_ceil(std::max(receives, options.receive_entries) + 1));
  receive_cq_.receives = true;
  if (options.srq) MakeSrq();
  for (uint32_t i = 0; i < options.qps; ++i) MakeQp();
  first_qpn_ = qps_[0]->number;
}

uint32_t Endpoint::send_blocks() const { return std::bit_ceil(options_.sends); }
uint32_t Endpoint::receive_stride() const { return std::bit_ceil(16 * options_.segments); }

void Endpoint::MakeCq(Cq* cq, uint32_t entries) {
  cq->entries = entries;
  cq->ring = driver::RingMemory(entries * sizeof(mlx5::Cqe));
  auto* ring = reinterpret_cast<mlx5::Cqe*>(cq->ring.data());
  for (uint32_t i = 0; i < entries; ++i) {
    ring[i].opcode_owner = mlx5::Cqe::OpcodeOwner(mlx5::CqeOpcode::kInvalid, false, 0);
  }
  Require(
      device_.CreateCq({context_, cq->ring.data(), entries, cq->record.data(), true}, &cq->number),
      "create CQ");
}

void Endpoint::MakeSrq() {
  srq_.stride = std::bit_ceil(16 + 16 * options_.segments);
  srq_.ring = driver::RingMemory(size_t{options_.receive_entries} * srq_.stride);
  srq_.free = std::make_unique<driver::SrqFreeList>(options_.list_order, srq_.ring.data(),
                                                    srq_.stride, options_.receive_entries);
  CreateSrqCommand command{};
  command.context = context_;
  command.pd = pd_;
  command.ring = srq_.ring.data();
  command.entries = options_.receive_entries;
  command.stride = srq_.stride;
  command.doorbell_record = srq_.record.data();
  command.max_limit = options_.receive_entries - 1;
  Require(device_.CreateSrq(command, &srq_.number), "create SRQ");
}

void Endpoint::MakeQp() {
  auto qp = std::make_unique<Qp>();
  qp->sends = driver::RingMemory(size_t{send_blocks()} * mlx5::kSendBlockBytes);
  const uint32_t stride = receive_stride();
  if (!options_.srq) qp->receives = driver::RingMemory(size_t{options_.receive_entries} * stride);
  CreateQpCommand command{};
  command.context = context_;
  command.pd = pd_;
  command.type = QpType::kRc;
  command.send_cq = send_cq_.number;
  command.receive_cq = receive_cq_.number;
  command.srq = srq_.number;
  command.send_ring = qp->sends.data();
  command.send_blocks = send_blocks();
  command.receive_ring = qp->receives.data();
  command.receive_entries = options_.srq ? 0 : options_.receive_entries;
  command.receive_stride = stride;
  command.doorbell_record = qp->record.data();
  CreateQpReply reply{};
  Require(device_.CreateQp(command, &reply), "create QP");
  qp->number = reply.qpn;
  qp->doorbell = reply.doorbell;
  qps_.push_back(std::move(qp));
}

int Endpoint::Connect(uint32_t qp, const Endpoint& peer, uint32_t peer_qp) {
  using namespace qp_mask;
  QpAttributes attributes;
  ReleasedWqe released;
  const auto move = [&](QpState state, uint32_t mask) {
    attributes.state = state;
    return device_.ModifyQp({qps_[qp]->number, kState | mask, attributes}, &released);
  };
  attributes.port = 1;
  attributes.access_flags = kLocalWrite | kRemoteWrite | kRemoteRead;
  if (int error = move(QpState::kInit, kPkeyIndex | kPort | kAccessFlags)) return error;
  attributes.path_mtu = options_.path_mtu;
  attributes.dest_qpn = peer.qpn(peer_qp);
  attributes.max_dest_rd_atomic = options_.rd_atomic;
  attributes.min_rnr_timer = options_.min_rnr_timer;
  attributes.av.dgid = GidOfPort(peer.device_.port_index(), 0);
  attributes.av.is_global = true;
  attributes.av.dlid = static_cast<uint16_t>(peer.device_.port_index() + 1);
  attributes.av.port = 1;
  if (int error = move(QpState::kRtr,
                       kAv | kPathMtu | kDestQpn | kRqPsn | kMaxDestRdAtomic | kMinRnrTimer)) {
    return error;
  }
  attributes.timeout = options_.timeout;
  attributes.retry_count = 7;
  attributes.rnr_retry = options_.rnr_retry;
  attributes.max_rd_atomic = options_.rd_atomic;
  return move(QpState::kRts, kTimeout | kRetryCount | kRnrRetry | kSqPsn | kMaxRdAtomic);
}

// ---- Posting ----

void Endpoint::WriteSegments(std::byte* at, uint32_t room) const {
  auto* segments = reinterpret_cast<mlx5::DataSegment*>(at);
  const uint32_t count = options_.segments;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t from = options_.message_bytes * i / count;
    const uint32_t to = options_.message_bytes * (i + 1) / count;
    segments[i] = {to - from, key_, address() + from};
  }
  if (count < room) segments[count] = {0u, mlx5::kTerminatorKey, uint64_t{0}};
}

uint32_t Endpoint::PostReceives(uint32_t qp_index, uint32_t count) {
  uint32_t done = 0;
  if (options_.srq) {
    for (; done < count && posted_ < options_.receives && srq_.free->HasNext(); ++done) {
      std::byte* entry = srq_.ring.data() + size_t{srq_.free->Take()} * srq_.stride;
      WriteSegments(entry + sizeof(mlx5::SrqNextSegment), srq_.stride / 16 - 1);
      ++posted_;
    }
    srq_.posted += done;
    if (done != 0) srq_.record.Store(0, srq_.posted);
  } else {
    Qp& qp = *qps_[qp_index];
    const uint32_t stride = receive_stride();
    for (; done < count && qp.receive_outstanding < options_.receives; ++done) {
      const uint32_t slot = qp.receive_index++ & (options_.receive_entries - 1);
      WriteSegments(qp.receives.data() + size_t{slot} * stride, stride / 16);
      ++qp.receive_outstanding;
      ++posted_;
    }
    if (done != 0) qp.record.Store(mlx5::kReceiveRecord, qp.receive_index & 0xffff);
  }
  if (done != 0) device_.NoteProductive(Device::Call::kPostReceive);
  return done;
}

void Endpoint::WriteWqe(Qp& qp, mlx5::WqeOpcode opcode, const Endpoint* remote) const {
  std::byte* wqe =
      qp.sends.data() + size_t{qp.send_index & (send_blocks() - 1)} * mlx5::kSendBlockBytes;
  const bool in_line = options_.inline_sends && remote == nullptr;
  const uint32_t units =
      in_line ? 1 + (4 + options_.message_bytes + 15) / 16 : 2 + (remote != nullptr ? 1 : 0);
  reinterpret_cast<mlx5::ControlSegment*>(wqe)->Set(opcode, static_cast<uint16_t>(qp.send_index),
                                                    qp.number, units, mlx5::kCompletionOnSuccess);
  std::byte* at = wqe + 16;
  if (remote != nullptr) {
    *reinterpret_cast<mlx5::RemoteAddressSegment*>(at) = {remote->address(), remote->key(), 0u};
    at += 16;
  }
  if (in_line) {
    *reinterpret_cast<Be32*>(at) = options_.message_bytes | mlx5::kInlineFlag;
    std::copy_n(buffer_.data(), options_.message_bytes, at + sizeof(Be32));
  } else {
    *reinterpret_cast<mlx5::DataSegment*>(at) = {options_.message_bytes, key_, address()};
  }
  ++qp.send_index;
}

void Endpoint::Post(uint32_t qp_index, uint32_t count, mlx5::WqeOpcode opcode,
                    const Endpoint* remote) {
  Qp& qp = *qps_[qp_index];
  for (uint32_t i = 0; i < count; ++i) WriteWqe(qp, opcode, remote);
  qp.record.Store(mlx5::kSendRecord, qp.send_index & 0xffff);
  device_.RingSendDoorbell(qp.doorbell);
}

void Endpoint::PostSends(uint32_t qp, uint32_t count) {
  Post(qp, count, mlx5::WqeOpcode::kSend, nullptr);
}

void Endpoint::PostReads(uint32_t qp, uint32_t count, const Endpoint& from) {
  Post(qp, count, mlx5::WqeOpcode::kRdmaRead, &from);
}

// ---- Polling ----

bool Endpoint::Poll(Cq& cq, Polled* polled) {
  const auto& cqe = reinterpret_cast<const mlx5::Cqe*>(cq.ring.data())[cq.index & (cq.entries - 1)];
  if (cqe.opcode() == mlx5::CqeOpcode::kInvalid ||
      (cqe.opcode_owner & 1) != mlx5::Cqe::OwnerBit(cq.index, cq.entries)) {
    return false;
  }
  *polled = {.error = cqe.opcode() == mlx5::CqeOpcode::kRequesterError ||
                      cqe.opcode() == mlx5::CqeOpcode::kResponderError,
             .qp = cqe.qpn() - first_qpn_,
             .bytes = cqe.byte_count};
  if (cq.receives) {
    --posted_;
    if (options_.srq) {
      srq_.free->Free(cqe.wqe_counter & (options_.receive_entries - 1));
    } else {
      --qps_[polled->qp]->receive_outstanding;
    }
  }
  cq.record.Store(mlx5::kConsumerRecord, ++cq.index & 0xffffff);
  device_.NoteProductive(Device::Call::kPoll);
  return true;
}

void Endpoint::ArmLimit(uint32_t limit) {
  ModifySrqCommand command{};
  command.srq = srq_.number;
  command.set_limit = true;
  command.limit = limit;
  Require(device_.ModifySrq(command), "modify SRQ");
}

void Endpoint::OnInterrupt() {
  const auto* ring = reinterpret_cast<const mlx5::Eqe*>(event_ring_.data());
  while (true) {
    const mlx5::Eqe& eqe = ring[event_index_ & (kEventEntries - 1)];
    if (eqe.owner != ((event_index_ / kEventEntries) & 1)) return;
    limit_events_ += eqe.type == mlx5::EventType::kSrqLimit;
    ++event_index_;
  }
}

uint32_t Endpoint::TakeLimitEvents() { return std::exchange(limit_events_, 0); }

}  // namespace simhca::bench
