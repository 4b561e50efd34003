#ifndef SIMHCA_SIM_TRANSPORT_TRANSPORT_MACHINE_H_
#define SIMHCA_SIM_TRANSPORT_TRANSPORT_MACHINE_H_

#include <cstddef>
#include <cstdint>

#include "sim/fabric/link.h"
#include "sim/wire/headers.h"

namespace simhca {

// Whether a queue pair that was given its turn wants another.
enum class Turn : uint8_t {
  kDone,     // nothing to do until a doorbell, a packet or a timer
  kWaiting,  // stuck on room in the link, or on host memory that nobody announces
  kMore,     // its share of this round is used up
};

// A packet taken apart as far as every transport needs it.
struct InboundPacket {
  PacketAddress address;
  Bth bth;
  const std::byte* headers;  // extension headers
  const std::byte* payload;
  uint32_t payload_bytes;  // without pad
};

// The packet state machines of one transport type, owned by a queue pair.  A new transport is a
// new class beside rc_transport.
class TransportMachine {
 public:
  virtual ~TransportMachine() = default;

  // The queue pair has entered RTR, RTS.
  virtual void StartReceiving() = 0;
  virtual void StartSending() = 0;
  // The retry counts of the queue pair have been changed.
  virtual void RetriesChanged() = 0;

  // Under a model of time, before OnPacket: takes what the packet will need.  Returns when the
  // device has it.
  virtual Time Prepare(const InboundPacket& packet, Time now) = 0;
  virtual void OnPacket(const InboundPacket& packet) = 0;

  // A single send WQE of one block is waiting: it came with its doorbell (BlueFlame).
  virtual bool NextSendIsAlone() const = 0;

  // Sends up to `budget` packets, lowering it.
  virtual Turn Run(uint32_t& budget) = 0;

  // Sends what answers are due, as far as there is room for them; true if none is left.
  virtual bool Answer() = 0;

  // The queue pair has entered ERR: completes what was begun or posted to the send queue, and a
  // receive WQE that was claimed, with the flushed status.
  virtual void Flush() = 0;

  // To RESET, or about to be destroyed: forgets everything.  Returns true, with `released`, if a
  // receive WQE was claimed and will not complete.
  virtual bool Reset(uint16_t* released) = 0;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_TRANSPORT_TRANSPORT_MACHINE_H_
