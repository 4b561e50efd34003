#include "sim/fabric/fabric.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "sim/fabric/control_inbox.h"
#include "sim/fabric/counters.h"
#include "sim/fabric/faulty_link.h"
#include "sim/fabric/number_allocator.h"
#include "sim/fabric/registry.h"
#include "sim/fabric/ring_link.h"
#include "sim/fabric/timed_loopback.h"

namespace simhca {
namespace {

class MemberFabric : public Fabric {
 public:
  MemberFabric(std::unique_ptr<Registry> registry, const Options& options)
      : registry_(std::move(registry)),
        mine_(registry_->process(registry_->slot())),
        inbox_(mine_.control),
        epoch_ns_(
            std::clamp<int64_t>(registry_->layout().header.epoch_ns, 0, MonotonicNanoseconds())),
        numbers_(registry_->layout(), registry_->owner()) {
    if (options.exclusive) {
      timed_ = std::make_unique<TimedLoopback>(options.wires, registry_->layout().owners,
                                               registry_->owner());
    } else {
      rings_ = std::make_unique<RingLink>(*registry_);
    }
    if (options.faults.any()) {
      faulty_ = std::make_unique<FaultyLink>(PerfectLink(), options.faults, options.seed,
                                             CounterSet(mine_.counters));
    }
  }

  void Abandon() override {
    faulty_.reset();
    rings_.reset();
    timed_.reset();
    registry_->Abandon();
  }

  void Leave() override {
    if (rings_ != nullptr) rings_->Expel("this process has left the fabric");
    registry_->Leave();
  }

  Link& link() override { return faulty_ != nullptr ? *faulty_ : PerfectLink(); }

  int64_t epoch_ns() const override { return epoch_ns_; }

  uint32_t AllocateNumber() override { return numbers_.Allocate(); }
  void ReleaseNumber(uint32_t number) override { numbers_.Release(number); }

  Peer PeerOf(uint32_t number) override;

  void Beat() override {
    mine_.heartbeat.store(mine_.heartbeat.load(std::memory_order_relaxed) + 1,
                          std::memory_order_relaxed);
  }

  void WantWake(bool wanted) override {
    mine_.want_wake.store(wanted ? 1 : 0);
    if (wanted && rings_ != nullptr) rings_->BarrierBeforeSleep();
  }
  bool wake_wanted() const override { return mine_.want_wake.load(std::memory_order_relaxed) != 0; }
  void Sleep(Duration timeout) override;
  void Wake() override { WakeProcess(mine_); }

  void Maintain() override {
    const bool member = registry_->IsMember();
    if (member) registry_->RetakeLock();
    if (rings_ == nullptr) return;
    if (member) {
      rings_->Maintain();
      registry_->GiveBackRings();
    } else {
      rings_->Expel(
          "this process lost its lock on the fabric for too long (all descriptors closed?) and was "
          "taken for dead");
    }
  }

  const std::atomic<uint32_t>& control_bell() const override { return mine_.control_bell; }
  // After leaving, the slot and its mailbox may be somebody else's.
  bool TakeControl(ControlRequest* request) override {
    return registry_->IsMember() && inbox_.Take(request);
  }
  void AnswerControl(const ControlReply& reply) override {
    if (registry_->IsMember()) inbox_.Answer(reply);
  }
  bool port_down(uint16_t port) const override {
    return IsPortDown(registry_->layout().header, port);
  }

  std::span<std::atomic<uint64_t>> counters() override { return mine_.counters; }

  Trouble trouble() const override {
    if (rings_ == nullptr) return {};
    return {rings_->corrupt_rings(), rings_->failed_rings(), rings_->last_trouble()};
  }

 private:
  Link& PerfectLink() {
    if (timed_ != nullptr) return *timed_;
    return *rings_;
  }

  std::unique_ptr<Registry> registry_;
  ProcessSlot& mine_;
  ControlInbox inbox_;
  // Read once and kept within what can be: times are counted from it.
  const int64_t epoch_ns_;
  NumberAllocator numbers_;
  std::unique_ptr<RingLink> rings_;  // unless exclusive
  std::unique_ptr<TimedLoopback> timed_;
  std::unique_ptr<FaultyLink> faulty_;  // in front of the one or the other
};

Fabric::Peer MemberFabric::PeerOf(uint32_t number) {
  Peer peer;
  if (number / kNumbersPerBlock >= kNumberBlocks) return peer;
  const uint32_t owner = registry_->layout().owners[number / kNumbersPerBlock].load();
  if (owner == 0) return peer;
  if (timed_ != nullptr) {
    peer.state = owner == registry_->owner() ? Peer::State::kAlive : Peer::State::kUnknown;
    return peer;
  }
  const uint32_t slot = OwnerSlot(owner);
  const ProcessSlot& process = registry_->process(slot);
  const auto is_its = [&] {
    return process.in_use.load() != 0 && process.generation.load() == OwnerGeneration(owner);
  };
  if (!is_its()) return peer;
  const RingLink::Progress progress = rings_->Towards(owner);
  peer.committed = progress.committed;
  peer.consumed = progress.consumed;
  peer.state = Peer::State::kAlive;
  // What the dead have sent comes first.
  if (slot != registry_->slot() && registry_->LifeOf(slot) == Registry::Life::kDead &&
      rings_->DrainedFrom(slot)) {
    peer.state = is_its() ? Peer::State::kDead : Peer::State::kUnknown;
  }
  peer.elsewhere = slot != registry_->slot();
  if (peer.elsewhere && peer.state == Peer::State::kAlive) {
    peer.heartbeat = process.heartbeat.load(std::memory_order_relaxed);
    registry_->Wake(slot);
  }
  return peer;
}

void MemberFabric::Sleep(Duration timeout) {
  if (timeout <= 0) return;
  timespec limit;
  limit.tv_sec = timeout / kSecond;
  limit.tv_nsec = ToNanoseconds(timeout % kSecond);
  syscall(SYS_futex, &mine_.want_wake, FUTEX_WAIT, 1, timeout == kNever ? nullptr : &limit, nullptr,
          0);
  // Somebody missed our lock, and woke us for that.
  if (mine_.missing_since.load(std::memory_order_relaxed) != 0) registry_->RetakeLock();
}

}  // namespace

int Fabric::Join(const Options& options, std::unique_ptr<Fabric>* fabric, std::string* error) {
  std::unique_ptr<Registry> registry;
  const int result =
      Registry::Join(options.directory, options.name.empty() ? kDefaultFabric : options.name,
                     options.exclusive, &registry, error);
  if (result == 0) *fabric = std::make_unique<MemberFabric>(std::move(registry), options);
  return result;
}

}  // namespace simhca
