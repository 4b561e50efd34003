#ifndef SIMHCA_SIM_QUEUES_INTERRUPT_HANDLER_H_
#define SIMHCA_SIM_QUEUES_INTERRUPT_HANDLER_H_

namespace simhca {

// What the device calls when it has written an event queue entry; the kernel's interrupt handler
// on hardware.  Called under the engine's lock: it may consume entries, not call the device.
class InterruptHandler {
 public:
  virtual ~InterruptHandler() = default;
  virtual void OnInterrupt() = 0;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_QUEUES_INTERRUPT_HANDLER_H_
