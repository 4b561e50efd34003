#ifndef SIMHCA_SIM_FABRIC_CONTROL_INBOX_H_
#define SIMHCA_SIM_FABRIC_CONTROL_INBOX_H_

#include <cstdint>

#include "sim/fabric/control.h"
#include "sim/fabric/layout.h"

namespace simhca {

// A member's side of its control mailbox.  Under the engine's lock.
class ControlInbox {
 public:
  explicit ControlInbox(ControlMailbox& mailbox) : mailbox_(mailbox) {}

  // Takes the request that waits; false if none does.  A request that makes no sense is answered
  // with EINVAL here: the mailbox is memory that others write.
  bool Take(ControlRequest* request);
  // Of the request last taken.  Goes nowhere if nobody waits for it any more.
  void Answer(const ControlReply& reply);

 private:
  ControlMailbox& mailbox_;
  uint32_t taken_ = 0;  // state of the mailbox since Take
};

}  // namespace simhca

#endif  // SIMHCA_SIM_FABRIC_CONTROL_INBOX_H_
