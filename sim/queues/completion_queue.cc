#include "sim/queues/completion_queue.h"

#include <atomic>
#include <cerrno>
#include <cstring>

namespace simhca {

namespace {
constexpr uint32_t kIndexMask = 0xffffff;  // the doorbell record keeps 24 bits

bool IsError(mlx5::CqeOpcode opcode) {
  return opcode == mlx5::CqeOpcode::kRequesterError || opcode == mlx5::CqeOpcode::kResponderError;
}
}  // namespace

CompletionQueue::CompletionQueue(uint32_t cqn, const Memory& memory, EventRing* events,
                                 bool timestamps, uint32_t* armed_queues)
    : cqn_(cqn),
      ring_(reinterpret_cast<mlx5::Cqe*>(memory.ring)),
      entries_(memory.entries),
      consumer_(memory.doorbell_record, mlx5::kConsumerRecord),
      events_(events),
      armed_queues_(armed_queues),
      room_until_(memory.entries),
      timestamps_(timestamps) {}

uint32_t CompletionQueue::Unconsumed() const { return (producer_ - consumer_.Load()) & kIndexMask; }

bool CompletionQueue::Write(const Completion& completion) {
  if (overrun_) return false;
  if (producer_ == room_until_) {
    // The consumer index is host memory: read it only when the entries known to be free are used.
    const uint32_t used = Unconsumed();
    if (used >= entries_) {
      overrun_ = true;
      Disarm();
      events_->PushCqError(cqn_);
      return false;
    }
    room_until_ = producer_ + (entries_ - used);
  }
  mlx5::Cqe& cqe = Entry(producer_);
  Fill(cqe, completion);
  const uint8_t owner = mlx5::Cqe::OwnerBit(producer_, entries_);
  std::atomic_ref<uint8_t>(cqe.opcode_owner)
      .store(mlx5::Cqe::OpcodeOwner(completion.opcode, completion.solicited, owner),
             std::memory_order_release);
  ++producer_;
  if (arm_ == Arm::kAny ||
      (arm_ == Arm::kSolicited && (completion.solicited || IsError(completion.opcode)))) {
    Disarm();
    events_->PushCompletion(cqn_);
  }
  return true;
}

void CompletionQueue::Fill(mlx5::Cqe& cqe, const Completion& completion) const {
  cqe.srqn = completion.srqn;
  cqe.immediate = completion.immediate;
  cqe.byte_count = completion.byte_count;
  cqe.flags_rqpn = completion.flags_rqpn;
  cqe.timestamp = completion.timestamp;
  cqe.sop_qpn = uint32_t{completion.send_opcode} << 24 | completion.qpn;
  cqe.wqe_counter = completion.wqe_counter;
  cqe.signature = 0;
  if (IsError(completion.opcode)) {
    auto& error = reinterpret_cast<mlx5::ErrorCqe&>(cqe);
    error.vendor_syndrome = static_cast<uint8_t>(completion.syndrome);
    error.syndrome = completion.syndrome;
  }
}

void CompletionQueue::ArmFor(bool solicited_only) {
  if (overrun_) return;
  if (arm_ == Arm::kNone) ++*armed_queues_;
  if (arm_ != Arm::kAny) arm_ = solicited_only ? Arm::kSolicited : Arm::kAny;
}

int CompletionQueue::Resize(std::byte* ring, uint32_t entries) {
  const uint32_t used = Unconsumed();
  if (used > entries) return EINVAL;
  auto* target = reinterpret_cast<mlx5::Cqe*>(ring);
  // Entries the new ring has not been given keep the opcode that means "the device's".
  for (uint32_t index = producer_ - used; index != producer_; ++index) {
    mlx5::Cqe& cqe = target[index & (entries - 1)];
    cqe = Entry(index);
    cqe.opcode_owner =
        static_cast<uint8_t>((cqe.opcode_owner & ~1u) | mlx5::Cqe::OwnerBit(index, entries));
  }
  ring_ = target;
  entries_ = entries;
  room_until_ = producer_ + (entries - used);
  return 0;
}

}  // namespace simhca
