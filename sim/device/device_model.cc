#include "sim/device/device_model.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "sim/transport/queue_pair.h"

namespace simhca {

namespace {
constexpr uint32_t kCqeBytes = 64;
constexpr uint32_t kEqeBytes = 64;
constexpr uint32_t kSendWqeBytes = 64;
constexpr uint32_t kPacketsAlone = 4;  // in one turn, when nobody waits for one

// Of the trace: one for each resource.
enum Track : uint32_t {
  kTransmitter,
  kReceiver,
  kReceiveWqes,
  kPayload,
  kCompletions,
  kEvents,
};
constexpr std::array<std::string_view, 6> kTrackNames = {
    "transmitter",     "receiver",    "receive WQE fetch",
    "payload to host", "completions", "asynchronous events"};

std::string_view NameOf(mlx5::EventType type) {
  switch (type) {
    case mlx5::EventType::kCompletion:
      return "completion event";
    case mlx5::EventType::kSrqLimit:
      return "SRQ limit reached";
    case mlx5::EventType::kSrqLastWqe:
      return "last WQE reached";
    case mlx5::EventType::kSrqCatastrophic:
      return "SRQ error";
    case mlx5::EventType::kCqError:
      return "CQ error";
    case mlx5::EventType::kPortChange:
      return "port change";
    default:
      return "event";
  }
}

PcieLink::Config PcieOf(const DeviceProfile::Costs& costs) {
  return {.bits_per_second = costs.pcie_bits_per_second,
          .max_payload = costs.pcie_max_payload,
          .max_read_request = costs.pcie_max_read_request,
          .outstanding_reads = costs.pcie_outstanding_reads,
          .read_latency = costs.pcie_read_latency,
          .write_latency = costs.pcie_write_latency,
          .doorbell_latency = costs.doorbell_latency};
}
}  // namespace

DeviceModel::DeviceModel(const DeviceProfile& profile, uint16_t port, Services& services)
    : port_(port),
      costs_(profile.costs),
      wire_(WireOf(costs_)),
      services_(services),
      pcie_(PcieOf(costs_)),
      misses_(costs_.cache_misses_in_flight, costs_.cache_miss),
      qp_cache_(costs_.qp_cache_entries),
      cq_cache_(costs_.cq_cache_entries),
      srq_cache_(costs_.srq_cache_entries),
      active_wqes_(costs_.active_receive_wqes),
      transmitter_free_(Timer::Calling<&DeviceModel::OnTransmitterFree>(this)),
      random_(0x5a48),
      next_completion_(Timer::Calling<&DeviceModel::DeliverCompletions>(this)),
      next_event_(Timer::Calling<&DeviceModel::PublishEvents>(this)) {
  NameTracks();
}

void DeviceModel::NameTracks() {
  if (!services_.trace.open()) return;
  services_.trace.NameDevice(port_, "simhca" + std::to_string(port_));
  for (uint32_t track = 0; track < kTrackNames.size(); ++track) {
    services_.trace.NameTrack(port_, track, kTrackNames[track]);
  }
}

DeviceModel::~DeviceModel() {
  services_.timers.Cancel(transmitter_free_);
  services_.timers.Cancel(next_completion_);
  services_.timers.Cancel(next_event_);
}

DeviceModelStats DeviceModel::stats() const {
  const PcieLink::Counters& pcie = pcie_.counters();
  return {.dma_reads = pcie.reads + misses_.served(),
          .dma_writes = pcie.writes,
          .tlps = pcie.upstream.tlps + pcie.downstream.tlps,
          .cache_hits = qp_cache_.hits() + cq_cache_.hits() + srq_cache_.hits(),
          .cache_misses = misses_.served()};
}

// ---- Sending ----

void DeviceModel::OnDoorbell(QueuePair& qp) {
  QueuePairTiming& timing = *qp.timing();
  // A queue that is at work sees what was posted when it gets there.
  if (timing.waits_for_turn || timing.wake.armed() || qp.active()) return;
  const Time now = services_.Now();
  const Time seen = pcie_.DoorbellArrives(now);
  const bool with_doorbell = qp.NextSendIsAlone();
  const bool read_ahead = now - timing.last_departure < costs_.pcie_read_latency;
  const Time has_wqe = with_doorbell || read_ahead ? seen : pcie_.Read(seen, kSendWqeBytes);
  services_.timers.Schedule(timing.wake, std::max(has_wqe, timing.transmits_from));
}

bool DeviceModel::MayTransmit(QueuePair& qp) {
  QueuePairTiming& timing = *qp.timing();
  if (timing.waits_for_turn) return false;
  if (qp.state() == QpState::kErr) return true;  // it has nothing to send but a last NAK
  const Time now = services_.Now();
  if (timing.transmits_from > now) {
    services_.timers.Schedule(timing.wake, timing.transmits_from);
    return false;
  }
  const bool others_first = turn_of_ != &qp && (transmitter_.next_free() > now ||
                                                turn_of_ != nullptr || !waiting_.empty());
  if (others_first) {
    timing.waits_for_turn = true;
    waiting_.push_back(&qp);
    if (!transmitter_free_.armed()) {
      services_.timers.Schedule(transmitter_free_, std::max(now, transmitter_.next_free()));
    }
    return false;
  }
  const Time has_context = timing.context_loaded ? now : LoadQp(qp, now);
  if (has_context > now) {
    timing.context_loaded = true;
    timing.transmits_from = has_context;
    services_.timers.Schedule(timing.wake, timing.transmits_from);
    return false;
  }
  timing.context_loaded = false;
  return true;
}

// One of those that wait, at random: the same sequence in every run.
void DeviceModel::OnTransmitterFree(Time) {
  if (waiting_.empty()) return;
  const size_t chosen = waiting_.size() == 1 ? 0 : random_.Next() % waiting_.size();
  QueuePair* qp = waiting_[chosen];
  waiting_[chosen] = waiting_.back();
  waiting_.pop_back();
  qp->timing()->waits_for_turn = false;
  turn_of_ = qp;
  services_.active.Add(*qp);
}

Time DeviceModel::Depart(QueuePair& qp, uint32_t bytes, uint32_t gathered) {
  const Time now = services_.Now();
  const Duration service = std::max(costs_.packet_processing, wire_.TimeOf(bytes));
  // The payload of a queue at work is read ahead: only what the link cannot keep up with delays the
  // packet.
  Time at_hand = now;
  if (gathered != 0) {
    at_hand = pcie_.Read(now, gathered);
    if (now - qp.timing()->last_departure < costs_.pcie_read_latency) {
      at_hand -= pcie_.IdleRead(gathered);
      transmitter_.Reserve(at_hand, 0);
    }
  }
  const Time start = transmitter_.Reserve(now, service) - service;
  qp.timing()->last_departure = start;
  Trace(kTransmitter, "packet", start, start + service);
  return std::max(start, at_hand) + costs_.packet_processing;
}

void DeviceModel::EndTurn() {
  turn_of_ = nullptr;
  if (waiting_.empty() || transmitter_free_.armed()) return;
  // A turn in which nothing could be sent takes its time too.
  const Time next = services_.Now() + std::max(costs_.packet_processing, kNanosecond);
  services_.timers.Schedule(transmitter_free_, std::max(next, transmitter_.next_free()));
}

uint32_t DeviceModel::Budget() const { return waiting_.empty() ? kPacketsAlone : 1; }

// ---- Receiving ----

Time DeviceModel::LoadQp(QueuePair& qp, Time at) {
  QueuePairTiming& timing = *qp.timing();
  const bool held = qp_cache_.Touch(qp.qpn());
  if (timing.context_from > at) return timing.context_from;
  if (!held) timing.context_from = misses_.Serve(at);
  return std::max(at, timing.context_from);
}

Time DeviceModel::LoadContexts(QueuePair& qp, Time at) {
  // One context names the next.
  const QueuePair::Config& config = qp.config();
  at = LoadQp(qp, at);
  if (config.srq != nullptr && !srq_cache_.Touch(config.srq->number())) at = misses_.Serve(at);
  if (!cq_cache_.Touch(config.receive_cq->number())) at = misses_.Serve(at);
  return at;
}

Time DeviceModel::ReadyFor(QueuePair& qp, const InboundPacket& packet, uint32_t length, Time now,
                           bool first_offer) {
  QueuePairTiming& timing = *qp.timing();
  if (first_offer) {
    Duration service = std::max(costs_.packet_processing, wire_.TimeOf(length));
    const Operation operation = OperationOf(packet.bth.opcode);
    if (qp.config().srq != nullptr && IsSend(operation)) {
      // A message in progress whose WQE was displaced by those of others.
      const bool at_hand = active_wqes_.Touch(qp.qpn());
      if (!at_hand && !IsFirst(operation)) service += costs_.active_wqe_reload;
    }
    const Time start = receiver_.Reserve(now, service) - service;
    Trace(kReceiver, "packet", start, start + service);
    timing.receives_from = std::max(timing.receives_from, LoadContexts(qp, start));
  }
  if (timing.receives_from <= now) timing.receives_from = qp.Prepare(packet, now);
  return timing.receives_from;
}

Time DeviceModel::FetchReceiveWqe(QueuePair& qp, const ReceiveWqe& wqe) {
  ReceiveFetcher& fetcher =
      qp.config().srq != nullptr ? *qp.config().srq->fetcher() : qp.timing()->receive_fetcher;
  const Time now = services_.Now();
  const Time ready = fetcher.Claim(now, wqe.follows_neighbour, pcie_);
  Trace(kReceiveWqes, "wait for WQE", now, ready);
  if (const SharedReceiveQueue* srq = qp.config().srq) TraceFill(*srq);
  return ready;
}

// Slices of a track must not overlap: what waits behind another begins where that one ends.
void DeviceModel::Trace(uint32_t track, std::string_view name, Time start, Time end) {
  if (!services_.trace.open()) return;
  start = std::max(start, traced_until_[track]);
  if (end <= start) return;
  traced_until_[track] = end;
  services_.trace.Slice(port_, track, name, start, end);
}

void DeviceModel::TraceFill(const SharedReceiveQueue& srq) {
  if (!services_.trace.open()) return;
  const std::string name = "SRQ " + std::to_string(srq.number());
  services_.trace.Count(port_, name + " fill", services_.Now(), srq.fill());
  services_.trace.Count(port_, name + " limit", services_.Now(), srq.limit());
}

void DeviceModel::Place(uint32_t bytes, uint32_t pieces) {
  const Time now = services_.Now();
  const uint32_t piece = bytes / pieces;
  for (uint32_t i = 1; i < pieces; ++i) pcie_.Write(now, piece);
  const Time visible = pcie_.Write(now, bytes - piece * (pieces - 1));
  Trace(kPayload, "payload", now, visible - costs_.pcie_write_latency);
}

void DeviceModel::WakeAt(QueuePair& qp, Time at) {
  Timer& wake = qp.timing()->wake;
  if (!wake.armed() || wake.when() > at) services_.timers.Schedule(wake, at);
}

// ---- Towards the host ----

void DeviceModel::Complete(QueuePair& qp, CompletionQueue& cq, const Completion& completion) {
  const Time visible = pcie_.Write(services_.Now() + costs_.cqe_write, kCqeBytes);
  Trace(kCompletions, "completion", services_.Now(), visible - costs_.pcie_write_latency);
  completions_.push_back({visible, &qp, &cq, completion});
  Stamp(&completions_.back(), visible - costs_.pcie_write_latency);
  if (!next_completion_.armed()) services_.timers.Schedule(next_completion_, visible);
}

// The time stamp is that of the CQE's way out of the device.
void DeviceModel::Stamp(PendingCompletion* pending, Time when) {
  if (!pending->cq->timestamps()) return;
  pending->completion.timestamp = ToTicks(when, pending->qp->config().clock_khz);
}

void DeviceModel::DeliverCompletions(Time now) {
  if (announces_delivery_) {
    announces_delivery_ = false;
    services_.delivered.push_back(port_);
  }
  while (!completions_.empty() && completions_.front().visible <= now) {
    // A completion that finds no room may flush its queue pair, which adds more of them.
    PendingCompletion next = completions_.front();
    completions_.pop_front();
    if (next.visible > services_.Now()) Stamp(&next, services_.Now());  // ahead of its time
    next.qp->Deliver(next.cq, next.completion);
  }
  if (!completions_.empty()) {
    services_.timers.Schedule(next_completion_, completions_.front().visible);
  }
}

void DeviceModel::Carry(EventRing& ring, const mlx5::Eqe& event) {
  const Time visible = pcie_.Write(services_.Now(), kEqeBytes) + costs_.event_latency;
  events_.push_back({visible, &ring, event});
  if (!next_event_.armed()) services_.timers.Schedule(next_event_, visible);
}

void DeviceModel::PublishEvents(Time now) {
  while (!events_.empty() && events_.front().visible <= now) {
    const PendingEvent next = events_.front();
    events_.pop_front();
    ++services_.visible;
    services_.trace.Instant(port_, kEvents, NameOf(next.event.type), services_.Now());
    next.ring->Publish(next.event);
  }
  if (!events_.empty()) services_.timers.Schedule(next_event_, events_.front().visible);
}

void DeviceModel::Settle() {
  DeliverCompletions(kNever);
  PublishEvents(kNever);
}

void DeviceModel::Forget(QueuePair& qp) {
  std::erase(waiting_, &qp);
  std::erase_if(completions_, [&qp](const PendingCompletion& next) { return next.qp == &qp; });
  if (turn_of_ == &qp) turn_of_ = nullptr;
  qp.timing()->waits_for_turn = false;
  qp.timing()->context_from = 0;
  qp_cache_.Forget(qp.qpn());
  active_wqes_.Forget(qp.qpn());
}

}  // namespace simhca
