#ifndef SIMHCA_TESTS_UNIT_DEVICE_LOOPBACK_FABRIC_H_
#define SIMHCA_TESTS_UNIT_DEVICE_LOOPBACK_FABRIC_H_

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "sim/fabric/fabric.h"
#include "sim/fabric/faulty_link.h"

namespace simhca {

// A fabric of one process whose link delivers at once and loses what the test tells it to lose, or
// suffers from a faulty wire.
class LoopbackFabric final : public Fabric, private Link {
 public:
  // Returns true for a packet that is to vanish.  Counts from 0.
  std::function<bool(size_t index, const std::byte* bytes)> lose;
  size_t sent = 0;
  size_t max_in_flight = 1000;  // then kNoRoom
  std::atomic<uint32_t> bell{0};
  bool down = false;  // port 0

  void Leave() override {}
  void Abandon() override {}
  // From now on packets meet such a wire on their way.  Before the engine asks for the link.
  void MakeFaulty(const FaultPlan& plan, uint64_t seed) {
    faulty_ =
        std::make_unique<FaultyLink>(static_cast<Link&>(*this), plan, seed, CounterSet(counters_));
  }

  // Puts a packet on its way that no device of this process sent.
  void Inject(const PacketAddress& address, std::vector<std::byte> bytes) {
    ++committed_;
    packets_.push_back({address, std::move(bytes)});
  }

  Link& link() override {
    if (faulty_ != nullptr) return *faulty_;
    return *this;
  }
  int64_t epoch_ns() const override { return 0; }
  uint32_t AllocateNumber() override { return next_number_++; }
  void ReleaseNumber(uint32_t) override {}
  Peer PeerOf(uint32_t) override {
    return {.state = Peer::State::kAlive, .committed = committed_, .consumed = consumed_};
  }
  void Beat() override {}
  void WantWake(bool wanted) override { wanted_ = wanted; }
  bool wake_wanted() const override { return wanted_; }
  void Sleep(Duration) override {}
  void Wake() override { wanted_ = false; }
  void Maintain() override {}
  const std::atomic<uint32_t>& control_bell() const override { return bell; }
  bool TakeControl(ControlRequest*) override { return false; }
  void AnswerControl(const ControlReply&) override {}
  bool port_down(uint16_t port) const override { return port == 0 && down; }
  std::span<std::atomic<uint64_t>> counters() override { return counters_; }
  Trouble trouble() const override { return {}; }

 private:
  struct Packet {
    PacketAddress address;
    std::vector<std::byte> bytes;
  };

  Reservation Reserve(uint32_t, uint32_t length) override {
    if (packets_.size() >= max_in_flight) return {Status::kNoRoom, nullptr};
    reserved_.resize(length);
    return {Status::kReady, reserved_.data()};
  }
  void Commit(const PacketAddress& address, Time) override {
    if (lose && lose(sent++, reserved_.data())) return;
    ++committed_;
    packets_.push_back({address, reserved_});
  }
  void Flush() override {}
  uint32_t Poll(PacketHandler& handler, uint32_t budget, Time) override {
    uint32_t count = 0;
    for (; count < budget && !packets_.empty(); ++count) {
      const Packet packet = std::move(packets_.front());
      packets_.pop_front();
      ++consumed_;
      handler.OnPacket(packet.address, packet.bytes.data(),
                       static_cast<uint32_t>(packet.bytes.size()));
    }
    return count;
  }

  uint32_t next_number_ = 0x100;
  uint64_t committed_ = 0;
  uint64_t consumed_ = 0;
  bool wanted_ = false;
  std::vector<std::byte> reserved_;
  std::deque<Packet> packets_;
  std::unique_ptr<FaultyLink> faulty_;
  std::array<std::atomic<uint64_t>, kCountersPerProcess> counters_{};
};

}  // namespace simhca

#endif  // SIMHCA_TESTS_UNIT_DEVICE_LOOPBACK_FABRIC_H_
