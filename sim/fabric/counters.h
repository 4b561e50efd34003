#ifndef SIMHCA_SIM_FABRIC_COUNTERS_H_
#define SIMHCA_SIM_FABRIC_COUNTERS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace simhca {

// What every process counts of its devices, in the order in which they stand in shared memory.
enum class Counter : uint8_t {
  kPacketsSent,
  kPacketsReceived,
  kBytesSent,      // payload
  kBytesReceived,  // payload
  kSendsCompleted,
  kReceivesCompleted,
  kSrqWqesClaimed,
  kSrqLimitEvents,
  kRnrNaksSent,
  kRnrNaksReceived,
  kNaksSent,
  kNaksReceived,
  kDuplicates,       // requests received again
  kRetransmissions,  // times a requester went back
  kTimeouts,
  kDropped,  // packets for no queue pair, or one that does not receive; of a port that is down
  kAsyncEvents,
  kCompletionEvents,
  // What a faulty link did to arriving packets.
  kFaultsLost,
  kFaultsCorrupted,  // and dropped for their ICRC
  kFaultsDuplicated,
  kFaultsReordered,
  kCount,
};

inline constexpr std::array<std::string_view, static_cast<size_t>(Counter::kCount)> kCounterNames{
    "packets_sent",       "packets_received",   "bytes_sent",       "bytes_received",
    "sends_completed",    "receives_completed", "srq_wqes_claimed", "srq_limit_events",
    "rnr_naks_sent",      "rnr_naks_received",  "naks_sent",        "naks_received",
    "duplicate_requests", "retransmissions",    "ack_timeouts",     "packets_dropped",
    "async_events",       "completion_events",  "faults_lost",      "faults_corrupted",
    "faults_duplicated",  "faults_reordered",
};

// The counters of this process.  Others read them while we write, hence the relaxed stores.
class CounterSet {
 public:
  CounterSet() = default;
  explicit CounterSet(std::span<std::atomic<uint64_t>> values) : values_(values) {}

  void Add(Counter counter, uint64_t amount = 1) {
    std::atomic<uint64_t>& value = values_[static_cast<size_t>(counter)];
    value.store(value.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  uint64_t Get(Counter counter) const {
    return values_[static_cast<size_t>(counter)].load(std::memory_order_relaxed);
  }

 private:
  std::span<std::atomic<uint64_t>> values_;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_FABRIC_COUNTERS_H_
