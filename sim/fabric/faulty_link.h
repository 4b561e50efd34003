#ifndef SIMHCA_SIM_FABRIC_FAULTY_LINK_H_
#define SIMHCA_SIM_FABRIC_FAULTY_LINK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/fabric/counters.h"
#include "sim/fabric/fault_plan.h"
#include "sim/fabric/link.h"
#include "sim/timing/split_mix.h"

namespace simhca {

// Any link, with a bad wire in front of the receiver: packets that arrive are lost, corrupted,
// duplicated or held back as the plan says.  The same seed and the same arrivals give the same
// faults.
class FaultyLink final : public Link {
 public:
  // `link` and `counters` outlive this object.
  FaultyLink(Link& link, FaultPlan plan, uint64_t seed, CounterSet counters);

  Reservation Reserve(uint32_t destination_qpn, uint32_t length) override {
    return link_.Reserve(destination_qpn, length);
  }
  void Commit(const PacketAddress& address, Time ready) override { link_.Commit(address, ready); }
  void Flush() override { link_.Flush(); }
  uint32_t Poll(PacketHandler& handler, uint32_t budget, Time now) override;
  Time NextArrival() const override;
  bool keeps_time() const override { return true; }

 private:
  class Receiver;
  // A packet that is held back.
  struct Held {
    Time due;
    uint64_t sequence;
    PacketAddress address;
    std::vector<std::byte> bytes;
    // Heap order: the earliest on top.
    bool operator<(const Held& other) const {
      return due != other.due ? due > other.due : sequence > other.sequence;
    }
  };
  // What is held back at a time; more than that is let through.
  static constexpr size_t kMostHeld = 1024;

  void OnArrival(PacketHandler& handler, const PacketAddress& address, const std::byte* bytes,
                 uint32_t length, Time now);
  void Corrupt(PacketHandler& handler, const PacketAddress& address, const std::byte* bytes,
               uint32_t length);
  bool Hold(const PacketAddress& address, const std::byte* bytes, uint32_t length, Time now);
  bool Chance(double probability);

  Link& link_;
  const FaultPlan plan_;
  SplitMix random_;
  CounterSet counters_;
  uint64_t arrivals_ = 0;
  uint64_t sequence_ = 0;
  std::vector<Held> held_;  // a heap
};

}  // namespace simhca

#endif  // SIMHCA_SIM_FABRIC_FAULTY_LINK_H_
