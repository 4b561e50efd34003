#ifndef SIMHCA_BENCH_MODEL_ENDPOINT_H_
#define SIMHCA_BENCH_MODEL_ENDPOINT_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "sim/device/hca.h"
#include "sim/queues/interrupt_handler.h"
#include "verbs_shim/driver/ring_memory.h"
#include "verbs_shim/driver/srq_free_list.h"

namespace simhca::bench {

// A program on one simulated device, reduced to its rings: it has one send CQ and one receive CQ,
// queue pairs that share an SRQ or have receive queues of their own, and one buffer.  Its calls
// take the CPU time that the profile gives them.
class Endpoint : private InterruptHandler {
 public:
  // What fits into the one block of a send WQE.
  static constexpr uint32_t kMostInline = mlx5::kSendBlockBytes - 16 - 4;

  struct Options {
    uint32_t qps = 1;
    bool srq = false;
    SrqListOrder list_order = SrqListOrder::kContiguous;
    uint32_t receives = 256;         // posted: on the SRQ, or on each queue pair
    uint32_t receive_entries = 512;  // of the ring they are posted to, a power of two
    uint32_t segments = 1;           // of each receive
    uint32_t sends = 128;            // that each send queue holds
    uint32_t message_bytes = 64;
    bool inline_sends = false;  // messages of at most kMostInline bytes go into the WQE
    uint8_t path_mtu = 3;       // code: 1 256 ... 5 4096
    uint8_t min_rnr_timer = 12;
    uint8_t rnr_retry = 7;
    uint8_t timeout = 14;
    uint8_t rd_atomic = 16;
    uint32_t watermark = 0;  // limit that is armed on the SRQ; 0: none
  };

  Endpoint(Hca& device, const Options& options);

  Hca& device() { return device_; }
  uint32_t qpn(uint32_t qp) const { return qps_[qp]->number; }
  // From RESET to RTS; returns 0 or the errno of the move that was refused.
  int Connect(uint32_t qp, const Endpoint& peer, uint32_t peer_qp);

  // The whole buffer; keys serve both ways.
  uint64_t address() const { return reinterpret_cast<uint64_t>(buffer_.data()); }
  uint32_t key() const { return key_; }

  // Posts `count` receives to the SRQ or to queue pair `qp`, with one doorbell record; fewer if
  // the ring is full.  Returns how many.
  uint32_t PostReceives(uint32_t qp, uint32_t count);
  // Posts `count` messages of queue pair `qp` with one doorbell; all ask for a completion.
  void PostSends(uint32_t qp, uint32_t count);
  void PostReads(uint32_t qp, uint32_t count, const Endpoint& from);

  struct Polled {
    bool error;
    uint32_t qp;  // index
    uint32_t bytes;
  };
  // The next completion, or false.  An entry of a receive is free again.
  bool PollSend(Polled* polled) { return Poll(send_cq_, polled); }
  bool PollReceive(Polled* polled) { return Poll(receive_cq_, polled); }

  // Arms the SRQ's limit.
  void ArmLimit(uint32_t limit);
  // Limit events since the last call.
  uint32_t TakeLimitEvents();

  // Receives that are posted and not yet polled.
  uint32_t posted() const { return posted_; }

 private:
  struct Cq {
    driver::RingMemory ring;
    driver::DoorbellRecordMemory record;
    uint32_t entries = 0;
    uint32_t number = 0;
    uint32_t index = 0;
    bool receives = false;
  };
  struct Srq {
    driver::RingMemory ring;
    driver::DoorbellRecordMemory record;
    std::unique_ptr<driver::SrqFreeList> free;
    uint32_t stride = 0;
    uint32_t number = 0;
    uint32_t posted = 0;
  };
  struct Qp {
    driver::RingMemory sends;
    driver::RingMemory receives;
    driver::DoorbellRecordMemory record;
    uint32_t number = 0;
    uint32_t send_index = 0;
    uint32_t receive_index = 0;
    uint32_t receive_outstanding = 0;
    Doorbell* doorbell = nullptr;
  };

  void OnInterrupt() override;
  void MakeCq(Cq* cq, uint32_t entries);
  void MakeSrq();
  void MakeQp();
  bool Poll(Cq& cq, Polled* polled);
  void WriteSegments(std::byte* at, uint32_t room) const;
  void Post(uint32_t qp, uint32_t count, mlx5::WqeOpcode opcode, const Endpoint* remote);
  void WriteWqe(Qp& qp, mlx5::WqeOpcode opcode, const Endpoint* remote) const;
  uint32_t send_blocks() const;
  uint32_t receive_stride() const;  // of a receive queue's entry

  Hca& device_;
  const Options options_;
  driver::RingMemory buffer_;
  driver::RingMemory event_ring_;
  uint32_t event_index_ = 0;
  uint32_t limit_events_ = 0;
  uint32_t context_ = 0;
  uint32_t pd_ = 0;
  uint32_t key_ = 0;
  uint32_t posted_ = 0;
  Cq send_cq_;
  Cq receive_cq_;
  Srq srq_;
  std::vector<std::unique_ptr<Qp>> qps_;
  uint32_t first_qpn_ = 0;
};

}  // namespace simhca::bench

#endif  // SIMHCA_BENCH_MODEL_ENDPOINT_H_
