#include "sim/transport/rc_responder.h"

#include <algorithm>
#include <cstring>

#include "sim/transport/packet_sender.h"
#include "sim/transport/queue_pair.h"
#include "sim/wire/headers.h"

namespace simhca {

void RcResponder::Start() {
  expected_psn_ = qp_.attributes().rq_psn;
  msn_ = 0;
}

uint32_t RcResponder::mtu() const { return PathMtuBytes(qp_.attributes().path_mtu); }

bool RcResponder::RightsFor(uint32_t access) const {
  return (qp_.attributes().access_flags & access) == access;
}

// ---- Requests ----

void RcResponder::OnRequest(const InboundPacket& packet) {
  if (!communication_established_) {
    communication_established_ = true;
    // The first packet of a connection that is not yet told to send (IBTA vol 1, 11.6.3.2).
    if (qp_.state() == QpState::kRtr) {
      qp_.RaiseEvent(mlx5::EventType::kCommunicationEstablished);
    }
  }
  const int32_t distance = PsnDistance(packet.bth.psn, expected_psn_);
  if (distance < 0) {
    OnDuplicate(packet);
    return;
  }
  if (distance > 0) {
    if (!resend_requested_) {
      resend_requested_ = true;
      answer_ = Answer{expected_psn_, syndrome::kNakSequence};
      qp_.Activate();
    }
    return;
  }
  const Operation operation = OperationOf(packet.bth.opcode);
  if (!FitsOpenMessage(operation) || !LengthIsRight(packet, operation)) {
    FailInvalidRequest(packet.bth.psn);
  } else if (IsSend(operation)) {
    OnSend(packet, operation);
  } else if (IsWrite(operation)) {
    OnWrite(packet, operation);
  } else if (operation == Operation::kReadRequest) {
    OnRead(packet);
  } else {
    FailInvalidRequest(packet.bth.psn);  // atomics: the device says that it has none
  }
}

bool RcResponder::FitsOpenMessage(Operation operation) const {
  if (IsFirst(operation)) return open_ == Open::kNothing;
  if (IsSend(operation)) return open_ == Open::kSend;
  return IsWrite(operation) && open_ == Open::kWrite;
}

// First and middle packets are full; a last one is not empty; none is longer than the MTU.
bool RcResponder::LengthIsRight(const InboundPacket& packet, Operation operation) const {
  if (!IsSend(operation) && !IsWrite(operation)) return packet.payload_bytes == 0;
  if (!IsLast(operation)) return packet.payload_bytes == mtu();
  if (packet.payload_bytes > mtu()) return false;
  return IsFirst(operation) || packet.payload_bytes > 0;
}

void RcResponder::OnDuplicate(const InboundPacket& packet) {
  qp_.services().counters.Add(Counter::kDuplicates);
  const Operation operation = OperationOf(packet.bth.opcode);
  if (operation != Operation::kReadRequest) {
    if (!answer_) answer_ = Answer{PsnSubtract(expected_psn_, 1), syndrome::kAck};
    qp_.Activate();
    return;
  }
  // Data of a READ that is remembered are sent again from where the requester lost them.
  const Reth reth = Reth::Parse(packet.headers);
  for (const Read& old : history_) {
    const int32_t skipped = PsnDistance(packet.bth.psn, old.first_psn);
    if (skipped < 0 || skipped >= static_cast<int32_t>(old.packets)) continue;
    const uint64_t offset = uint64_t{mtu()} * static_cast<uint32_t>(skipped);
    if (reth.rkey != old.rkey || reth.address != old.address + offset ||
        reth.length != old.length - offset) {
      return;
    }
    // The requester has gone back to this READ and will repeat all that followed it.
    std::erase_if(reads_, [&old](const Read& pending) {
      return PsnDistance(pending.first_psn, old.first_psn) >= 0;
    });
    Read again = old;
    again.sent = static_cast<uint32_t>(skipped);
    again.repeated = true;
    reads_.push_back(again);
    qp_.Activate();
    return;
  }
}

bool RcResponder::ClaimWqe(const InboundPacket& packet) {
  wqe_ = qp_.ClaimReceive();
  if (wqe_) {
    resend_requested_ = false;
    return true;
  }
  // The packet is dropped and nothing is reserved: whoever comes first after a post is served.
  qp_.services().counters.Add(Counter::kRnrNaksSent);
  resend_requested_ = true;
  answer_ = Answer{packet.bth.psn, syndrome::RnrNak(qp_.attributes().min_rnr_timer)};
  qp_.Activate();
  return false;
}

// Whether the packet is the next and takes a WQE that has not been claimed yet.
bool RcResponder::TakesWqe(const InboundPacket& packet) const {
  const Operation operation = OperationOf(packet.bth.opcode);
  if (wqe_ || packet.bth.psn != expected_psn_ || !FitsOpenMessage(operation) ||
      !LengthIsRight(packet, operation)) {
    return false;
  }
  if (IsSend(operation)) return IsFirst(operation);
  if (!IsWrite(operation) || !HasImmediate(operation)) return false;
  if (!IsFirst(operation)) return true;
  const Reth reth = Reth::Parse(packet.headers);  // a refused one takes no WQE
  return AcceptsWrites(reth) && RegionTakes(reth);
}

Time RcResponder::Prepare(const InboundPacket& packet, Time now) {
  if (!TakesWqe(packet)) return now;
  wqe_ = qp_.ClaimReceive();
  return wqe_ ? qp_.config().timing->FetchReceiveWqe(qp_, *wqe_) : now;
}

void RcResponder::Accept(const InboundPacket& packet, uint32_t psns, bool message_done) {
  expected_psn_ = PsnAdd(expected_psn_, psns);
  resend_requested_ = false;
  if (message_done) {
    msn_ = (msn_ + 1) & 0xffffff;
    open_ = Open::kNothing;
  }
  if (packet.bth.ack_request) {
    answer_ = Answer{PsnSubtract(expected_psn_, 1), syndrome::kAck};
    qp_.Activate();
  }
}

void RcResponder::CompleteReceive(const InboundPacket& packet, Operation operation,
                                  mlx5::CqeOpcode opcode, uint32_t bytes) {
  QueuePair::Received received{
      .opcode = opcode,
      .index = wqe_->index,
      .byte_count = bytes,
      .immediate = 0,
      .solicited = packet.bth.solicited,
  };
  if (HasImmediate(operation) || HasInvalidate(operation)) {
    // The last extension header.
    const std::byte* end = packet.headers + HeaderBytes(packet.bth.opcode) - Bth::kSize;
    received.immediate = ImmDt::Parse(end - ImmDt::kSize).data;
  }
  wqe_.reset();
  qp_.CompleteReceive(received);
}

void RcResponder::OnSend(const InboundPacket& packet, Operation operation) {
  const uint32_t psn = packet.bth.psn;
  if (IsFirst(operation)) {
    if (!wqe_ && !ClaimWqe(packet)) return;
    open_ = Open::kSend;
    received_ = 0;
    capacity_ = wqe_->buffers.Capacity();
  }
  if (packet.payload_bytes > capacity_ - received_) {
    Fail(psn, syndrome::kNakInvalidRequest, mlx5::Syndrome::kLocalLength, std::nullopt);
    return;
  }
  const uint32_t first_segment = wqe_->buffers.segment();
  const AccessFault fault =
      wqe_->buffers.Scatter(qp_.regions(), qp_.receive_pd(), packet.payload, packet.payload_bytes);
  if (fault != AccessFault::kNone) {
    Fail(psn, syndrome::kNakRemoteOperation, mlx5::Syndrome::kLocalProtection, std::nullopt);
    return;
  }
  received_ += packet.payload_bytes;
  if (qp_.config().timing != nullptr && packet.payload_bytes > 0) {
    qp_.config().timing->Place(packet.payload_bytes,
                               std::max(1u, wqe_->buffers.segment() - first_segment));
  }
  const bool last = IsLast(operation);
  Accept(packet, 1, last);
  if (!last) return;
  const mlx5::CqeOpcode opcode = HasImmediate(operation) ? mlx5::CqeOpcode::kResponderSendImmediate
                                 : HasInvalidate(operation)
                                     ? mlx5::CqeOpcode::kResponderSendInvalidate
                                     : mlx5::CqeOpcode::kResponderSend;
  CompleteReceive(packet, operation, opcode, static_cast<uint32_t>(received_));
}

bool RcResponder::RegionTakes(const Reth& reth) const {
  AccessFault fault = AccessFault::kNone;
  return reth.length == 0 ||
         qp_.regions().Translate(reth.rkey, reth.address, reth.length, qp_.config().pd,
                                 kRemoteWrite, &fault) != nullptr;
}

bool RcResponder::AcceptsWrites(const Reth& reth) const {
  return RightsFor(kRemoteWrite) && reth.length <= qp_.config().max_message_bytes;
}

// False if the request has been refused.
bool RcResponder::OpenWrite(const Reth& reth) {
  if (!AcceptsWrites(reth)) {
    FailInvalidRequest(expected_psn_);
    return false;
  }
  if (!RegionTakes(reth)) {
    FailRemoteAccess(expected_psn_);
    return false;
  }
  open_ = Open::kWrite;
  received_ = 0;
  write_address_ = reth.address;
  write_rkey_ = reth.rkey;
  write_length_ = reth.length;
  return true;
}

bool RcResponder::PlaceWrite(const InboundPacket& packet) {
  if (packet.payload_bytes == 0) return true;
  // Looked up for each packet: the region may be gone before the message is complete.
  AccessFault fault = AccessFault::kNone;
  std::byte* to =
      qp_.regions().Translate(write_rkey_, write_address_ + received_, packet.payload_bytes,
                              qp_.config().pd, kRemoteWrite, &fault);
  if (to == nullptr) {
    FailRemoteAccess(packet.bth.psn);
    return false;
  }
  std::memcpy(to, packet.payload, packet.payload_bytes);
  if (qp_.config().timing != nullptr) qp_.config().timing->Place(packet.payload_bytes, 1);
  received_ += packet.payload_bytes;
  return true;
}

void RcResponder::OnWrite(const InboundPacket& packet, Operation operation) {
  const bool last = IsLast(operation);
  const bool immediate = HasImmediate(operation);
  const Reth reth = HasReth(operation) ? Reth::Parse(packet.headers) : Reth{};
  // Sum of the payloads must be what the RETH announced.
  const uint64_t length = IsFirst(operation) ? reth.length : write_length_;
  const uint64_t before = IsFirst(operation) ? 0 : received_;
  const uint64_t after = before + packet.payload_bytes;
  if (last ? after != length : after >= length) {
    FailInvalidRequest(packet.bth.psn);
    return;
  }
  if (IsFirst(operation) && !OpenWrite(reth)) return;
  if (immediate && !wqe_ && !ClaimWqe(packet)) {
    if (IsFirst(operation)) open_ = Open::kNothing;  // the whole message will come again
    return;
  }
  if (!PlaceWrite(packet)) return;
  Accept(packet, 1, last);
  if (immediate) {
    CompleteReceive(packet, operation, mlx5::CqeOpcode::kResponderWriteImmediate,
                    static_cast<uint32_t>(received_));
  }
}

// A requester that keeps to the limit sends a READ more only when an older one is complete.  If
// that one was asked for again, and its first answer came late, the repetition is still pending
// here.
bool RcResponder::HasRoomForRead() {
  if (reads_.size() < qp_.attributes().max_dest_rd_atomic) return true;
  const auto done =
      std::find_if(reads_.begin(), reads_.end(), [](const Read& read) { return read.repeated; });
  if (done == reads_.end()) return false;
  reads_.erase(done);
  return true;
}

void RcResponder::OnRead(const InboundPacket& packet) {
  const Reth reth = Reth::Parse(packet.headers);
  if (!RightsFor(kRemoteRead) || reth.length > qp_.config().max_message_bytes ||
      !HasRoomForRead()) {
    FailInvalidRequest(packet.bth.psn);
    return;
  }
  if (reth.length > 0) {
    AccessFault fault = AccessFault::kNone;
    if (qp_.regions().Translate(reth.rkey, reth.address, reth.length, qp_.config().pd, kRemoteRead,
                                &fault) == nullptr) {
      FailRemoteAccess(packet.bth.psn);
      return;
    }
  }
  Read read{
      .first_psn = packet.bth.psn,
      .packets = std::max(1u, (reth.length + mtu() - 1) / mtu()),
      .address = reth.address,
      .rkey = reth.rkey,
      .length = reth.length,
      .sent = 0,
      .msn = 0,
      .repeated = false,
      .ready = qp_.config().timing != nullptr ? qp_.config().timing->AnswersFrom() : 0,
  };
  expected_psn_ = PsnAdd(expected_psn_, read.packets);
  resend_requested_ = false;
  msn_ = (msn_ + 1) & 0xffffff;
  read.msn = msn_;
  reads_.push_back(read);
  history_.push_back(read);
  if (history_.size() > qp_.attributes().max_dest_rd_atomic) history_.erase(history_.begin());
  answer_.reset();  // the responses acknowledge what came before
  qp_.Activate();
}

// ---- Failures ----

void RcResponder::Fail(uint32_t psn, uint8_t nak, std::optional<mlx5::Syndrome> receive_status,
                       std::optional<mlx5::EventType> event) {
  answer_ = Answer{psn, nak};
  if (wqe_ && receive_status) {
    const uint16_t index = wqe_->index;
    wqe_.reset();
    qp_.CompleteReceiveError(index, *receive_status);
  }
  if (event) qp_.RaiseEvent(*event);
  qp_.EnterError();
  qp_.Activate();
}

void RcResponder::FailInvalidRequest(uint32_t psn) {
  Fail(psn, syndrome::kNakInvalidRequest, mlx5::Syndrome::kRemoteInvalidRequest,
       mlx5::EventType::kInvalidRequest);
}

void RcResponder::FailRemoteAccess(uint32_t psn) {
  Fail(psn, syndrome::kNakRemoteAccess, mlx5::Syndrome::kFlushed,
       mlx5::EventType::kAccessViolation);
}

void RcResponder::Flush() {
  open_ = Open::kNothing;
  // Only a NAK still goes out, after the data of the READs before it; there is nobody to
  // acknowledge anything.
  if (answer_ && syndrome::KindOf(answer_->syndrome) != syndrome::Kind::kNak) answer_.reset();
  if (!answer_) reads_.clear();
  if (!wqe_) return;
  const uint16_t index = wqe_->index;
  wqe_.reset();
  qp_.CompleteReceiveError(index, mlx5::Syndrome::kFlushed);
}

bool RcResponder::Reset(uint16_t* released) {
  const bool claimed = wqe_.has_value();
  if (claimed) *released = wqe_->index;
  wqe_.reset();
  open_ = Open::kNothing;
  reads_.clear();
  history_.clear();
  answer_.reset();
  resend_requested_ = communication_established_ = false;
  return claimed;
}

// ---- Answers ----

Turn RcResponder::Run(uint32_t& budget, bool at_once) {
  bool no_room = false;
  while (!reads_.empty()) {
    Read& read = reads_.front();
    if (!at_once && read.ready > 0 && read.ready > qp_.services().Now()) {
      qp_.config().timing->WakeAt(qp_, read.ready);
      return Turn::kDone;
    }
    if (budget == 0) return Turn::kMore;
    --budget;
    if (!SendReadPacket(read, &no_room)) return no_room ? Turn::kWaiting : Turn::kDone;
    if (read.sent == read.packets) reads_.erase(reads_.begin());
  }
  if (answer_ && !SendAnswer(&no_room)) return Turn::kWaiting;
  return Turn::kDone;
}

// False with `no_room`, or because the region is gone and the queue pair has failed.
bool RcResponder::SendReadPacket(Read& read, bool* no_room) {
  const bool first = read.sent == 0;
  const bool last = read.sent + 1 == read.packets;
  const uint32_t offset = read.sent * mtu();
  const uint32_t bytes = last ? read.length - offset : mtu();
  const std::byte* from = nullptr;
  if (bytes > 0) {
    AccessFault fault = AccessFault::kNone;
    from = qp_.regions().Translate(read.rkey, read.address + offset, bytes, qp_.config().pd,
                                   kRemoteRead, &fault);
    if (from == nullptr) {
      const uint32_t psn = PsnAdd(read.first_psn, read.sent);
      reads_.clear();
      FailRemoteAccess(psn);
      return false;
    }
  }
  Bth bth;
  const Operation operation = first && last ? Operation::kReadResponseOnly
                              : first       ? Operation::kReadResponseFirst
                              : last        ? Operation::kReadResponseLast
                                            : Operation::kReadResponseMiddle;
  bth.opcode = MakeOpcode(Transport::kRc, operation);
  bth.psn = PsnAdd(read.first_psn, read.sent);
  PacketSender sender(qp_);
  const Link::Status status = sender.Prepare(bth, bytes);
  if (status == Link::Status::kNoRoom) {
    *no_room = true;
    return false;
  }
  if (status == Link::Status::kReady) {
    if (HasAeth(operation)) Aeth{syndrome::kAck, read.msn}.Emit(sender.headers());
    if (bytes > 0) std::memcpy(sender.payload(), from, bytes);
    sender.Commit(bytes);
  }
  ++read.sent;
  return true;
}

bool RcResponder::SendAnswer(bool* no_room) {
  Bth bth;
  bth.opcode = MakeOpcode(Transport::kRc, Operation::kAck);
  bth.psn = answer_->psn;
  PacketSender sender(qp_);
  const Link::Status status = sender.Prepare(bth, 0);
  if (status == Link::Status::kNoRoom) {
    *no_room = true;
    return false;
  }
  if (status == Link::Status::kReady) {
    Aeth{answer_->syndrome, msn_}.Emit(sender.headers());
    sender.Commit(0);
    if (syndrome::KindOf(answer_->syndrome) == syndrome::Kind::kNak) {
      qp_.services().counters.Add(Counter::kNaksSent);
    }
  }
  answer_.reset();
  return true;
}

}  // namespace simhca
