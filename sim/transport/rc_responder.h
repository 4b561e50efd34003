#ifndef SIMHCA_SIM_TRANSPORT_RC_RESPONDER_H_
#define SIMHCA_SIM_TRANSPORT_RC_RESPONDER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/queues/receive_wqe.h"
#include "sim/transport/transport_machine.h"

namespace simhca {

class QueuePair;

// The responder of a reliable connection: checks each request packet's PSN, order and rights,
// places its data, completes receives, and answers in order with READ responses, one ACK for all
// that a batch of packets asked for, or a NAK (IBTA vol 1, 9.7.4 and 9.9).
class RcResponder {
 public:
  explicit RcResponder(QueuePair& qp) : qp_(qp) {}

  void Start();
  void OnRequest(const InboundPacket& packet);
  // Claims the receive WQE that the packet will take, before it is handled.  Returns when the
  // device has it; `now` if it takes none, or there is none.
  Time Prepare(const InboundPacket& packet, Time now);
  // Sends the answers that are due.
  // `at_once`: also answers that the device has not ready yet.
  Turn Run(uint32_t& budget, bool at_once = false);
  bool owes_answers() const { return answer_.has_value() || !reads_.empty(); }
  void Flush();
  bool Reset(uint16_t* released);

 private:
  enum class Open : uint8_t { kNothing, kSend, kWrite };  // the message under way

  // A READ whose data are being sent, or have been and may be asked for again.
  struct Read {
    uint32_t first_psn;
    uint32_t packets;
    uint64_t address;
    uint32_t rkey;
    uint32_t length;
    uint32_t sent;  // packets
    uint32_t msn;
    bool repeated;  // asked for again
    Time ready;     // no response is sent before
  };
  struct Answer {
    uint32_t psn;
    uint8_t syndrome;
  };

  uint32_t mtu() const;
  bool FitsOpenMessage(Operation operation) const;
  bool LengthIsRight(const InboundPacket& packet, Operation operation) const;

  void OnDuplicate(const InboundPacket& packet);
  void OnSend(const InboundPacket& packet, Operation operation);
  void OnWrite(const InboundPacket& packet, Operation operation);
  void OnRead(const InboundPacket& packet);
  bool AcceptsWrites(const Reth& reth) const;
  bool RegionTakes(const Reth& reth) const;
  bool OpenWrite(const Reth& reth);
  bool PlaceWrite(const InboundPacket& packet);
  bool TakesWqe(const InboundPacket& packet) const;
  bool ClaimWqe(const InboundPacket& packet);
  void Accept(const InboundPacket& packet, uint32_t psns, bool message_done);
  void CompleteReceive(const InboundPacket& packet, Operation operation, mlx5::CqeOpcode opcode,
                       uint32_t bytes);

  bool RightsFor(uint32_t access) const;
  // The requester is told, a claimed WQE completes with `receive_status` if given, the QP goes to
  // ERR and, where the program could not know otherwise, an event says so.
  void Fail(uint32_t psn, uint8_t nak, std::optional<mlx5::Syndrome> receive_status,
            std::optional<mlx5::EventType> event);
  void FailInvalidRequest(uint32_t psn);
  void FailRemoteAccess(uint32_t psn);
  bool HasRoomForRead();

  bool SendReadPacket(Read& read, bool* no_room);
  bool SendAnswer(bool* no_room);

  QueuePair& qp_;
  uint32_t expected_psn_ = 0;
  uint32_t msn_ = 0;
  // A NAK is out, packets ahead of the expected one are dropped until that one comes.
  bool resend_requested_ = false;
  bool communication_established_ = false;

  Open open_ = Open::kNothing;
  std::optional<ReceiveWqe> wqe_;
  uint64_t received_ = 0;  // bytes of the open message
  uint64_t capacity_ = 0;  // bytes that the claimed WQE holds
  uint64_t write_address_ = 0;
  uint32_t write_rkey_ = 0;
  uint64_t write_length_ = 0;

  std::vector<Read> reads_;       // to be answered, oldest first; few, so plain vectors do
  std::vector<Read> history_;     // accepted, newest last, at most max_dest_rd_atomic
  std::optional<Answer> answer_;  // after the READs
};

}  // namespace simhca

#endif  // SIMHCA_SIM_TRANSPORT_RC_RESPONDER_H_
