#ifndef SIMHCA_SIM_TRANSPORT_RC_TRANSPORT_H_
#define SIMHCA_SIM_TRANSPORT_RC_TRANSPORT_H_

#include "sim/transport/rc_requester.h"
#include "sim/transport/rc_responder.h"
#include "sim/transport/transport_machine.h"

namespace simhca {

// Reliable connection: a requester and a responder that share nothing but the queue pair.
class RcTransport final : public TransportMachine {
 public:
  explicit RcTransport(QueuePair& qp) : qp_(qp), requester_(qp), responder_(qp) {}

  void StartReceiving() override { responder_.Start(); }
  void StartSending() override { requester_.Start(); }
  void RetriesChanged() override { requester_.RefillRetries(); }
  Time Prepare(const InboundPacket& packet, Time now) override;
  void OnPacket(const InboundPacket& packet) override;
  bool NextSendIsAlone() const override { return requester_.NextSendIsAlone(); }
  Turn Run(uint32_t& budget) override;
  bool Answer() override;
  void Flush() override;
  bool Reset(uint16_t* released) override;

 private:
  bool IsOurs(const InboundPacket& packet) const;

  QueuePair& qp_;
  RcRequester requester_;
  RcResponder responder_;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_TRANSPORT_RC_TRANSPORT_H_
