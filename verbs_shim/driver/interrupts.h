#ifndef SIMHCA_VERBS_SHIM_DRIVER_INTERRUPTS_H_
#define SIMHCA_VERBS_SHIM_DRIVER_INTERRUPTS_H_

#include <cstdint>

#include "sim/device/device.h"
#include "sim/queues/mlx5/layout.h"
#include "verbs_shim/driver/ring_memory.h"

namespace simhca::driver {

struct Context;

// The consumer of a context's event queue; what the kernel's interrupt handler is on hardware.
// Completion events go to their CQ's channel, all others to the context's async_fd.
class Interrupts final : public InterruptHandler {
 public:
  explicit Interrupts(Context* context);

  // Under the engine's lock, which also guards this object.
  void OnInterrupt() override;

  std::byte* ring() const { return ring_.data(); }
  static constexpr uint32_t kEntries = 256;

 private:
  void Deliver(const mlx5::Eqe& eqe);
  void DeliverCompletion(uint32_t cqn);
  void DeliverToCq(const mlx5::Eqe& eqe, uint32_t cqn);
  void DeliverToQp(const mlx5::Eqe& eqe, uint32_t qpn);
  void DeliverToSrq(const mlx5::Eqe& eqe, uint32_t srqn);

  Context* const context_;
  RingMemory ring_;
  uint32_t consumer_ = 0;
};

}  // namespace simhca::driver

#endif  // SIMHCA_VERBS_SHIM_DRIVER_INTERRUPTS_H_
