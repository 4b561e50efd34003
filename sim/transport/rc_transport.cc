#include "sim/transport/rc_transport.h"

#include "sim/transport/queue_pair.h"

namespace simhca {

bool RcTransport::IsOurs(const InboundPacket& packet) const {
  return TransportOf(packet.bth.opcode) == Transport::kRc &&
         qp_.remote_port() == packet.address.source_port;
}

Time RcTransport::Prepare(const InboundPacket& packet, Time now) {
  if (!IsOurs(packet) || IsResponse(OperationOf(packet.bth.opcode))) return now;
  return responder_.Prepare(packet, now);
}

void RcTransport::OnPacket(const InboundPacket& packet) {
  if (!IsOurs(packet)) {
    qp_.services().counters.Add(Counter::kDropped);
    return;
  }
  if (IsResponse(OperationOf(packet.bth.opcode))) {
    if (qp_.state() != QpState::kRtr) requester_.OnResponse(packet);
  } else {
    responder_.OnRequest(packet);
  }
}

Turn RcTransport::Run(uint32_t& budget) {
  const Turn answers = responder_.Run(budget);
  if (qp_.state() != QpState::kRts && qp_.state() != QpState::kSqd) return answers;
  const Turn requests = requester_.Run(budget);
  if (qp_.state() == QpState::kSqd && requester_.idle()) qp_.SendQueueDrained();
  return answers > requests ? answers : requests;
}

bool RcTransport::Answer() {
  uint32_t budget = UINT32_MAX;
  responder_.Run(budget, /*at_once=*/true);
  return !responder_.owes_answers();
}

void RcTransport::Flush() {
  requester_.Flush();
  responder_.Flush();
}

bool RcTransport::Reset(uint16_t* released) {
  requester_.Reset();
  return responder_.Reset(released);
}

}  // namespace simhca
