#ifndef SIMHCA_SIM_TRANSPORT_QUEUE_PAIR_H_
#define SIMHCA_SIM_TRANSPORT_QUEUE_PAIR_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "sim/memory/region_table.h"
#include "sim/queues/completion_queue.h"
#include "sim/queues/event_ring.h"
#include "sim/queues/receive_queue.h"
#include "sim/queues/send_queue.h"
#include "sim/queues/shared_receive_queue.h"
#include "sim/transport/attributes.h"
#include "sim/transport/device_timing.h"
#include "sim/transport/services.h"
#include "sim/transport/state_table.h"
#include "sim/transport/transport_machine.h"

namespace simhca {

class Doorbell;

// A queue pair as the device holds it: state, attributes and queues.  What goes over the wire is
// its transport's matter, which reaches the queues and completions through this class.
class QueuePair final {
 public:
  struct Config {
    uint32_t qpn = 0;
    uint32_t pd = 0;
    uint32_t context = 0;
    QpType type = QpType::kRc;
    uint16_t port_index = 0;  // of the fabric
    CompletionQueue* send_cq = nullptr;
    CompletionQueue* receive_cq = nullptr;
    SharedReceiveQueue* srq = nullptr;  // null: the queue pair's own receive queue
    SendQueue send_queue;
    ReceiveQueue receive_queue;
    EventRing* events = nullptr;
    const RegionTable* regions = nullptr;
    Services* services = nullptr;
    DeviceTiming* timing = nullptr;  // null without a device model
    uint32_t clock_khz = 1'000'000;  // of completion timestamps
    uint32_t max_message_bytes = 1u << 30;
  };

  explicit QueuePair(const Config& config);
  ~QueuePair();

  const Config& config() const { return config_; }
  uint32_t qpn() const { return config_.qpn; }
  QpState state() const { return state_; }
  const QpAttributes& attributes() const { return attributes_; }
  Services& services() const { return *config_.services; }
  const RegionTable& regions() const { return *config_.regions; }
  SendQueue& send_queue() { return config_.send_queue; }
  Doorbell* doorbell() const { return doorbell_; }
  void set_doorbell(Doorbell* doorbell) { doorbell_ = doorbell; }

  // Applies a change that CheckModify has allowed.  A move to RESET may release a claimed WQE.
  void Modify(uint32_t mask, const QpAttributes& wanted, bool* released, uint16_t* released_index);
  bool Reset(uint16_t* released_index);

  // The device has failed: from now on nothing is sent, received or completed, whatever the state.
  void Halt();

  // Sends what the peer is owed for requests that were accepted; true if nothing is left.
  bool Answer() { return transport_->Answer(); }

  // Under a model: when the packet may be given to OnPacket, `now` for at once.
  Time ReadyFor(const InboundPacket& packet, uint32_t length, Time now, bool first_offer);
  // What the packet will need is taken before it is handled.
  Time Prepare(const InboundPacket& packet, Time now);
  void OnPacket(const InboundPacket& packet);
  Turn Run(uint32_t& budget);
  // Puts the queue pair on the list of those that get turns.
  void Activate() { services().active.Add(*this); }

  bool NextSendIsAlone() const { return transport_->NextSendIsAlone(); }
  // Null without a model.
  QueuePairTiming* timing() { return timing_.get(); }
  // On the list of those that get turns.
  bool active() const { return active_; }
  // A completion has reached the host.
  void Deliver(CompletionQueue* cq, const Completion& completion);

  // ---- For the transport ----

  // Port of the fabric that the address vector names; nullopt: no such port.
  std::optional<uint16_t> remote_port() const { return remote_port_; }

  // Protection domain that receive WQEs are checked against: the SRQ's, or the queue pair's.
  uint32_t receive_pd() const { return config_.srq ? config_.srq->pd() : config_.pd; }
  std::optional<ReceiveWqe> ClaimReceive();

  // A send WQE has completed: a CQE if it asked for one.  `byte_count` for READ.
  void CompleteSend(uint16_t block, mlx5::WqeOpcode opcode, uint32_t byte_count);
  void CompleteSendError(uint16_t block, mlx5::WqeOpcode opcode, mlx5::Syndrome syndrome);
  struct Received {
    mlx5::CqeOpcode opcode;
    uint16_t index;
    uint32_t byte_count;
    uint32_t immediate;
    bool solicited;
  };
  void CompleteReceive(const Received& received);
  void CompleteReceiveError(uint16_t index, mlx5::Syndrome syndrome);

  void RaiseEvent(mlx5::EventType type);

  // In SQD, all messages that were begun are complete: the event that was asked for follows, once
  // (IBTA vol 1, 11.6.3.1).
  void SendQueueDrained();

  // To ERR: everything outstanding is flushed, and with an SRQ the last-WQE event follows.
  void EnterError();

 private:
  friend class ActiveList;

  void SetAttributes(uint32_t mask, const QpAttributes& wanted);
  void FlushReceiveQueue();
  void Write(CompletionQueue* cq, Completion& completion);

  Config config_;
  QpState state_ = QpState::kReset;
  QpAttributes attributes_;
  std::optional<uint16_t> remote_port_;
  std::unique_ptr<TransportMachine> transport_;
  bool halted_ = false;
  std::optional<uint16_t> claimed_at_halt_;  // a receive WQE that Reset has to give back
  Doorbell* doorbell_ = nullptr;
  std::unique_ptr<QueuePairTiming> timing_;
  QueuePair* next_active_ = nullptr;
  bool active_ = false;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_TRANSPORT_QUEUE_PAIR_H_
