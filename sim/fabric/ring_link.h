#ifndef SIMHCA_SIM_FABRIC_RING_LINK_H_
#define SIMHCA_SIM_FABRIC_RING_LINK_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/fabric/link.h"
#include "sim/fabric/registry.h"
#include "sim/fabric/ring.h"

namespace simhca {

// The link between the processes of a fabric: one ring for each ordered pair, opened when the
// first packet goes that way.  What a process sends to itself takes a ring of private memory.
//
// Rings lie with the receiver: what was committed arrives, even if the sender dies meanwhile.
class RingLink : public Link {
 public:
  explicit RingLink(Registry& registry);
  ~RingLink() override;  // forgets the rings; Registry closes them when it leaves

  Reservation Reserve(uint32_t destination_qpn, uint32_t length) override;
  void Commit(const PacketAddress& address, Time ready) override;
  void Flush() override;
  uint32_t Poll(PacketHandler& handler, uint32_t budget, Time now) override;

  // Drops the rings of processes that left or died, the latter's only when they are empty.
  void Maintain();

  // Others have taken this process for dead and may use its slot: nothing goes or comes any more.
  void Expel(std::string_view reason);

  // What this process committed towards `owner`, ever, and what of it has been consumed.
  struct Progress {
    uint64_t committed = 0;
    uint64_t consumed = 0;
  };
  Progress Towards(uint32_t owner);
  // Nothing is left of what the process in `slot` sent.
  bool DrainedFrom(uint32_t slot);

  // Between the store that says "I am going to sleep" and the last look for packets.
  void BarrierBeforeSleep();

  uint64_t corrupt_rings() const { return corrupt_rings_; }
  uint64_t failed_rings() const { return failed_rings_; }
  const std::string& last_trouble() const { return last_trouble_; }

 private:
  // This process's end of one ring.
  template <typename End>
  struct Attached {
    Attached(uint32_t ring_index, std::byte* ring_memory, uint32_t cells)
        : ring(ring_index), memory(ring_memory), end(ring_memory, cells) {}
    uint32_t ring;  // kPrivateRing for the one to ourselves
    std::byte* memory;
    End end;
  };
  struct Outbound {
    uint32_t owner = 0;  // of the number blocks it serves; 0: not open
    bool dirty = false;  // written to since the last Flush
    std::optional<Attached<RingProducer>> ring;
  };
  using Inbound = std::optional<Attached<RingConsumer>>;

  static constexpr uint32_t kPrivateRing = UINT32_MAX;

  Status Connect(Outbound& outbound, uint32_t owner);
  Status ConnectToSelf(Outbound& outbound);
  Status RefuseCorrupt(Outbound& outbound);
  void DropOutbound(Outbound& outbound, uint32_t ends);
  void DropInbound(uint32_t slot, uint32_t ends);
  void AcceptNewRings();
  Status Fail(int error);

  Registry& registry_;
  ProcessSlot& mine_;
  std::byte* private_ring_ = nullptr;
  Outbound* reserved_ = nullptr;
  uint32_t dirty_count_ = 0;
  std::array<uint8_t, kMaxProcesses> dirty_;  // slots
  uint32_t seen_version_ = 0;
  uint32_t next_inbound_ = 0;    // where the next Poll starts in active_
  std::vector<uint8_t> active_;  // slots with an inbound ring
  std::array<Outbound, kMaxProcesses> outbound_;
  std::array<Inbound, kMaxProcesses> inbound_;
  bool expelled_ = false;
  bool fences_ = false;  // this process does not take part in expedited barriers
  uint64_t corrupt_rings_ = 0;
  uint64_t failed_rings_ = 0;
  std::string last_trouble_;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_FABRIC_RING_LINK_H_
