#ifndef SIMHCA_SIM_DEVICE_HCA_H_
#define SIMHCA_SIM_DEVICE_HCA_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "sim/device/device.h"
#include "sim/device/device_model.h"
#include "sim/device/object_table.h"
#include "sim/device/progress.h"
#include "sim/fabric/control.h"
#include "sim/memory/region_table.h"
#include "sim/queues/completion_queue.h"
#include "sim/queues/event_ring.h"
#include "sim/queues/shared_receive_queue.h"
#include "sim/transport/queue_pair.h"

namespace simhca {

// One simulated HCA with one port: the tables of its objects and the commands that change them.
// See device.h for what each command means.
class Hca final : public Device {
 public:
  Hca(const DeviceProfile& profile, uint16_t port_index, Progress& progress);
  ~Hca() override;

  const DeviceProfile& profile() const override { return profile_; }
  uint16_t port_index() const override { return port_index_; }
  bool virtual_time() const override { return progress_.virtual_time(); }

  int QueryPort(bool* up) override;
  bool failed() const override { return failed_.load(std::memory_order_relaxed); }

  int OpenContext(const OpenContextCommand& command, uint32_t* context) override;
  void CloseContext(uint32_t context) override;
  int AllocPd(uint32_t context, uint32_t* pd) override;
  int DeallocPd(uint32_t pd) override;
  int RegisterRegion(const RegisterRegionCommand& command, uint32_t* key) override;
  int DeregisterRegion(uint32_t key) override;
  int CreateCq(const CreateCqCommand& command, uint32_t* cqn) override;
  int ResizeCq(uint32_t cqn, std::byte* ring, uint32_t entries) override;
  int DestroyCq(uint32_t cqn) override;
  int CreateSrq(const CreateSrqCommand& command, uint32_t* srqn) override;
  int ModifySrq(const ModifySrqCommand& command) override;
  int QuerySrqLimit(uint32_t srqn, uint32_t* limit) override;
  int DestroySrq(uint32_t srqn) override;
  int CreateQp(const CreateQpCommand& command, CreateQpReply* reply) override;
  int ModifyQp(const ModifyQpCommand& command, ReleasedWqe* released) override;
  int QueryQp(uint32_t qpn, QpAttributes* attributes) override;
  int DestroyQp(uint32_t qpn, ReleasedWqe* released) override;

  void RingSendDoorbell(Doorbell* doorbell) override {
    progress_.Ring(*doorbell, profile_.costs.cpu_post_send);
  }
  void ArmCq(uint32_t cqn, uint32_t word) override;
  void Poll() override { progress_.Poll(); }
  void NoteProductive(Call call) override {
    progress_.NoteProductive(call == Call::kPoll ? profile_.costs.cpu_poll
                                                 : profile_.costs.cpu_post_receive);
  }
  void PrepareToSleep() override { progress_.ExpectSleep(); }
  Time Now() override { return progress_.Now(); }

  // What the model has counted; null without one.
  DeviceModel* model() const { return model_.get(); }

  // ---- Control, in hca_control.cc.  Under the engine's lock. ----

  // Does what a control client asks of this device; the number of its port has been looked at.
  ControlReply Control(const ControlRequest& request);
  // Takes over the state of the port from the fabric, with the event that belongs to a change.
  // Returns how many contexts were told.
  uint32_t FollowPort();

 private:
  struct Context {
    EventRing events;
  };
  struct Pd {
    uint32_t context;
    uint32_t users = 0;
  };
  template <typename T>
  struct Owned {
    template <typename... Args>
    explicit Owned(uint32_t owner, Args&&... args)
        : context(owner), object(std::forward<Args>(args)...) {}
    uint32_t context;
    T object;
  };
  using Cq = Owned<CompletionQueue>;
  using Srq = Owned<SharedReceiveQueue>;

  // The objects that a CreateQp names, or an error.
  int ResolveQp(const CreateQpCommand& command, QueuePair::Config* config);
  ModifyLimits Limits() const;
  void ReleaseQp(const QueuePair& qp);
  // What is on its way to the host arrives: an object that it concerns is about to go.
  void Settle();

  // Each returns how many contexts, queue pairs or SRQs it concerned.
  template <typename Push>
  uint32_t TellContexts(Push push);
  uint32_t Fail();
  int FailQp(QueuePair& qp);
  int FailSrq(Srq& srq);
  ControlReply Act(const ControlRequest& request);
  ControlReply ControlQps(const ControlRequest& request);
  ControlReply List(uint32_t skip);

  const DeviceProfile profile_;
  const uint16_t port_index_;
  Progress& progress_;
  std::unique_ptr<DeviceModel> model_;  // null without one: under the wall clock
  // After a fatal error, until all contexts are closed: a device that is opened anew was reset.
  std::atomic<bool> failed_{false};

  ObjectTable<Context> contexts_;
  ObjectTable<Pd> pds_;
  RegionTable regions_;
  ObjectTable<Cq> cqs_;
  ObjectTable<Srq> srqs_;
  ObjectTable<QueuePair> qps_;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_DEVICE_HCA_H_
