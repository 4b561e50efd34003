#ifndef SIMHCA_SIM_TRANSPORT_DEVICE_TIMING_H_
#define SIMHCA_SIM_TRANSPORT_DEVICE_TIMING_H_

#include <cstdint>

#include "sim/queues/completion_queue.h"
#include "sim/queues/receive_wqe.h"
#include "sim/timing/event_queue.h"
#include "sim/timing/receive_fetcher.h"
#include "sim/timing/time.h"
#include "sim/transport/transport_machine.h"

namespace simhca {

class QueuePair;

// What the device model keeps for a queue pair.
struct QueuePairTiming {
  Time receives_from = 0;   // no packet is taken before
  Time transmits_from = 0;  // no packet is sent before
  Time last_departure = 0;
  Time context_from = 0;           // its context is on its way from the host until then
  bool waits_for_turn = false;     // for the packet pipeline
  bool context_loaded = false;     // by the cache miss that its next packet waited for
  ReceiveFetcher receive_fetcher;  // of its own receive queue
  Timer wake;

  QueuePairTiming(Timer::Callback on_wake, void* context, const ReceiveFetcher::Config& fetcher)
      : receive_fetcher(fetcher), wake(on_wake, context) {}
};

// The model of the device around a queue pair: when things happen that the transport decides on.
// Absent under the wall clock, where everything happens at once.
class DeviceTiming {
 public:
  virtual ~DeviceTiming() = default;

  // How receive WQEs of `stride` bytes are read ahead.
  virtual ReceiveFetcher::Config FetcherFor(uint32_t stride) const = 0;

  // ---- Sending ----

  // The doorbell of `qp` has been rung: its turns begin when the device has seen that and has the
  // first WQE.
  virtual void OnDoorbell(QueuePair& qp) = 0;
  // Whether `qp` may send a packet now.  If not, it is kept and gets a turn later.
  virtual bool MayTransmit(QueuePair& qp) = 0;
  // Packets of one turn.
  virtual uint32_t Budget() const = 0;
  // After a turn in which a queue pair may have sent nothing: the next of those that wait.
  virtual void EndTurn() = 0;
  // A packet of `bytes` from BTH on goes out, of which the device reads `gathered` from the host.
  // Returns when it is on its way to the wire.
  virtual Time Depart(QueuePair& qp, uint32_t bytes, uint32_t gathered) = 0;

  // ---- Receiving ----

  // PacketHandler::ReadyFor for a packet of `length` bytes to `qp`.
  virtual Time ReadyFor(QueuePair& qp, const InboundPacket& packet, uint32_t length, Time now,
                        bool first_offer) = 0;
  // `qp` has claimed `wqe`: when the device has it.
  virtual Time FetchReceiveWqe(QueuePair& qp, const ReceiveWqe& wqe) = 0;
  // Payload goes to the host, `pieces` to different places.
  virtual void Place(uint32_t bytes, uint32_t pieces) = 0;
  // A READ or an atomic has come in: when its first answer may be sent.
  virtual Time AnswersFrom() = 0;
  // `qp` gets a turn at `at`, unless it gets one before.
  virtual void WakeAt(QueuePair& qp, Time at) = 0;

  // ---- Completions ----

  // Writes a completion of `qp`, later, and counts it as visible then.
  virtual void Complete(QueuePair& qp, CompletionQueue& cq, const Completion& completion) = 0;
  // Everything that is on its way to the host arrives now: an object is about to go.
  virtual void Settle() = 0;
  // `qp` is about to be reset or destroyed.
  virtual void Forget(QueuePair& qp) = 0;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_TRANSPORT_DEVICE_TIMING_H_
