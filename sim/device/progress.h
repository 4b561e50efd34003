#ifndef SIMHCA_SIM_DEVICE_PROGRESS_H_
#define SIMHCA_SIM_DEVICE_PROGRESS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "sim/device/private_futex.h"
#include "sim/device/queue_pair_table.h"
#include "sim/device/thread_activity.h"
#include "sim/fabric/fabric.h"
#include "sim/timing/clock.h"
#include "sim/transport/doorbell.h"
#include "sim/transport/services.h"
#include "sim/transport/transport_machine.h"

namespace simhca {

// Takes what others ask of this process (sim/fabric/control.h).
class ControlHandler {
 public:
  virtual ~ControlHandler() = default;
  // The fabric's bell has rung.  Under the engine's lock.
  virtual void OnControl() = 0;
};

// Makes the simulated devices of a process advance.  Nothing here runs by itself: whoever rings a
// doorbell or polls takes the lock and does the work; who finds it taken leaves the work to the
// holder.  A background thread does the same for a process that calls no verbs.
class Progress final : public Services, private PacketHandler {
 public:
  Progress(std::unique_ptr<Fabric> fabric, ClockMode mode);
  ~Progress() override;

  // Exclusive use of everything the engine owns.  Doorbells that others ring meanwhile are served
  // at its end.
  class Hold {
   public:
    explicit Hold(Progress& progress) : progress_(progress) { progress_.Lock(); }
    ~Hold() { progress_.Unlock(); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    Progress& progress_;
  };

  // Runs what the doorbell announces, or leaves it to the holder of the lock.  Under virtual time
  // the call has taken `cpu_time`.
  void Ring(Doorbell& doorbell, Duration cpu_time);

  // An idle verbs call.  Under virtual time it lets time advance, at most until something becomes
  // visible to the program.
  void Poll();
  void NoteProductive(Duration cpu_time);
  // Under virtual time, for a simulation: until something becomes visible, or to `end`.  Returns
  // whether something has.
  bool AdvanceToNextVisible(Time end);
  // A queue has been armed, or the program is about to block: it will probably sleep on a file
  // descriptor, so from now on peers wake the background thread.
  void ExpectSleep();

  // Before the first step.
  void SetControlHandler(ControlHandler* handler) { control_handler_ = handler; }

  bool virtual_time() const { return virtual_clock_ != nullptr; }
  QueuePairTable& queue_pairs() { return queue_pairs_; }
  uint32_t* armed_queues() { return &armed_queues_; }
  DoorbellPages& doorbell_pages() { return doorbell_pages_; }
  // Takes over what has been rung while the lock was held.
  void ServeDoorbells();

  // Called under the lock before a queue pair goes: an ACK that waits for room must not be lost
  // with it, or the peer of a program that ends in good order sees an error.  Waits for 20 ms at
  // most.
  void FinishAnswers(QueuePair& qp);

  // Where messages for the log go; either may be empty.
  using Log = std::function<void(const std::string&)>;
  void LogTo(Log warn, Log error);

  // The thread runs with all signals blocked.
  void StartThread();
  void StopThread();
  // Drains what is queued for at most `limit`.
  void Drain(Duration limit);
  // Says what has gone wrong on the fabric, each thing once.
  void ReportTrouble();
  // In a forked child.
  void Abandon();

  // Services:
  Time Now() const override { return clock_->Now(); }
  Time CoarseNow() const override;
  Duration coarseness() const override;

 private:
  Time ReadyFor(const PacketAddress& address, const std::byte* bytes, uint32_t length, Time now,
                bool first_offer) override;
  void OnPacket(const PacketAddress& address, const std::byte* bytes, uint32_t length) override;
  QueuePair* Receiver(const PacketAddress& address, const std::byte* bytes, uint32_t length,
                      InboundPacket* packet);

  enum class Holder : uint8_t { kNobody, kProgram, kBackground };
  bool TryLock(Holder holder = Holder::kProgram) {
    Holder nobody = Holder::kNobody;
    return holder_.compare_exchange_strong(nobody, holder, std::memory_order_acquire,
                                           std::memory_order_relaxed);
  }
  void Lock();
  void Unlock();

  // One round of everything that is due now.  Returns whether there was anything to do.
  bool Step();
  bool RunActive();
  void Activate(const Doorbell& doorbell);
  void LeaveRestToThread();
  bool RunTimers();
  // Whether the bell has rung since the last time; then it is answered.
  bool ServeControl();
  void CountCall() {
    calls_.store(calls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  void PollVirtual();
  void AdvanceVirtual();
  // When the next timer or packet is due; kNever without any.
  Time NextDue() const;
  // The program computes for so long.
  void Spend(Duration cpu_time);
  // Goes from one due time to the next, `end` included, until something becomes visible.  Returns
  // whether anything was due.
  bool RunThrough(Time end);
  void SettleVirtual();

  // The background thread.
  void ThreadMain();
  void Serve(Time* last_work);
  void WatchPolls();
  void WatchVirtualClock();

  std::unique_ptr<Fabric> owned_fabric_;
  std::unique_ptr<Clock> clock_;
  VirtualClock* virtual_clock_ = nullptr;  // clock_, if it is that
  IdleStreak idle_streak_;
  ThreadActivity thread_activity_;  // under virtual time
  QueuePairTable queue_pairs_;
  DoorbellPages doorbell_pages_;
  const bool link_keeps_time_;
  const std::atomic<uint32_t>& control_bell_;
  uint32_t bell_heard_;
  ControlHandler* control_handler_ = nullptr;
  // The packet that was offered last, taken apart.
  InboundPacket offered_;
  QueuePair* offered_to_ = nullptr;
  const std::byte* offered_bytes_ = nullptr;
  uint32_t armed_queues_ = 0;
  uint32_t steps_ = 0;
  uint32_t idle_polls_ = 0;  // in a row

  alignas(64) std::atomic<Holder> holder_{Holder::kNobody};  // of the lock
  alignas(64) DoorbellList doorbells_;
  // Verbs calls that came by, for the background thread to tell whether the program polls.
  alignas(64) std::atomic<uint64_t> calls_{0};
  // The program polls, so the thread keeps away from the lock and only looks now and then whether
  // it still does.
  std::atomic<bool> program_polls_{false};
  bool program_waits_ = false;  // under virtual time, as the background thread saw it last
  int silences_ = 0;            // in a row, of kVirtualSilence
  PrivateFutex look_;           // where it waits between two looks
  std::atomic<bool> stop_{false};
  std::thread thread_;
  Log warn_;
  Log error_;
  std::string reported_trouble_;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_DEVICE_PROGRESS_H_
