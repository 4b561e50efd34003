#include "sim/transport/queue_pair.h"

#include "sim/transport/rc_transport.h"
#include "sim/wire/gid.h"

namespace simhca {

void ActiveList::Add(QueuePair& qp) {
  if (qp.active_) return;
  qp.active_ = true;
  ++size_;
  qp.next_active_ = nullptr;
  (last_ != nullptr ? last_->next_active_ : first_) = &qp;
  last_ = &qp;
}

QueuePair* ActiveList::PopFirst() {
  QueuePair* qp = first_;
  if (qp == nullptr) return nullptr;
  first_ = qp->next_active_;
  if (first_ == nullptr) last_ = nullptr;
  qp->active_ = false;
  --size_;
  return qp;
}

void ActiveList::Prepend(ActiveList& others) {
  if (others.first_ == nullptr) return;
  others.last_->next_active_ = first_;
  first_ = others.first_;
  if (last_ == nullptr) last_ = others.last_;
  size_ += others.size_;
  others = ActiveList();
}

void ActiveList::Remove(QueuePair& qp) {
  if (!qp.active_) return;
  QueuePair* previous = nullptr;
  for (QueuePair* at = first_; at != &qp; at = at->next_active_) previous = at;
  (previous != nullptr ? previous->next_active_ : first_) = qp.next_active_;
  if (last_ == &qp) last_ = previous;
  qp.active_ = false;
  --size_;
}

QueuePair::QueuePair(const Config& config)
    : config_(config), transport_(std::make_unique<RcTransport>(*this)) {
  if (config_.send_cq != nullptr) config_.send_cq->AddUser();
  if (config_.receive_cq != nullptr) config_.receive_cq->AddUser();
  if (config_.srq != nullptr) config_.srq->AddUser();
  if (config_.timing != nullptr) {
    timing_ = std::make_unique<QueuePairTiming>(
        [](void* self, Time) { static_cast<QueuePair*>(self)->Activate(); }, this,
        config_.timing->FetcherFor(config_.receive_queue.stride()));
  }
}

QueuePair::~QueuePair() {
  services().active.Remove(*this);
  if (timing_) {
    config_.timing->Forget(*this);
    services().timers.Cancel(timing_->wake);
  }
  if (config_.send_cq != nullptr) config_.send_cq->RemoveUser();
  if (config_.receive_cq != nullptr) config_.receive_cq->RemoveUser();
  if (config_.srq != nullptr) config_.srq->RemoveUser();
}

void QueuePair::Modify(uint32_t mask, const QpAttributes& wanted, bool* released,
                       uint16_t* released_index) {
  *released = false;
  SetAttributes(mask, wanted);
  if ((mask & (qp_mask::kRetryCount | qp_mask::kRnrRetry)) != 0) transport_->RetriesChanged();
  if ((mask & qp_mask::kState) == 0 || wanted.state == state_) return;
  if (wanted.state == QpState::kSqd && (mask & qp_mask::kEnSqdAsyncNotify) == 0) {
    attributes_.en_sqd_async_notify = false;
  }
  switch (wanted.state) {
    case QpState::kReset:
      *released = Reset(released_index);
      break;
    case QpState::kErr:
      EnterError();
      break;
    case QpState::kRtr:
      state_ = QpState::kRtr;
      transport_->StartReceiving();
      break;
    case QpState::kRts: {
      const bool first = state_ == QpState::kRtr;
      state_ = QpState::kRts;
      attributes_.sq_draining = false;
      if (first) transport_->StartSending();
      Activate();
      break;
    }
    case QpState::kSqd:
      state_ = QpState::kSqd;
      attributes_.sq_draining = true;
      Activate();
      break;
    default:
      state_ = wanted.state;
  }
}

void QueuePair::SendQueueDrained() {
  if (!attributes_.sq_draining) return;
  attributes_.sq_draining = false;
  if (attributes_.en_sqd_async_notify) RaiseEvent(mlx5::EventType::kSendQueueDrained);
}

bool QueuePair::Reset(uint16_t* released_index) {
  if (timing_) {
    config_.timing->Settle();
    config_.timing->Forget(*this);
    services().timers.Cancel(timing_->wake);
    timing_->receives_from = timing_->transmits_from = 0;
  }
  state_ = QpState::kReset;
  attributes_ = QpAttributes{};
  remote_port_.reset();
  config_.receive_queue.Reset();
  services().active.Remove(*this);
  if (claimed_at_halt_) {
    *released_index = *claimed_at_halt_;
    claimed_at_halt_.reset();
    return true;
  }
  return transport_->Reset(released_index);
}

void QueuePair::Halt() {
  uint16_t claimed;
  if (transport_->Reset(&claimed)) claimed_at_halt_ = claimed;
  services().active.Remove(*this);
  halted_ = true;
}

void QueuePair::SetAttributes(uint32_t mask, const QpAttributes& wanted) {
  const auto given = [mask](uint32_t bit) { return (mask & bit) != 0; };
  constexpr uint32_t kPsnMask = 0xffffff;
  if (given(qp_mask::kEnSqdAsyncNotify)) {
    attributes_.en_sqd_async_notify = wanted.en_sqd_async_notify;
  }
  if (given(qp_mask::kAccessFlags)) attributes_.access_flags = wanted.access_flags;
  if (given(qp_mask::kPkeyIndex)) attributes_.pkey_index = wanted.pkey_index;
  if (given(qp_mask::kPort)) attributes_.port = wanted.port;
  if (given(qp_mask::kQkey)) attributes_.qkey = wanted.qkey;
  if (given(qp_mask::kAv)) {
    attributes_.av = wanted.av;
    remote_port_ = wanted.av.is_global ? PortOfGid(wanted.av.dgid) : PortOfLid(wanted.av.dlid);
  }
  if (given(qp_mask::kPathMtu)) attributes_.path_mtu = wanted.path_mtu;
  if (given(qp_mask::kTimeout)) attributes_.timeout = wanted.timeout;
  if (given(qp_mask::kRetryCount)) attributes_.retry_count = wanted.retry_count;
  if (given(qp_mask::kRnrRetry)) attributes_.rnr_retry = wanted.rnr_retry;
  if (given(qp_mask::kRqPsn)) attributes_.rq_psn = wanted.rq_psn & kPsnMask;
  if (given(qp_mask::kSqPsn)) attributes_.sq_psn = wanted.sq_psn & kPsnMask;
  if (given(qp_mask::kMaxRdAtomic)) attributes_.max_rd_atomic = wanted.max_rd_atomic;
  if (given(qp_mask::kMaxDestRdAtomic)) attributes_.max_dest_rd_atomic = wanted.max_dest_rd_atomic;
  if (given(qp_mask::kMinRnrTimer)) attributes_.min_rnr_timer = wanted.min_rnr_timer;
  if (given(qp_mask::kPathMigState)) attributes_.path_mig_state = wanted.path_mig_state;
  if (given(qp_mask::kDestQpn)) attributes_.dest_qpn = wanted.dest_qpn & kPsnMask;
}

Time QueuePair::ReadyFor(const InboundPacket& packet, uint32_t length, Time now, bool first_offer) {
  return timing_ ? config_.timing->ReadyFor(*this, packet, length, now, first_offer) : now;
}

Time QueuePair::Prepare(const InboundPacket& packet, Time now) {
  const bool receives = state_ == QpState::kRtr || state_ == QpState::kRts ||
                        state_ == QpState::kSqd || state_ == QpState::kSqe;
  return receives && !halted_ ? transport_->Prepare(packet, now) : now;
}

void QueuePair::OnPacket(const InboundPacket& packet) {
  switch (halted_ ? QpState::kReset : state_) {
    case QpState::kRtr:
    case QpState::kRts:
    case QpState::kSqd:
    case QpState::kSqe:
      transport_->OnPacket(packet);
      return;
    default:  // RESET, INIT, ERR, halted: dropped without an answer
      services().counters.Add(Counter::kDropped);
  }
}

Turn QueuePair::Run(uint32_t& budget) {
  if (state_ == QpState::kReset || state_ == QpState::kInit || halted_) return Turn::kDone;
  if (state_ != QpState::kErr) return transport_->Run(budget);
  transport_->Flush();
  const Turn turn = transport_->Run(budget);
  if (config_.srq != nullptr) return turn;
  // Receives posted in ERR are flushed too, and no doorbell announces them.
  FlushReceiveQueue();
  return turn == Turn::kMore ? turn : Turn::kWaiting;
}

std::optional<ReceiveWqe> QueuePair::ClaimReceive() {
  if (config_.srq == nullptr) return config_.receive_queue.Claim();
  const bool armed = config_.srq->limit() != 0;
  std::optional<ReceiveWqe> wqe = config_.srq->Claim();
  if (wqe) services().counters.Add(Counter::kSrqWqesClaimed);
  if (armed && config_.srq->limit() == 0) {
    ++services().visible;
    services().counters.Add(Counter::kSrqLimitEvents);
  }
  return wqe;
}

void QueuePair::Write(CompletionQueue* cq, Completion& completion) {
  completion.qpn = config_.qpn;
  if (cq->timestamps()) completion.timestamp = ToTicks(services().Now(), config_.clock_khz);
  if (config_.timing != nullptr) {
    config_.timing->Complete(*this, *cq, completion);
  } else {
    Deliver(cq, completion);
  }
}

void QueuePair::Deliver(CompletionQueue* cq, const Completion& completion) {
  ++services().visible;
  // A completion that finds no room ends its queue pair too, and so does one for a CQ that has been
  // overrun before: nobody would ever see it (IBTA vol 1, 10.2.6 CQ errors).
  if (!cq->Write(completion) && state_ != QpState::kErr) EnterError();
}

void QueuePair::CompleteSend(uint16_t block, mlx5::WqeOpcode opcode, uint32_t byte_count) {
  services().counters.Add(Counter::kSendsCompleted);
  Completion completion;
  completion.send_opcode = static_cast<uint8_t>(opcode);
  completion.wqe_counter = block;
  completion.byte_count = byte_count;
  Write(config_.send_cq, completion);
}

void QueuePair::CompleteSendError(uint16_t block, mlx5::WqeOpcode opcode, mlx5::Syndrome syndrome) {
  Completion completion;
  completion.opcode = mlx5::CqeOpcode::kRequesterError;
  completion.syndrome = syndrome;
  completion.send_opcode = static_cast<uint8_t>(opcode);
  completion.wqe_counter = block;
  Write(config_.send_cq, completion);
}

void QueuePair::CompleteReceive(const Received& received) {
  services().counters.Add(Counter::kReceivesCompleted);
  Completion completion;
  completion.opcode = received.opcode;
  completion.wqe_counter = received.index;
  completion.byte_count = received.byte_count;
  completion.immediate = received.immediate;
  completion.solicited = received.solicited;
  completion.srqn = config_.srq != nullptr ? config_.srq->number() : 0;
  completion.flags_rqpn = attributes_.dest_qpn;
  Write(config_.receive_cq, completion);
}

void QueuePair::CompleteReceiveError(uint16_t index, mlx5::Syndrome syndrome) {
  Completion completion;
  completion.opcode = mlx5::CqeOpcode::kResponderError;
  completion.syndrome = syndrome;
  completion.wqe_counter = index;
  completion.srqn = config_.srq != nullptr ? config_.srq->number() : 0;
  Write(config_.receive_cq, completion);
}

void QueuePair::RaiseEvent(mlx5::EventType type) {
  ++services().visible;
  services().counters.Add(Counter::kAsyncEvents);
  config_.events->Push(type, config_.qpn);
}

void QueuePair::EnterError() {
  if (state_ == QpState::kErr) return;
  state_ = QpState::kErr;
  if (halted_) return;
  transport_->Flush();
  if (config_.srq != nullptr) {
    RaiseEvent(mlx5::EventType::kSrqLastWqe);
  } else {
    FlushReceiveQueue();
    Activate();
  }
}

void QueuePair::FlushReceiveQueue() {
  while (std::optional<ReceiveWqe> wqe = config_.receive_queue.Claim()) {
    CompleteReceiveError(wqe->index, mlx5::Syndrome::kFlushed);
  }
}

}  // namespace simhca
