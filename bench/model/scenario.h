#ifndef SIMHCA_BENCH_MODEL_SCENARIO_H_
#define SIMHCA_BENCH_MODEL_SCENARIO_H_

#include <cstdint>
#include <string>

#include "sim/profiles/profile.h"
#include "sim/timing/time.h"

namespace simhca::bench {

// One measurement of the receive path, to be made on the model.
struct Scenario {
  enum class Operation : uint8_t { kSend, kRead };

  DeviceProfile profile;   // of both sides
  Operation operation = Operation::kSend;
  // READs: the receiver makes as many from the senders, and its own alone count.
  bool both_ways = false;
  bool srq = false;
  SrqListOrder list_order = SrqListOrder::kContiguous;
  uint32_t senders = 1;            // devices; each has `qps` queue pairs to the one receiver
  uint32_t qps = 1;
  uint32_t path_mtu = 1024;        // bytes: 256, 512, 1024, 2048, 4096
  uint32_t message_bytes = 64;
  bool inline_sends = false;       // SENDs of at most Endpoint::kMostInline bytes: in the WQE
  uint32_t receives = 256;         // posted on the SRQ, or on each queue pair
  uint32_t receive_entries = 0;    // of the ring, a power of two; 0: twice `receives`, rounded up
  uint32_t segments = 1;           // of a receive
  uint32_t outstanding = 128;      // messages of each queue pair
  // Messages of each device, each of a queue pair drawn at random; 0: as many as its queue pairs
  // have.
  uint32_t window = 0;
  bool repeat = true;              // a completed message is followed by another
  uint32_t post_batch = 1;         // receives that are posted at a time
  uint32_t messages = 20'000;      // after the warm-up
  uint32_t warm_up = 2'000;
  uint32_t min_rnr_timer = 12;     // code
  uint32_t watermark = 0;          // limit; 0: none, receives are posted as they complete
  Duration refill_latency = 0;     // from the limit event until the program posts again
};

struct ScenarioResult {
  std::string error;        // why there is no result
  uint64_t messages = 0;    // measured
  Duration elapsed = 0;     // of virtual time, for those
  // One way, from the post until the completion shows: of the message measured last, which was
  // posted last if no others were under way with it.
  Duration latency = 0;
  // On the receiving device, per measured run.
  uint64_t dma_reads = 0;
  uint64_t dma_writes = 0;
  uint64_t tlps = 0;
  uint64_t cache_misses = 0;
  uint64_t rnr_naks = 0;
  uint64_t limit_events = 0;

  double messages_per_second() const {
    return elapsed > 0 ? static_cast<double>(messages) * 1e12 / static_cast<double>(elapsed) : 0;
  }
  double nanoseconds_per_message() const {
    return messages > 0 ? static_cast<double>(elapsed) / 1e3 / static_cast<double>(messages) : 0;
  }
  double gigabits_per_second(uint32_t message_bytes) const {
    return messages_per_second() * message_bytes * 8 / 1e9;
  }
};

// Runs the scenario from nothing.  A simulation that stands still, for 2 s of its time, says what
// it waits for.
ScenarioResult Run(const Scenario& scenario);

}  // namespace simhca::bench

#endif  // SIMHCA_BENCH_MODEL_SCENARIO_H_
