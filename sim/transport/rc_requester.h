#ifndef SIMHCA_SIM_TRANSPORT_RC_REQUESTER_H_
#define SIMHCA_SIM_TRANSPORT_RC_REQUESTER_H_

#include <cstdint>
#include <vector>

#include "sim/queues/send_queue.h"
#include "sim/timing/event_queue.h"
#include "sim/transport/transport_machine.h"

namespace simhca {

class QueuePair;

// The requester of a reliable connection: turns send WQEs into request packets, keeps them until
// they are acknowledged, goes back and sends again where the responder or a timer asks for it, and
// completes them in order (IBTA vol 1, 9.7).
class RcRequester {
 public:
  explicit RcRequester(QueuePair& qp);
  ~RcRequester();

  void Start();
  // Both counts begin anew from the queue pair's attributes.
  void RefillRetries();
  Turn Run(uint32_t& budget);
  void OnResponse(const InboundPacket& packet);
  void Flush();
  void Reset();

  // One WQE of one block has been posted and not read yet.
  bool NextSendIsAlone() const;
  // Every message that was begun is complete.
  bool idle() const { return oldest_ == end_; }

 private:
  // A message whose WQE has been read from the ring.
  struct Message {
    uint16_t block;  // of its WQE
    uint16_t blocks;
    mlx5::WqeOpcode opcode;
    uint8_t flags;
    mlx5::Syndrome failure;  // found before sending; 0 = none.  Reported once it is the oldest
    uint32_t first_psn;
    uint32_t packets;   // PSNs it takes
    uint32_t length;    // bytes
    uint32_t received;  // READ: response packets so far
    bool is_read() const { return opcode == mlx5::WqeOpcode::kRdmaRead; }
  };
  enum class Step : uint8_t { kSent, kNoRoom, kBlocked, kFailed };

  Message& At(uint32_t sequence) { return messages_[sequence & (messages_.size() - 1)]; }
  uint32_t LastPsn(const Message& message) const;
  uint32_t mtu() const;

  bool ReadNext();
  Step SendNext();
  Step SendRead(Message& message);
  Step SendPayload(Message& message);
  void WriteRequestHeaders(const Message& message, bool first, bool last, std::byte* at) const;
  bool FillPayload(Message& message, uint32_t bytes, std::byte* to);
  void LoadTransmitWqe();

  // Completes every message that a response to `psn` acknowledges.  False if a READ among them
  // still lacks its data: its responses were lost.
  bool AcknowledgeThrough(uint32_t psn);
  void CompleteOldest();
  void OnAck(uint32_t psn);
  void OnNak(uint32_t psn, uint8_t syndrome);
  void OnRnrNak(uint32_t psn, uint8_t syndrome);
  void OnReadResponse(const InboundPacket& packet);
  bool WasSent(uint32_t psn) const;
  void NoteProgress();

  // Goes back so that `psn` is the next to be sent.
  void RewindTo(uint32_t psn);
  void RewindToOldest();
  // Responses of the oldest message, a READ, were lost.
  void RepeatRead();
  // Whether the silence of a timeout may be the peer's standing still rather than a loss.
  bool PeerMayBeStopped();
  // Spends one of the retries; false if there was none and the oldest message has failed.
  bool SpendRetry();
  void FailOldest(mlx5::Syndrome syndrome);
  void ArmTimer();
  void OnTimeout(Time now);
  void OnRnrWaitOver(Time now);

  QueuePair& qp_;
  // Messages [oldest_, end_) have been read from the ring; [oldest_, transmit_) are sent.
  std::vector<Message> messages_;
  uint32_t oldest_ = 0;
  uint32_t transmit_ = 0;
  uint32_t end_ = 0;
  uint32_t transmit_packet_ = 0;     // packets of message transmit_ that are sent
  uint16_t next_block_ = 0;          // of the WQE after end_
  uint32_t next_psn_ = 0;            // of that WQE
  uint32_t sent_psn_ = 0;            // after the furthest packet ever sent
  uint32_t unacknowledged_psn_ = 0;  // oldest PSN nobody has answered for
  uint32_t outstanding_reads_ = 0;

  SendWqe wqe_;  // of message transmit_, with its gather position, if wqe_loaded_
  bool wqe_loaded_ = false;
  WqeScratch transmit_scratch_;
  SendWqe read_wqe_;  // of the oldest message, a READ, if read_loaded_
  bool read_loaded_ = false;
  WqeScratch read_scratch_;

  bool read_repeating_ = false;  // responses were lost, and have been asked for again

  uint8_t retries_left_ = 0;
  uint8_t rnr_retries_left_ = 0;
  bool rnr_waiting_ = false;
  bool no_room_ = false;  // in the link, for the next packet
  // The peer as it was at the last timeout, if there has been one since the last progress.
  bool peer_watched_ = false;
  bool peer_ran_ = false;  // through the whole timeout before, without an answer
  uint64_t peer_heartbeat_ = 0;
  uint64_t peer_committed_ = 0;
  Time last_progress_ = 0;
  Timer ack_timer_;
  Timer rnr_timer_;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_TRANSPORT_RC_REQUESTER_H_
