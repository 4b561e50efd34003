#ifndef SIMHCA_SIM_FABRIC_LINK_H_
#define SIMHCA_SIM_FABRIC_LINK_H_

#include <cstddef>
#include <cstdint>

#include "sim/timing/time.h"

namespace simhca {

// Largest packet a link carries, from BTH to the end of the payload: path MTU 4096 plus headers.
inline constexpr uint32_t kMaxPacketBytes = 4096 + 64;

// Ports of a fabric are numbered below this.
inline constexpr uint16_t kMaxFabricPorts = 1024;

// What a packet's outer headers would say: the ports of the fabric that it goes between.
struct PacketAddress {
  uint16_t source_port = 0;
  uint16_t destination_port = 0;
  uint8_t source_gid_index = 0;
  uint8_t destination_gid_index = 0;
  uint8_t traffic_class = 0;
  uint8_t hop_limit = 0;
};

// The wire behind a port, for links that model time.
struct LinkModel {
  uint64_t bits_per_second = 0;  // 0: no limit
  Duration propagation = 0;      // from the end of the packet at the sender to its arrival
  uint32_t overhead_bytes = 0;   // of each packet on the wire, besides what the link carries

  // How long a packet of `length` bytes, as the link carries it, takes the wire.
  Duration TimeOf(uint32_t length) const {
    return bits_per_second == 0 ? 0 : TransferTime(length + overhead_bytes, bits_per_second);
  }
};

// Takes the packets that arrive for this process.
class PacketHandler {
 public:
  virtual ~PacketHandler() = default;
  // Asked before OnPacket by links that keep time: when the receiving device can take the packet.
  // Up to `now`: at once.  Later: it is offered again then, with `first_offer` false, and keeps its
  // place among packets of that time.
  virtual Time ReadyFor(const PacketAddress& address, const std::byte* bytes, uint32_t length,
                        Time now, bool first_offer) {
    (void)address, (void)bytes, (void)length, (void)first_offer;
    return now;
  }
  // `bytes` holds `length` bytes from BTH on, readable until the call returns.  The sender may be
  // hostile and may change the bytes meanwhile: read each header field once.
  virtual void OnPacket(const PacketAddress& address, const std::byte* bytes, uint32_t length) = 0;
};

// Carries packets between the engines of a fabric, in order for each pair of processes, losing
// none (FaultyLink, which wraps another link, may do both).  Used under the engine's lock only.
class Link {
 public:
  enum class Status : uint8_t {
    kReady,
    kNoRoom,       // in flight towards that process is all that may be: try again after a Poll
    kUnreachable,  // nobody owns the number, or its owner is dead: the packet would vanish
  };
  struct Reservation {
    Status status;
    std::byte* bytes;  // where the packet is to be written; null unless kReady
  };

  virtual ~Link() = default;

  // Room for one packet of exactly `length` bytes (<= kMaxPacketBytes) towards the process that
  // owns queue pair number `destination_qpn`.  A reservation that is not committed is void at the
  // next Reserve.
  virtual Reservation Reserve(uint32_t destination_qpn, uint32_t length) = 0;

  // Sends the packet last reserved.  `ready` is when it leaves the sending device; links without
  // a model ignore it.
  virtual void Commit(const PacketAddress& address, Time ready) = 0;

  // Ends a batch of commits: makes them visible and wakes sleeping receivers.
  virtual void Flush() = 0;

  // Hands at most `budget` arrived packets to `handler`, fairly among senders; returns how many.
  // `now` bounds what has arrived where the link keeps time.
  virtual uint32_t Poll(PacketHandler& handler, uint32_t budget, Time now) = 0;

  // Whether Poll has to be told the time.
  virtual bool keeps_time() const { return false; }

  // When the next packet on its way will have arrived; kNever if there is none, or the link does
  // not know.
  virtual Time NextArrival() const { return kNever; }
};

}  // namespace simhca

#endif  // SIMHCA_SIM_FABRIC_LINK_H_
