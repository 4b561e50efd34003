#ifndef SIMHCA_SIM_DEVICE_DEVICE_MODEL_H_
#define SIMHCA_SIM_DEVICE_DEVICE_MODEL_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "sim/profiles/profile.h"
#include "sim/queues/event_ring.h"
#include "sim/queues/shared_receive_queue.h"
#include "sim/timing/context_cache.h"
#include "sim/timing/event_queue.h"
#include "sim/timing/pcie_link.h"
#include "sim/timing/server_pool.h"
#include "sim/timing/split_mix.h"
#include "sim/timing/time.h"
#include "sim/timing/timeline.h"
#include "sim/transport/device_timing.h"
#include "sim/transport/services.h"

namespace simhca {

// What the model has counted on one device, ever.
struct DeviceModelStats {
  uint64_t dma_reads = 0;   // host reads: WQEs, payload, contexts
  uint64_t dma_writes = 0;  // payload, completions, events
  uint64_t tlps = 0;        // both directions
  uint64_t cache_hits = 0;
  uint64_t cache_misses = 0;
};

// The wire behind the port of a device.
inline LinkModel WireOf(const DeviceProfile::Costs& costs) {
  return {.bits_per_second = costs.wire_bits_per_second,
          .propagation = costs.wire_propagation,
          .overhead_bytes = costs.wire_overhead_bytes};
}

// The cycle-approximate model of one HCA: resources with a timeline, driven by the costs of its
// profile alone.
//
// Sending: a doorbell takes its time to the device, the first WQE of an idle queue is read unless
// it came with the doorbell (BlueFlame).  One packet is sent at a time, each of a queue pair drawn
// at random among those that wait for a turn, which is how packets of different queue pairs come
// to interleave.  The payload of a queue at work is read ahead, so only the PCIe bandwidth delays
// it.
//
// Receiving: packets enter one after the other, each for as long as it was on the wire.  Contexts
// that the chip does not hold are read from the host.  A message waits for its receive WQE, and so
// do later packets of its queue pair, while those of others go on.  Payload, completions and events
// follow each other over PCIe.
class DeviceModel final : public DeviceTiming, public EventPath {
 public:
  // All outlive the model.
  DeviceModel(const DeviceProfile& profile, uint16_t port, Services& services);
  ~DeviceModel() override;

  DeviceModelStats stats() const;
  // Lists this device among services.delivered at its next completion.
  void AnnounceDelivery() { announces_delivery_ = true; }

  // DeviceTiming:
  ReceiveFetcher::Config FetcherFor(uint32_t stride) const override {
    return {.prefetch = costs_.receive_prefetch, .wqe_bytes = std::max(16u, stride)};
  }
  void OnDoorbell(QueuePair& qp) override;
  bool MayTransmit(QueuePair& qp) override;
  void EndTurn() override;
  uint32_t Budget() const override;
  Time Depart(QueuePair& qp, uint32_t bytes, uint32_t gathered) override;
  Time ReadyFor(QueuePair& qp, const InboundPacket& packet, uint32_t length, Time now,
                bool first_offer) override;
  Time FetchReceiveWqe(QueuePair& qp, const ReceiveWqe& wqe) override;
  void Place(uint32_t bytes, uint32_t pieces) override;
  Time AnswersFrom() override { return services_.Now() + costs_.pcie_read_latency; }
  void WakeAt(QueuePair& qp, Time at) override;
  void Complete(QueuePair& qp, CompletionQueue& cq, const Completion& completion) override;
  void Settle() override;
  void Forget(QueuePair& qp) override;

  // EventPath:
  void Carry(EventRing& ring, const mlx5::Eqe& event) override;

 private:
  struct PendingCompletion {
    Time visible;
    QueuePair* qp;
    CompletionQueue* cq;
    Completion completion;
  };
  struct PendingEvent {
    Time visible;
    EventRing* ring;
    mlx5::Eqe event;
  };

  void NameTracks();
  void Trace(uint32_t track, std::string_view name, Time start, Time end);
  void TraceFill(const SharedReceiveQueue& srq);
  // When the context of `qp` is on the chip.  One that is on its way is not read again.
  Time LoadQp(QueuePair& qp, Time at);
  // When the contexts that `qp` needs to receive are on the chip.
  Time LoadContexts(QueuePair& qp, Time at);
  void OnTransmitterFree(Time now);
  static void Stamp(PendingCompletion* pending, Time when);
  void DeliverCompletions(Time now);
  void PublishEvents(Time now);

  const uint16_t port_;
  bool announces_delivery_ = true;
  const DeviceProfile::Costs& costs_;
  const LinkModel wire_;
  Services& services_;
  PcieLink pcie_;
  MissUnit misses_;
  ContextCache qp_cache_;
  ContextCache cq_cache_;
  ContextCache srq_cache_;
  ContextCache active_wqes_;  // of SRQs: by queue pair, whose message in progress has it
  Timeline transmitter_;
  Timeline receiver_;

  std::vector<QueuePair*> waiting_;  // for a turn to send
  QueuePair* turn_of_ = nullptr;     // drawn from them, and not finished
  Timer transmitter_free_;
  SplitMix random_;

  std::deque<PendingCompletion> completions_;  // in order of time
  Timer next_completion_;
  std::deque<PendingEvent> events_;  // in order of time
  Timer next_event_;

  std::array<Time, 6> traced_until_{};  // by track
};

}  // namespace simhca

#endif  // SIMHCA_SIM_DEVICE_DEVICE_MODEL_H_
