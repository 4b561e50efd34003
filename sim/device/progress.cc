#include "sim/device/progress.h"

#include <sched.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <utility>

#include "sim/transport/queue_pair.h"
#include "sim/wire/headers.h"

namespace simhca {

namespace {

constexpr uint32_t kPacketsPerPoll = 64;  // inbound, in one round
constexpr uint32_t kPacketsPerTurn = 16;  // outbound, of one queue pair in one round
constexpr uint32_t kRoundsPerDoorbell = 4;
constexpr uint32_t kStepsPerTimerCheck = 8;
constexpr int kSpinsBeforeYield = 64;
constexpr int kPollsBeforeYield = 4;  // lost in a row
// A program polls as if its device worked for itself.  Here the peer may be waiting for this very
// core: after some 20 us without anything to do, it is let in now and then.
constexpr uint32_t kIdlePollsBeforeYield = 1000;
constexpr uint32_t kIdlePollsPerYield = 32;
constexpr Duration kLastAnswers = 20 * kMillisecond;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

Progress::Progress(std::unique_ptr<Fabric> fabric, ClockMode mode)
    : Services(*fabric, fabric->link()),
      owned_fabric_(std::move(fabric)),
      link_keeps_time_(link.keeps_time()),
      control_bell_(owned_fabric_->control_bell()),
      // The first step looks in any case: it may have rung since the process joined.
      bell_heard_(control_bell_.load(std::memory_order_relaxed) - 1) {
  if (mode == ClockMode::kVirtual) {
    auto clock = std::make_unique<VirtualClock>();
    virtual_clock_ = clock.get();
    clock_ = std::move(clock);
  } else {
    clock_ = std::make_unique<WallClock>(owned_fabric_->epoch_ns());
  }
  counters = CounterSet(owned_fabric_->counters());
}

Progress::~Progress() { StopThread(); }

Time Progress::CoarseNow() const {
  if (virtual_clock_ != nullptr) return virtual_clock_->Now();
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  const int64_t ns = int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  // The coarse clock may lag behind the creation of the fabric.
  return std::max<Time>(0, FromNanoseconds(ns - owned_fabric_->epoch_ns()));
}

Duration Progress::coarseness() const { return virtual_time() ? 0 : 10 * kMillisecond; }

// ---- The lock ----

void Progress::Lock() {
  for (int spins = 0; !TryLock(); ++spins) {
    if (spins < kSpinsBeforeYield) {
      Pause();
    } else {
      sched_yield();
    }
  }
}

void Progress::Unlock() {
  // Whoever rang a doorbell and found the lock taken relies on the holder: look after letting go.
  // Both accesses are sequentially consistent, so that one of the two sees the other.
  holder_.store(Holder::kNobody, std::memory_order_seq_cst);
  while (!doorbells_.empty() && TryLock()) {
    ServeDoorbells();
    RunActive();
    link.Flush();
    holder_.store(Holder::kNobody, std::memory_order_seq_cst);
  }
}

// ---- Doorbells and rounds ----

void Progress::ServeDoorbells() {
  doorbells_.TakeAll([this](const Doorbell& doorbell) { Activate(doorbell); });
}

void Progress::Activate(const Doorbell& doorbell) {
  QueuePair* qp = doorbell.queue_pair();
  if (qp == nullptr) return;
  if (DeviceTiming* timing = qp->config().timing) {
    timing->OnDoorbell(*qp);
  } else {
    active.Add(*qp);
  }
}

void Progress::Ring(Doorbell& doorbell, Duration cpu_time) {
  if (!TryLock()) {
    doorbells_.Add(doorbell);
    while (!TryLock()) {
      // The holder serves it.  But the background thread dies with a program that ends right now,
      // by _exit, and what was posted has to arrive.
      if (holder_.load(std::memory_order_relaxed) != Holder::kBackground) return;
      sched_yield();
    }
    Spend(cpu_time);
    ServeDoorbells();
  } else {
    Spend(cpu_time);
    Activate(doorbell);
  }
  CountCall();
  if (virtual_time()) {
    idle_streak_.Reset();
    thread_activity_.NoteProductive();
    SettleVirtual();
  } else {
    for (uint32_t round = 0; round < kRoundsPerDoorbell && RunActive(); ++round) {
    }
  }
  link.Flush();
  LeaveRestToThread();
  Unlock();
}

// What does not fit now has to be sent later, perhaps while the program calls no verbs at all.
void Progress::LeaveRestToThread() {
  if (!active.empty() && fabric.wake_wanted()) fabric.Wake();
}

// Gives each active queue pair a turn.  Returns whether any wants another right away.
bool Progress::RunActive() {
  bool more = false;
  // Those that found no room go first the next time: whoever is at the head of the list takes what
  // room there is, and must not be the same queue pair for ever.
  ActiveList starved;
  for (size_t turns = active.size(); turns > 0; --turns) {
    QueuePair* qp = active.PopFirst();
    if (qp == nullptr) break;
    DeviceTiming* timing = qp->config().timing;
    if (timing != nullptr && !timing->MayTransmit(*qp)) continue;
    const uint32_t share = timing != nullptr ? timing->Budget() : kPacketsPerTurn;
    uint32_t budget = share;
    const Turn turn = qp->Run(budget);
    if (timing != nullptr) timing->EndTurn();
    if (turn == Turn::kWaiting && budget == share) {
      starved.Add(*qp);
    } else if (turn != Turn::kDone) {
      active.Add(*qp);
    }
    more |= turn == Turn::kMore;
  }
  active.Prepend(starved);
  return more;
}

bool Progress::RunTimers() {
  if (timers.empty()) return false;
  return timers.RunUntil(Now()) > 0;
}

bool Progress::ServeControl() {
  const uint32_t bell = control_bell_.load(std::memory_order_acquire);
  if (bell == bell_heard_) [[likely]]
    return false;
  bell_heard_ = bell;
  if (control_handler_ != nullptr) control_handler_->OnControl();
  return true;
}

bool Progress::Step() {
  fabric.Beat();
  const bool asked = ServeControl();
  const bool rung = !doorbells_.empty();
  if (rung) ServeDoorbells();
  const uint32_t packets = link.Poll(*this, kPacketsPerPoll, link_keeps_time_ ? Now() : 0);
  const bool more = !active.empty() && RunActive();
  bool fired = false;
  if (++steps_ % kStepsPerTimerCheck == 0 && RunTimers()) {
    fired = true;
    RunActive();
  }
  link.Flush();
  return rung || packets > 0 || more || fired || asked;
}

void Progress::Poll() {
  if (!TryLock()) {
    // The holder does our work.  On few cores it may need this one to finish.
    thread_local int lost = 0;
    if (++lost >= kPollsBeforeYield) {
      lost = 0;
      sched_yield();
    } else {
      Pause();
    }
    return;
  }
  CountCall();
  bool yield = false;
  if (virtual_time()) {
    PollVirtual();
  } else {
    if (armed_queues_ == 0 && fabric.wake_wanted()) {
      // A program that polls pays no wake-up by its peers.
      program_polls_.store(true, std::memory_order_release);
      fabric.Wake();
    }
    idle_polls_ = Step() ? 0 : idle_polls_ + 1;
    yield = idle_polls_ > kIdlePollsBeforeYield && idle_polls_ % kIdlePollsPerYield == 0;
  }
  Unlock();
  if (yield) sched_yield();
}

void Progress::NoteProductive(Duration cpu_time) {
  if (!virtual_time()) return;
  Hold hold(*this);
  Spend(cpu_time);
  CountCall();
  idle_streak_.Reset();
  thread_activity_.NoteProductive();
}

void Progress::ExpectSleep() {
  if (virtual_time()) return;
  fabric.WantWake(true);
  if (program_polls_.exchange(false, std::memory_order_acq_rel)) look_.Wake();
  // What arrived before peers saw the flag has been announced by nobody.
  Hold hold(*this);
  Step();
  LeaveRestToThread();
}

void Progress::FinishAnswers(QueuePair& qp) {
  if (qp.Answer() || virtual_time()) return;
  const int64_t end = WallClock::MonotonicNanoseconds() + ToNanoseconds(kLastAnswers);
  do {
    link.Flush();
    sched_yield();
  } while (!qp.Answer() && WallClock::MonotonicNanoseconds() < end);
  link.Flush();
}

// The queue pair that the packet is for, with the packet taken apart; null if it is for nobody.
QueuePair* Progress::Receiver(const PacketAddress& address, const std::byte* bytes, uint32_t length,
                              InboundPacket* packet) {
  if (length < Bth::kSize) return nullptr;
  packet->address = address;
  packet->bth = Bth::Parse(bytes);
  const size_t headers = HeaderBytes(packet->bth.opcode);
  QueuePair* qp = queue_pairs_.Find(packet->bth.dest_qpn);
  if (headers == 0 || headers + packet->bth.pad > length || packet->bth.version != 0 ||
      qp == nullptr || qp->config().port_index != address.destination_port ||
      ports_down[qp->config().port_index]) {
    return nullptr;
  }
  packet->headers = bytes + Bth::kSize;
  packet->payload = bytes + headers;
  packet->payload_bytes = static_cast<uint32_t>(length - headers - packet->bth.pad);
  return qp;
}

Time Progress::ReadyFor(const PacketAddress& address, const std::byte* bytes, uint32_t length,
                        Time now, bool first_offer) {
  offered_to_ = Receiver(address, bytes, length, &offered_);
  offered_bytes_ = bytes;
  return offered_to_ != nullptr ? offered_to_->ReadyFor(offered_, length, now, first_offer) : now;
}

void Progress::OnPacket(const PacketAddress& address, const std::byte* bytes, uint32_t length) {
  counters.Add(Counter::kPacketsReceived);
  InboundPacket taken;
  const InboundPacket* packet = &offered_;
  QueuePair* qp = offered_to_;
  // A packet is given right after it was offered and found ready, if it was offered at all.
  if (std::exchange(offered_bytes_, nullptr) != bytes) {
    packet = &taken;
    qp = Receiver(address, bytes, length, &taken);
  }
  if (qp == nullptr) {
    counters.Add(Counter::kDropped);
    return;
  }
  counters.Add(Counter::kBytesReceived, packet->payload_bytes);
  qp->OnPacket(*packet);
}

// ---- Virtual time ----

// Everything that happens at the present time.
void Progress::SettleVirtual() {
  ServeControl();
  ServeDoorbells();
  const Time now = Now();
  while (true) {
    const bool more = !active.empty() && RunActive();
    const bool fired = timers.RunUntil(now) > 0;
    const bool arrived = link.Poll(*this, kPacketsPerPoll, now) > 0;
    if (!more && !fired && !arrived) return;
    if (active.empty() && NextDue() > now) return;
  }
}

void Progress::PollVirtual() {
  const uint64_t visible_before = visible;
  thread_activity_.NoteIdle();
  SettleVirtual();
  if (visible == visible_before && !thread_activity_.AnyBusy()) AdvanceVirtual();
  if (visible != visible_before) idle_streak_.Reset();
}

// Lets time go on by one step of the idle streak, or until something becomes visible.
void Progress::AdvanceVirtual() {
  const uint64_t visible_before = visible;
  const Time end = SaturatingAdd(Now(), idle_streak_.NextStep(NextDue() != kNever));
  RunThrough(end);
  if (visible == visible_before) virtual_clock_->AdvanceTo(end);
}

bool Progress::AdvanceToNextVisible(Time end) {
  Hold hold(*this);
  const uint64_t visible_before = visible;
  SettleVirtual();
  if (visible == visible_before) RunThrough(end);
  if (visible == visible_before) virtual_clock_->AdvanceTo(end);
  return visible != visible_before;
}

void Progress::Spend(Duration cpu_time) {
  if (cpu_time == 0 || !virtual_time()) return;
  const Time end = SaturatingAdd(Now(), cpu_time);
  // Whatever becomes visible meanwhile is seen afterwards.
  while (RunThrough(end) && NextDue() <= end) {
  }
  virtual_clock_->AdvanceTo(end);
}

Time Progress::NextDue() const { return std::min(timers.NextTime(), link.NextArrival()); }

bool Progress::RunThrough(Time end) {
  const uint64_t visible_before = visible;
  bool happened = false;
  while (visible == visible_before) {
    const Time next = NextDue();
    if (next > end || next == kNever) break;
    virtual_clock_->AdvanceTo(next);
    SettleVirtual();
    happened = true;
  }
  return happened;
}

}  // namespace simhca
