#ifndef SIMHCA_SIM_FABRIC_TIMED_LOOPBACK_H_
#define SIMHCA_SIM_FABRIC_TIMED_LOOPBACK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/fabric/layout.h"
#include "sim/fabric/link.h"
#include "sim/timing/timeline.h"

namespace simhca {

// The link of a fabric in virtual time: all devices are in this process, and packets take the
// time of a wire.  Each source port has a wire of its own, which serialises its packets; a packet
// arrives when the wire has sent it and it has propagated.  Arrivals at the same time keep the
// order of the commits, so the same calls give the same deliveries.
class TimedLoopback : public Link {
 public:
  // What may be on its way at a time by default, in bytes of buffers.
  static constexpr uint32_t kMostInFlight = 512 * 1024;

  // `wires` as Fabric::Options::wires.  `owners` is the table of number blocks and `owner` this
  // process there; with an empty table every number can be reached.
  TimedLoopback(std::vector<LinkModel> wires, std::span<const std::atomic<uint32_t>> owners,
                uint32_t owner, uint32_t most_in_flight = kMostInFlight);

  Reservation Reserve(uint32_t destination_qpn, uint32_t length) override;
  void Commit(const PacketAddress& address, Time ready) override;
  void Flush() override {}
  uint32_t Poll(PacketHandler& handler, uint32_t budget, Time now) override;
  bool keeps_time() const override { return true; }
  Time NextArrival() const override;

 private:
  // Buffers come in two sizes, because most packets are small.
  struct Pool {
    uint32_t buffer_bytes;
    std::vector<std::unique_ptr<std::byte[]>> all;
    std::vector<std::byte*> free;
    std::byte* Take();
  };
  struct Packet {
    Time arrival;
    uint64_t sequence;
    PacketAddress address;
    uint32_t length;
    std::byte* bytes;
    uint32_t flow;         // the queue pair it is for
    bool offered = false;  // to the receiver, which was not ready
    // Heap order: the earliest on top.
    bool operator<(const Packet& other) const {
      return arrival != other.arrival ? arrival > other.arrival : sequence > other.sequence;
    }
  };

  // Packets of a queue pair behind one that its device cannot take yet, which is the only one of
  // them among the arrivals.
  using Flow = std::deque<Packet>;

  void Push(const Packet& packet);
  Packet Pop();
  // Puts the packet behind others of its queue pair, if there are any that wait.
  bool Join(PacketHandler& handler, Packet& packet, Time now);
  void LetNextCome(uint32_t flow, Time now);
  Pool& PoolFor(uint32_t length) { return length <= small_.buffer_bytes ? small_ : large_; }
  const LinkModel& Wire(uint16_t port) const;

  const std::vector<LinkModel> models_;
  const std::span<const std::atomic<uint32_t>> owners_;
  const uint32_t owner_;
  const uint32_t most_in_flight_;
  std::vector<Timeline> wires_;  // by source port
  Pool small_{256, {}, {}};
  Pool large_{kMaxPacketBytes, {}, {}};
  std::vector<Packet> arrivals_;  // a heap
  std::unordered_map<uint32_t, Flow> blocked_;
  uint64_t sequence_ = 0;
  uint32_t in_flight_ = 0;
  std::byte* reserved_ = nullptr;
  uint32_t reserved_length_ = 0;
  uint32_t reserved_flow_ = 0;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_FABRIC_TIMED_LOOPBACK_H_
