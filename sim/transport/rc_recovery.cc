// The part of rc_requester.h that deals with what goes wrong: going back, timers, failures.

#include <algorithm>

#include "sim/transport/queue_pair.h"
#include "sim/transport/rc_requester.h"
#include "sim/wire/timers.h"

namespace simhca {

// ---- Going back ----

void RcRequester::RewindTo(uint32_t psn) {
  qp_.services().counters.Add(Counter::kRetransmissions);
  wqe_loaded_ = false;
  outstanding_reads_ = 0;
  transmit_packet_ = 0;
  for (transmit_ = oldest_; transmit_ != end_; ++transmit_) {
    const Message& message = At(transmit_);
    if (PsnDistance(psn, LastPsn(message)) <= 0) {
      if (!message.is_read()) {
        transmit_packet_ = static_cast<uint32_t>(std::max(0, PsnDistance(psn, message.first_psn)));
      }
      break;
    }
    if (message.is_read()) ++outstanding_reads_;
  }
  qp_.Activate();
}

void RcRequester::RewindToOldest() {
  if (!idle()) RewindTo(unacknowledged_psn_);
}

// A responder that has forgotten the READ acknowledges what follows it and never sends the data:
// not again for each of these answers, but once, and then each time the timer fires.
void RcRequester::RepeatRead() {
  if (read_repeating_ || !SpendRetry()) return;
  read_repeating_ = true;
  RewindToOldest();
}

bool RcRequester::SpendRetry() {
  if (retries_left_ == 0) {
    FailOldest(mlx5::Syndrome::kRetryExceeded);
    return false;
  }
  --retries_left_;
  return true;
}

void RcRequester::ArmTimer() {
  const Duration timeout = AckTimeout(qp_.attributes().timeout);
  if (timeout == kNever) return;
  qp_.services().timers.Schedule(
      ack_timer_, SaturatingAdd(last_progress_, timeout + qp_.services().coarseness()));
}

// The timer is armed once and looks, when it fires, whether anything has moved since: an ACK need
// not touch it.
// A process that was stopped finds its timers long past: what happens next is due a full timeout
// from the present, or all retries would be spent before the answers that wait are looked at.
void RcRequester::OnTimeout(Time) {
  const Time now = qp_.services().Now();
  if (idle() || qp_.state() == QpState::kErr) return;
  const Duration timeout = AckTimeout(qp_.attributes().timeout) + qp_.services().coarseness();
  const Time due = SaturatingAdd(last_progress_, timeout);
  Services& services = qp_.services();
  if (now < due && !rnr_waiting_) {
    services.timers.Schedule(ack_timer_, due);
    return;
  }
  const bool nothing_sent = PsnDistance(sent_psn_, unacknowledged_psn_) <= 0;
  // No retry is spent on what could not be sent yet.
  if (rnr_waiting_ || nothing_sent || no_room_ || PeerMayBeStopped()) {
    services.timers.Schedule(ack_timer_, SaturatingAdd(now, timeout));
    return;
  }
  services.counters.Add(Counter::kTimeouts);
  if (!SpendRetry()) return;
  read_repeating_ = false;
  RewindToOldest();
  last_progress_ = now;
  services.timers.Schedule(ack_timer_, SaturatingAdd(now, timeout));
}

// Retries are not spent while a peer lives but does not run (a debugger, a busy core).  Its packets
// then wait in the ring; or it has taken them and was stopped before it could answer, which only
// shows when it has been seen to run in two timeouts on end.
bool RcRequester::PeerMayBeStopped() {
  const Fabric::Peer peer = qp_.services().fabric.PeerOf(qp_.attributes().dest_qpn);
  if (peer.state != Fabric::Peer::State::kAlive) return false;
  // Other connections may keep the ring busy: what counts is what was in it a timeout ago.
  const bool took = peer.consumed >= (peer_watched_ ? peer_committed_ : peer.committed);
  const bool ran = took && (!peer.elsewhere || peer.heartbeat != peer_heartbeat_);
  const bool lost = ran && (!peer.elsewhere || peer_ran_);
  peer_watched_ = !lost;
  peer_ran_ = ran && !lost;
  peer_committed_ = peer.committed;
  peer_heartbeat_ = peer.heartbeat;
  return !lost;
}

// ---- Errors ----

void RcRequester::FailOldest(mlx5::Syndrome syndrome) {
  if (idle()) return;
  const Message message = At(oldest_);
  ++oldest_;
  qp_.CompleteSendError(message.block, message.opcode, syndrome);
  qp_.EnterError();
}

void RcRequester::Flush() {
  qp_.services().timers.Cancel(ack_timer_);
  qp_.services().timers.Cancel(rnr_timer_);
  rnr_waiting_ = false;
  wqe_loaded_ = read_loaded_ = false;
  while (oldest_ != end_) {
    const Message& message = At(oldest_++);
    qp_.CompleteSendError(message.block, message.opcode, mlx5::Syndrome::kFlushed);
  }
  transmit_ = end_;
  outstanding_reads_ = 0;
  const uint16_t posted = qp_.send_queue().posted();
  while (next_block_ != posted) {
    const SendWqe wqe = qp_.send_queue().Read(next_block_, qp_.qpn(), posted, transmit_scratch_);
    qp_.CompleteSendError(next_block_, wqe.opcode, mlx5::Syndrome::kFlushed);
    next_block_ = static_cast<uint16_t>(next_block_ + wqe.blocks);
  }
}

}  // namespace simhca
