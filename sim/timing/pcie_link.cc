#include "sim/timing/pcie_link.h"

#include <algorithm>

namespace simhca {

PcieLink::PcieLink(const Config& config)
    : config_(config),
      request_time_(TransferTime(kRequestOverhead, config.bits_per_second)),
      longest_wait_(request_time_ +
                    TransferTime(config.max_payload + kRequestOverhead, config.bits_per_second)),
      upstream_(request_time_),
      downstream_(TransferTime(kCompletionOverhead, config.bits_per_second)),
      requests_(config.outstanding_reads) {}

Time PcieLink::Write(Time at, uint32_t bytes) {
  if (bytes == 0) return at;
  const uint32_t tlps = TlpsOf(bytes);
  ++counters_.writes;
  Count(counters_.upstream, bytes, tlps, kRequestOverhead);
  return upstream_.Reserve(at, TlpsTime(bytes, tlps, kRequestOverhead)) + config_.write_latency;
}

PcieLink::ReadTimes PcieLink::ReadWithHead(Time at, uint32_t bytes, uint32_t head_bytes) {
  if (bytes == 0) return {at, at};
  ++counters_.reads;
  ReadTimes times = {kNever, at};
  uint32_t asked = 0;
  while (asked < bytes) {
    const uint32_t size = std::min(bytes - asked, config_.max_read_request);
    const uint32_t completions = TlpsOf(size);
    ++counters_.read_requests;
    Count(counters_.upstream, 0, 1, kRequestOverhead);
    Count(counters_.downstream, size, completions, kCompletionOverhead);
    const Time wanted = requests_.Take(at);
    const Time sent = std::min(upstream_.Reserve(wanted, request_time_), wanted + longest_wait_);
    const Duration service = TlpsTime(size, completions, kCompletionOverhead);
    const Time done = downstream_.Reserve(sent + config_.read_latency, service);
    requests_.Release(done);
    if (asked < head_bytes && head_bytes <= asked + size) {
      const uint32_t part = head_bytes - asked;
      times.head = done - service + TlpsTime(part, TlpsOf(part), kCompletionOverhead);
    }
    // Completions of different requests may overtake each other where there was room.
    times.last = std::max(times.last, done);
    asked += size;
  }
  times.head = std::min(times.head, times.last);
  return times;
}

Time PcieLink::DoorbellArrives(Time at) {
  ++counters_.doorbells;
  return at + config_.doorbell_latency;
}

}  // namespace simhca
