#include "sim/fabric/control_inbox.h"

#include <errno.h>
#include <string.h>

#include <algorithm>

namespace simhca {

bool ControlInbox::Take(ControlRequest* request) {
  uint32_t state = mailbox_.state.load(std::memory_order_acquire);
  if (StageOf(state) != ControlStage::kPosted) return false;
  // Each word is read once, before the client can give up and write the next request.
  const uint32_t kind = mailbox_.kind.load(std::memory_order_relaxed);
  const uint32_t port = mailbox_.port.load(std::memory_order_relaxed);
  const uint32_t number = mailbox_.number.load(std::memory_order_relaxed);
  taken_ = MakeControlState(SequenceOf(state), ControlStage::kTaken);
  if (!mailbox_.state.compare_exchange_strong(state, taken_)) return false;
  if (kind >= static_cast<uint32_t>(ControlKind::kCount) || port >= kMaxFabricPorts) {
    Answer({.status = EINVAL, .text = {}});
    return false;
  }
  *request = {static_cast<ControlKind>(kind), static_cast<uint16_t>(port), number};
  return true;
}

void ControlInbox::Answer(const ControlReply& reply) {
  const size_t bytes = std::min(reply.text.size(), kControlTextBytes);
  mailbox_.status.store(static_cast<uint32_t>(reply.status), std::memory_order_relaxed);
  mailbox_.count.store(reply.count, std::memory_order_relaxed);
  mailbox_.text_bytes.store(static_cast<uint32_t>(bytes), std::memory_order_relaxed);
  memcpy(mailbox_.text, reply.text.data(), bytes);
  mailbox_.state.compare_exchange_strong(
      taken_, MakeControlState(SequenceOf(taken_), ControlStage::kAnswered));
}

}  // namespace simhca
