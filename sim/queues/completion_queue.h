#ifndef SIMHCA_SIM_QUEUES_COMPLETION_QUEUE_H_
#define SIMHCA_SIM_QUEUES_COMPLETION_QUEUE_H_

#include <cstddef>
#include <cstdint>

#include "sim/queues/doorbell_record.h"
#include "sim/queues/event_ring.h"
#include "sim/queues/mlx5/layout.h"

namespace simhca {

// What a completion says; the queue turns it into a CQE.
struct Completion {
  mlx5::CqeOpcode opcode = mlx5::CqeOpcode::kRequester;
  mlx5::Syndrome syndrome{};  // with an error opcode
  uint8_t send_opcode = 0;
  bool solicited = false;
  uint16_t wqe_counter = 0;
  uint32_t qpn = 0;
  uint32_t srqn = 0;
  uint32_t byte_count = 0;
  uint32_t immediate = 0;  // as it stood in the packet
  uint32_t flags_rqpn = 0;
  uint64_t timestamp = 0;  // device clock ticks
};

// The device's side of a completion queue.
class CompletionQueue {
 public:
  struct Memory {
    std::byte* ring;
    uint32_t entries;  // a power of two
    std::byte* doorbell_record;
  };

  // `armed_queues` counts the armed queues of the process: while there are any, peers must wake it.
  CompletionQueue(uint32_t cqn, const Memory& memory, EventRing* events, bool timestamps,
                  uint32_t* armed_queues);
  ~CompletionQueue() { Disarm(); }
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  uint32_t number() const { return cqn_; }
  bool timestamps() const { return timestamps_; }
  bool armed() const { return arm_ != Arm::kNone; }

  // Writes the CQE and, if the queue is armed for it, a completion event.  Without a free entry:
  // one CQ error event, and the queue takes nothing more (man ibv_create_cq, ibv_get_async_event);
  // returns false.
  bool Write(const Completion& completion);

  // The next completion that qualifies raises one event.  Arming for any completion beats arming
  // for solicited ones (man ibv_req_notify_cq).
  void ArmFor(bool solicited_only);

  // Moves the entries not yet consumed to another ring.  EINVAL if they do not fit.
  int Resize(std::byte* ring, uint32_t entries);

  void AddUser() { ++users_; }
  void RemoveUser() { --users_; }
  uint32_t users() const { return users_; }

 private:
  enum class Arm : uint8_t { kNone, kSolicited, kAny };

  mlx5::Cqe& Entry(uint32_t index) { return ring_[index & (entries_ - 1)]; }
  uint32_t Unconsumed() const;
  void Disarm() {
    if (arm_ != Arm::kNone) --*armed_queues_;
    arm_ = Arm::kNone;
  }
  void Fill(mlx5::Cqe& cqe, const Completion& completion) const;

  const uint32_t cqn_;
  mlx5::Cqe* ring_;
  uint32_t entries_;
  DoorbellRecord consumer_;
  EventRing* events_;
  uint32_t* armed_queues_;
  uint32_t producer_ = 0;
  uint32_t room_until_ = 0;  // producer index up to which there is room for sure
  uint32_t users_ = 0;
  Arm arm_ = Arm::kNone;
  bool overrun_ = false;
  const bool timestamps_;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_QUEUES_COMPLETION_QUEUE_H_
