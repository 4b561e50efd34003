#include "sim/transport/rc_requester.h"

#include <algorithm>
#include <cstring>

#include "sim/transport/packet_sender.h"
#include "sim/transport/queue_pair.h"
#include "sim/wire/headers.h"

namespace simhca {

namespace {

// Inside long messages an ACK is asked for now and then, so that a retry need not start over.
constexpr uint32_t kPacketsPerAck = 16;
constexpr uint8_t kRnrRetryForever = 7;
// PSNs are compared as signed distances in 24 bits, so no more than half of them may be under way
// (IBTA vol 1, 9.7.2); a READ of 1 GiB at the smallest MTU takes half of that.
constexpr int32_t kMostUnacknowledged = (1 << 23) - 1;

bool IsWrite(mlx5::WqeOpcode opcode) {
  return opcode == mlx5::WqeOpcode::kRdmaWrite || opcode == mlx5::WqeOpcode::kRdmaWriteImmediate;
}

Operation OperationFor(mlx5::WqeOpcode opcode, bool first, bool last) {
  const bool immediate =
      opcode == mlx5::WqeOpcode::kSendImmediate || opcode == mlx5::WqeOpcode::kRdmaWriteImmediate;
  if (IsWrite(opcode)) {
    if (first && last) return immediate ? Operation::kWriteOnlyImmediate : Operation::kWriteOnly;
    if (last) return immediate ? Operation::kWriteLastImmediate : Operation::kWriteLast;
    return first ? Operation::kWriteFirst : Operation::kWriteMiddle;
  }
  const bool invalidate = opcode == mlx5::WqeOpcode::kSendInvalidate;
  if (first && last) {
    if (invalidate) return Operation::kSendOnlyInvalidate;
    return immediate ? Operation::kSendOnlyImmediate : Operation::kSendOnly;
  }
  if (last) {
    if (invalidate) return Operation::kSendLastInvalidate;
    return immediate ? Operation::kSendLastImmediate : Operation::kSendLast;
  }
  return first ? Operation::kSendFirst : Operation::kSendMiddle;
}

mlx5::Syndrome SyndromeOfNak(uint8_t nak) {
  switch (nak) {
    case syndrome::kNakInvalidRequest:
      return mlx5::Syndrome::kRemoteInvalidRequest;
    case syndrome::kNakRemoteAccess:
      return mlx5::Syndrome::kRemoteAccess;
    case syndrome::kNakRemoteOperation:
      return mlx5::Syndrome::kRemoteOperation;
    default:
      return mlx5::Syndrome::kBadResponse;
  }
}

}  // namespace

RcRequester::RcRequester(QueuePair& qp)
    : qp_(qp),
      ack_timer_(Timer::Calling<&RcRequester::OnTimeout>(this)),
      rnr_timer_(Timer::Calling<&RcRequester::OnRnrWaitOver>(this)) {}

RcRequester::~RcRequester() { Reset(); }

void RcRequester::Start() {
  next_psn_ = sent_psn_ = unacknowledged_psn_ = qp_.attributes().sq_psn;
  RefillRetries();
}

void RcRequester::RefillRetries() {
  retries_left_ = qp_.attributes().retry_count;
  rnr_retries_left_ = qp_.attributes().rnr_retry;
}

void RcRequester::Reset() {
  qp_.services().timers.Cancel(ack_timer_);
  qp_.services().timers.Cancel(rnr_timer_);
  oldest_ = transmit_ = end_ = 0;
  transmit_packet_ = 0;
  next_block_ = 0;
  outstanding_reads_ = 0;
  rnr_waiting_ = no_room_ = wqe_loaded_ = read_loaded_ = read_repeating_ = false;
}

uint32_t RcRequester::mtu() const { return PathMtuBytes(qp_.attributes().path_mtu); }

uint32_t RcRequester::LastPsn(const Message& message) const {
  return PsnAdd(message.first_psn, message.packets - 1);
}

bool RcRequester::NextSendIsAlone() const {
  return static_cast<uint16_t>(qp_.send_queue().posted() - next_block_) == 1;
}

// ---- Sending ----

Turn RcRequester::Run(uint32_t& budget) {
  while (!rnr_waiting_) {
    if (transmit_ == end_ && !ReadNext()) return Turn::kDone;
    if (budget == 0) return Turn::kMore;
    const Step step = SendNext();
    no_room_ = step == Step::kNoRoom;
    switch (step) {
      case Step::kSent:
        --budget;
        break;
      case Step::kNoRoom:
        return Turn::kWaiting;
      case Step::kBlocked:
        return Turn::kDone;  // a response will start it again
      case Step::kFailed:
        // Older messages complete first: with their last response this one is reported.
        if (transmit_ == oldest_) FailOldest(At(oldest_).failure);
        return Turn::kDone;
    }
  }
  return Turn::kDone;
}

// Reads the next WQE from the ring into [oldest_, end_).
bool RcRequester::ReadNext() {
  if (qp_.state() != QpState::kRts) return false;  // SQD: finishes only what was begun
  const uint16_t posted = qp_.send_queue().posted();
  if (posted == next_block_) return false;
  if (end_ - oldest_ == messages_.size()) {
    std::vector<Message> larger(std::max<size_t>(16, messages_.size() * 2));
    for (uint32_t i = oldest_; i != end_; ++i) larger[i & (larger.size() - 1)] = At(i);
    messages_ = std::move(larger);
  }
  wqe_ = qp_.send_queue().Read(next_block_, qp_.qpn(), posted, transmit_scratch_);
  wqe_loaded_ = true;
  Message& message = At(end_);
  message.block = next_block_;
  message.blocks = wqe_.blocks;
  message.opcode = wqe_.opcode;
  message.flags = wqe_.flags;
  message.failure = mlx5::Syndrome{};
  if (wqe_.form == SendWqe::Form::kMalformed) {
    message.failure = mlx5::Syndrome::kLocalQpOperation;
    wqe_.length = 0;
  } else if (wqe_.length > qp_.config().max_message_bytes) {
    message.failure = mlx5::Syndrome::kLocalLength;
    wqe_.length = 0;
  }
  message.length = static_cast<uint32_t>(wqe_.length);
  message.first_psn = next_psn_;
  message.packets = std::max(1u, (message.length + mtu() - 1) / mtu());
  message.received = 0;
  next_psn_ = PsnAdd(next_psn_, message.packets);
  next_block_ = static_cast<uint16_t>(next_block_ + wqe_.blocks);
  ++end_;
  transmit_packet_ = 0;
  return true;
}

void RcRequester::LoadTransmitWqe() {
  if (wqe_loaded_) return;
  const Message& message = At(transmit_);
  wqe_ = qp_.send_queue().Read(message.block, qp_.qpn(),
                               static_cast<uint16_t>(message.block + message.blocks),
                               transmit_scratch_);
  wqe_.segments.Skip(uint64_t{transmit_packet_} * mtu());
  wqe_loaded_ = true;
}

// Sends the next packet of message transmit_.
RcRequester::Step RcRequester::SendNext() {
  Message& message = At(transmit_);
  if (message.failure != mlx5::Syndrome{}) return Step::kFailed;
  if (transmit_packet_ == 0 && (message.flags & mlx5::kFence) != 0 && outstanding_reads_ > 0) {
    return Step::kBlocked;
  }
  const uint32_t last_psn =
      message.is_read() ? LastPsn(message) : PsnAdd(message.first_psn, transmit_packet_);
  if (PsnDistance(last_psn, unacknowledged_psn_) >= kMostUnacknowledged && transmit_ != oldest_) {
    return Step::kBlocked;
  }
  LoadTransmitWqe();
  const bool was_quiet = sent_psn_ == unacknowledged_psn_;
  const Step step = message.is_read() ? SendRead(message) : SendPayload(message);
  if (step != Step::kSent) return step;
  if (message.is_read() || transmit_packet_ == message.packets) {
    ++transmit_;
    transmit_packet_ = 0;
    wqe_loaded_ = false;
  }
  if (was_quiet) last_progress_ = qp_.services().CoarseNow();
  if (!ack_timer_.armed()) ArmTimer();
  return step;
}

RcRequester::Step RcRequester::SendRead(Message& message) {
  if (outstanding_reads_ >= qp_.attributes().max_rd_atomic) {
    if (qp_.attributes().max_rd_atomic != 0) return Step::kBlocked;
    message.failure = mlx5::Syndrome::kLocalQpOperation;
    return Step::kFailed;
  }
  Bth bth;
  bth.opcode = MakeOpcode(Transport::kRc, Operation::kReadRequest);
  bth.psn = PsnAdd(message.first_psn, message.received);
  bth.ack_request = true;
  PacketSender sender(qp_);
  const Link::Status status = sender.Prepare(bth, 0);
  if (status == Link::Status::kNoRoom) return Step::kNoRoom;
  if (status == Link::Status::kReady) {
    const uint32_t done = message.received * mtu();
    Reth{wqe_.remote_address + done, wqe_.rkey, message.length - done}.Emit(sender.headers());
    sender.Commit(0);
  }
  ++outstanding_reads_;
  const uint32_t after = PsnAdd(LastPsn(message), 1);
  if (PsnDistance(after, sent_psn_) > 0) sent_psn_ = after;
  return Step::kSent;
}

RcRequester::Step RcRequester::SendPayload(Message& message) {
  const bool first = transmit_packet_ == 0;
  const bool last = transmit_packet_ + 1 == message.packets;
  const uint32_t offset = transmit_packet_ * mtu();
  const uint32_t bytes = last ? message.length - offset : mtu();
  Bth bth;
  bth.opcode = MakeOpcode(Transport::kRc, OperationFor(message.opcode, first, last));
  bth.psn = PsnAdd(message.first_psn, transmit_packet_);
  bth.solicited = last && (message.flags & mlx5::kSolicited) != 0;
  bth.ack_request = last || (transmit_packet_ + 1) % kPacketsPerAck == 0;
  PacketSender sender(qp_);
  const Link::Status status = sender.Prepare(bth, bytes);
  if (status == Link::Status::kNoRoom) return Step::kNoRoom;
  if (status == Link::Status::kReady) {
    WriteRequestHeaders(message, first, last, sender.headers());
    if (!FillPayload(message, bytes, sender.payload())) return Step::kFailed;
    sender.Commit(wqe_.inline_bytes != nullptr ? 0 : bytes);
  } else {
    wqe_.segments.Skip(bytes);  // sent into the void
  }
  ++transmit_packet_;
  const uint32_t after = PsnAdd(bth.psn, 1);
  if (PsnDistance(after, sent_psn_) > 0) sent_psn_ = after;
  return Step::kSent;
}

void RcRequester::WriteRequestHeaders(const Message& message, bool first, bool last,
                                      std::byte* at) const {
  if (first && IsWrite(message.opcode)) {
    Reth{wqe_.remote_address, wqe_.rkey, message.length}.Emit(at);
    at += Reth::kSize;
  }
  if (!last) return;
  // An rkey to invalidate stands in the WQE as in the packet, like an immediate.
  if (message.opcode == mlx5::WqeOpcode::kSendImmediate ||
      message.opcode == mlx5::WqeOpcode::kRdmaWriteImmediate ||
      message.opcode == mlx5::WqeOpcode::kSendInvalidate) {
    ImmDt{wqe_.immediate}.Emit(at);
  }
}

// False with the message's failure set if a gather segment is refused.
bool RcRequester::FillPayload(Message& message, uint32_t bytes, std::byte* to) {
  if (wqe_.inline_bytes != nullptr) {
    std::memcpy(to, wqe_.inline_bytes + transmit_packet_ * mtu(), bytes);
    return true;
  }
  const AccessFault fault = wqe_.segments.Gather(qp_.regions(), qp_.config().pd, to, bytes);
  if (fault == AccessFault::kNone) return true;
  message.failure = mlx5::Syndrome::kLocalProtection;
  return false;
}

// ---- Responses ----

bool RcRequester::WasSent(uint32_t psn) const {
  return PsnDistance(psn, sent_psn_) < 0 && PsnDistance(psn, unacknowledged_psn_) >= 0;
}

void RcRequester::OnResponse(const InboundPacket& packet) {
  // Ghosts (already answered) and answers to what was never sent.
  if (!WasSent(packet.bth.psn)) return;
  const Operation operation = OperationOf(packet.bth.opcode);
  if (IsReadResponse(operation)) {
    OnReadResponse(packet);
  } else if (operation == Operation::kAck) {
    const Aeth aeth = Aeth::Parse(packet.headers);
    switch (syndrome::KindOf(aeth.syndrome)) {
      case syndrome::Kind::kAck:
        OnAck(packet.bth.psn);
        break;
      case syndrome::Kind::kRnrNak:
        OnRnrNak(packet.bth.psn, aeth.syndrome);
        break;
      case syndrome::Kind::kNak:
        OnNak(packet.bth.psn, aeth.syndrome);
        break;
      case syndrome::Kind::kReserved:
        FailOldest(mlx5::Syndrome::kBadResponse);
    }
  }
  // Room among the READs, a fence passed, or a failed message that is now the oldest.
  if (qp_.state() != QpState::kErr && (transmit_ != end_ || !rnr_waiting_)) qp_.Activate();
}

void RcRequester::NoteProgress() {
  last_progress_ = qp_.services().CoarseNow();
  RefillRetries();
  peer_watched_ = peer_ran_ = false;
}

bool RcRequester::AcknowledgeThrough(uint32_t psn) {
  bool progress = false;
  bool complete = true;
  while (!idle()) {
    Message& message = At(oldest_);
    if (PsnDistance(psn, LastPsn(message)) < 0) break;
    if (message.is_read()) {
      complete = false;
      break;
    }
    CompleteOldest();
    progress = true;
    if (qp_.state() == QpState::kErr) return true;
  }
  // Of a READ only its own responses acknowledge anything.
  const bool inside_read = !idle() && At(oldest_).is_read();
  if (complete && !inside_read && PsnDistance(psn, unacknowledged_psn_) >= 0) {
    unacknowledged_psn_ = PsnAdd(psn, 1);
    progress = true;
  }
  if (progress) NoteProgress();
  return complete;
}

void RcRequester::CompleteOldest() {
  const Message& message = At(oldest_);
  unacknowledged_psn_ = PsnAdd(LastPsn(message), 1);
  const bool report = (message.flags & mlx5::kCompletionOnSuccess) != 0;
  const uint16_t block = message.block;
  const mlx5::WqeOpcode opcode = message.opcode;
  const uint32_t bytes = message.is_read() ? message.length : 0;
  // After going back, an ACK may cover what has not been sent again.
  if (transmit_ == oldest_) {
    ++transmit_;
    transmit_packet_ = 0;
    wqe_loaded_ = false;
  }
  ++oldest_;
  read_loaded_ = false;
  if (report) qp_.CompleteSend(block, opcode, bytes);
}

void RcRequester::OnAck(uint32_t psn) {
  if (!AcknowledgeThrough(psn)) RepeatRead();
}

void RcRequester::OnNak(uint32_t psn, uint8_t nak) {
  qp_.services().counters.Add(Counter::kNaksReceived);
  if (!AcknowledgeThrough(PsnSubtract(psn, 1))) {
    RepeatRead();
    return;
  }
  if (qp_.state() == QpState::kErr || idle()) return;
  if (nak == syndrome::kNakSequence) {
    if (SpendRetry()) RewindTo(psn);
    return;
  }
  FailOldest(SyndromeOfNak(nak));
}

void RcRequester::OnRnrNak(uint32_t psn, uint8_t nak) {
  qp_.services().counters.Add(Counter::kRnrNaksReceived);
  if (rnr_waiting_) return;  // a second copy: nothing has been sent since the first
  if (!AcknowledgeThrough(PsnSubtract(psn, 1))) {
    RepeatRead();
    return;
  }
  if (qp_.state() == QpState::kErr || idle()) return;
  if (qp_.attributes().rnr_retry != kRnrRetryForever) {
    if (rnr_retries_left_ == 0) {
      FailOldest(mlx5::Syndrome::kRnrRetryExceeded);
      return;
    }
    --rnr_retries_left_;
  }
  RewindTo(psn);
  rnr_waiting_ = true;
  last_progress_ = qp_.services().CoarseNow();
  const Duration delay = RnrDelay(syndrome::RnrTimerCode(nak));
  qp_.services().timers.Schedule(rnr_timer_, SaturatingAdd(qp_.services().Now(), delay));
}

void RcRequester::OnRnrWaitOver(Time) {
  rnr_waiting_ = false;
  last_progress_ = qp_.services().CoarseNow();
  qp_.Activate();
}

void RcRequester::OnReadResponse(const InboundPacket& packet) {
  const uint32_t psn = packet.bth.psn;
  // Everything older than the READ is acknowledged by its response.
  AcknowledgeThrough(PsnSubtract(psn, 1));
  if (qp_.state() == QpState::kErr || idle()) return;
  Message& message = At(oldest_);
  if (!message.is_read()) return;
  const uint32_t expected = PsnAdd(message.first_psn, message.received);
  if (psn != expected) {
    if (PsnDistance(psn, expected) > 0) RepeatRead();
    return;
  }
  const uint32_t left = message.length - message.received * mtu();
  const bool last = message.received + 1 == message.packets;
  if (packet.payload_bytes != (last ? left : mtu()) ||
      IsLast(OperationOf(packet.bth.opcode)) != last) {
    FailOldest(mlx5::Syndrome::kBadResponse);
    return;
  }
  if (!read_loaded_) {
    read_wqe_ =
        qp_.send_queue().Read(message.block, qp_.qpn(),
                              static_cast<uint16_t>(message.block + message.blocks), read_scratch_);
    read_wqe_.segments.Skip(uint64_t{message.received} * mtu());
    read_loaded_ = true;
  }
  if (read_wqe_.segments.Scatter(qp_.regions(), qp_.config().pd, packet.payload,
                                 packet.payload_bytes) != AccessFault::kNone) {
    FailOldest(mlx5::Syndrome::kLocalProtection);
    return;
  }
  ++message.received;
  read_repeating_ = false;
  NoteProgress();
  if (!last) {
    unacknowledged_psn_ = PsnAdd(psn, 1);
    return;
  }
  if (transmit_ != oldest_) --outstanding_reads_;
  CompleteOldest();
}

}  // namespace simhca
