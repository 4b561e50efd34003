#ifndef SIMHCA_SIM_TIMING_PCIE_LINK_H_
#define SIMHCA_SIM_TIMING_PCIE_LINK_H_

#include <cstdint>

#include "sim/timing/gap_timeline.h"
#include "sim/timing/server_pool.h"
#include "sim/timing/time.h"

namespace simhca {

// The PCIe link between device and host: two directions, each a resource of its own.  Sizes on the
// link are those of the pcie-bench model: a memory write or read request carries 24 bytes besides
// its payload (8 framing and link layer, 4 common header, 12 with a 64-bit address), a completion
// 20.  What ACKs and flow control take is in the rate.
//
// Times need not be passed in ascending order.  A transfer of n TLPs takes O(n); no allocation
// after construction.
class PcieLink {
 public:
  struct Config {
    uint64_t bits_per_second = 0;    // each direction, after the link layer
    uint32_t max_payload = 0;        // bytes of a write's or completion's TLP
    uint32_t max_read_request = 0;   // bytes that one read request asks for
    uint32_t outstanding_reads = 0;  // read requests in flight
    Duration read_latency = 0;       // request at the host until the completion's first byte
    Duration write_latency = 0;      // last byte sent until the CPU sees the write
    Duration doorbell_latency = 0;   // CPU's store until the device has seen it
  };

  struct Traffic {
    uint64_t tlps = 0;
    uint64_t bytes = 0;  // headers included
  };

  struct Counters {
    uint64_t reads = 0;          // calls, of any size
    uint64_t read_requests = 0;  // TLPs that they took
    uint64_t writes = 0;         // calls
    uint64_t doorbells = 0;
    Traffic upstream;    // device to host: writes and read requests
    Traffic downstream;  // host to device: completions
  };

  struct ReadTimes {
    Time head;  // the first bytes are on the device
    Time last;  // all are
  };

  static constexpr uint32_t kRequestOverhead = 24;     // of a write or a read request
  static constexpr uint32_t kCompletionOverhead = 20;  // of read data

  explicit PcieLink(const Config& config);

  // A posted write of `bytes` that the device has ready at `at`: when the CPU sees all of it.
  // Nothing of 0 bytes is sent: returns `at`.
  Time Write(Time at, uint32_t bytes);

  // A read of `bytes` that the device wants at `at`: when the last byte is on the device.  Nothing
  // of 0 bytes is sent: returns `at`.
  Time Read(Time at, uint32_t bytes) { return ReadWithHead(at, bytes, bytes).last; }

  // The same, and when the first `head_bytes` have come, for readers that go on with those.
  ReadTimes ReadWithHead(Time at, uint32_t bytes, uint32_t head_bytes);

  // What ReadWithHead takes on an idle link until the head is there.
  Duration IdleRead(uint32_t head_bytes) const {
    return request_time_ + config_.read_latency +
           TlpsTime(head_bytes, TlpsOf(head_bytes), kCompletionOverhead);
  }

  // A doorbell that the CPU writes at `at`.  It is counted, but takes no time of the link: a few
  // bytes that pass what is queued for the device.
  Time DoorbellArrives(Time at);

  const Counters& counters() const { return counters_; }
  Duration upstream_busy() const { return upstream_.busy(); }
  Duration downstream_busy() const { return downstream_.busy(); }

 private:
  // What `payload` bytes in `tlps` TLPs take of one direction.
  Duration TlpsTime(uint32_t payload, uint32_t tlps, uint32_t overhead) const {
    return TransferTime(uint64_t{payload} + uint64_t{tlps} * overhead, config_.bits_per_second);
  }
  uint32_t TlpsOf(uint32_t payload) const {
    return (payload + config_.max_payload - 1) / config_.max_payload;
  }
  static void Count(Traffic& traffic, uint32_t payload, uint32_t tlps, uint32_t overhead) {
    traffic.tlps += tlps;
    traffic.bytes += uint64_t{payload} + uint64_t{tlps} * overhead;
  }

  const Config config_;
  const Duration request_time_;  // one read request on the link
  // Requests take turns with writes: one waits for the TLP that is being sent, not for all that
  // are queued.
  const Duration longest_wait_;
  GapTimeline upstream_;
  GapTimeline downstream_;
  ServerPool requests_;
  Counters counters_;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_TIMING_PCIE_LINK_H_
