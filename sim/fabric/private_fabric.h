#ifndef SIMHCA_SIM_FABRIC_PRIVATE_FABRIC_H_
#define SIMHCA_SIM_FABRIC_PRIVATE_FABRIC_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/fabric/fabric.h"
#include "sim/fabric/timed_loopback.h"

namespace simhca {

// A fabric that nobody else can join, without a file: for simulations, whose devices are all in one
// process and under virtual time.
class PrivateFabric final : public Fabric {
 public:
  // `wires` as Fabric::Options::wires.
  PrivateFabric(std::vector<LinkModel> wires, uint32_t most_in_flight)
      : link_(std::move(wires), {}, 0, most_in_flight) {}

  void Leave() override {}
  void Abandon() override {}
  Link& link() override { return link_; }
  int64_t epoch_ns() const override { return 0; }
  uint32_t AllocateNumber() override;
  void ReleaseNumber(uint32_t) override {}
  Peer PeerOf(uint32_t) override { return {.state = Peer::State::kAlive}; }
  void Beat() override {}
  void WantWake(bool wanted) override { wake_wanted_ = wanted; }
  bool wake_wanted() const override { return wake_wanted_; }
  void Sleep(Duration) override {}
  void Wake() override { wake_wanted_ = false; }
  void Maintain() override {}
  const std::atomic<uint32_t>& control_bell() const override { return bell_; }
  bool TakeControl(ControlRequest*) override { return false; }
  void AnswerControl(const ControlReply&) override {}
  bool port_down(uint16_t) const override { return false; }
  std::span<std::atomic<uint64_t>> counters() override { return counters_; }
  Trouble trouble() const override { return {}; }

 private:
  static constexpr uint32_t kFirstNumber = 0x100;

  TimedLoopback link_;
  uint32_t next_number_ = kFirstNumber;
  bool wake_wanted_ = false;
  std::atomic<uint32_t> bell_{0};
  std::array<std::atomic<uint64_t>, kCountersPerProcess> counters_{};
};

// Numbers are not used again: a simulation that needs more than 16 million gets 0, "none left".
inline uint32_t PrivateFabric::AllocateNumber() {
  return next_number_ < 0xffffff ? next_number_++ : 0;
}

}  // namespace simhca

#endif  // SIMHCA_SIM_FABRIC_PRIVATE_FABRIC_H_
