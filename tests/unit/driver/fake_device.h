#ifndef SIMHCA_TESTS_UNIT_DRIVER_FAKE_DEVICE_H_
#define SIMHCA_TESTS_UNIT_DRIVER_FAKE_DEVICE_H_

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "sim/device/device.h"
#include "sim/device/engine.h"
#include "sim/queues/mlx5/layout.h"

namespace simhca {

// A device that accepts every command and remembers it, and into whose rings a test looks and
// writes.  Linking it puts it behind Engine::Start: each simhcaN of the process is one.
class FakeDevice final : public Device {
 public:
  // The device behind simhca<index>; null before the first open.
  static FakeDevice* At(size_t index);
  static int starts();  // engines started by this process

  // Has atomics, whatever the profile says: the driver is ready for them.
  FakeDevice(const DeviceProfile& profile, uint16_t port)
      : profile_(WithAtomics(profile)), port_(port) {}

  // ---- What the driver has said ----
  OpenContextCommand open_context{};
  std::map<uint32_t, RegisterRegionCommand> regions;
  std::map<uint32_t, CreateCqCommand> cqs;
  std::map<uint32_t, CreateSrqCommand> srqs;
  std::map<uint32_t, CreateQpCommand> qps;
  std::vector<ModifySrqCommand> srq_changes;
  std::vector<ModifyQpCommand> qp_changes;
  std::vector<uint32_t> arm_words;
  std::atomic<int> doorbells{0};
  std::atomic<int> polls{0};
  std::atomic<int> productive{0};
  std::atomic<int> sleeps{0};

  // ---- What the test wants ----
  int next_error = 0;    // answer of the next command
  ReleasedWqe released;  // answer of the next reset or destruction of a QP
  bool virtual_clock = false;
  bool port_up = true;
  bool fatal = false;
  uint32_t srq_limit = 0;
  Time now = 0;
  std::function<void()> on_poll;  // runs inside Poll

  // Writes a completion as the device would: at its producer index, owner byte last.
  void WriteCqe(uint32_t cqn, mlx5::Cqe cqe, mlx5::CqeOpcode opcode);
  void WriteErrorCqe(uint32_t cqn, mlx5::Cqe cqe, mlx5::CqeOpcode opcode, mlx5::Syndrome syndrome);
  void RaiseCompletionEvent(uint32_t cqn);
  void RaiseEvent(mlx5::EventType type, uint32_t number);
  void RaisePortEvent(uint8_t sub_type, uint8_t port);

  // Big-endian word of a doorbell record.
  static uint32_t Record(const std::byte* record, int word);

  // ---- Device ----
  const DeviceProfile& profile() const override { return profile_; }
  uint16_t port_index() const override { return port_; }
  bool virtual_time() const override { return virtual_clock; }
  int QueryPort(bool* up) override {
    *up = port_up;
    return fatal ? EIO : 0;
  }
  bool failed() const override { return fatal; }
  int OpenContext(const OpenContextCommand& command, uint32_t* context) override;
  void CloseContext(uint32_t) override {}
  int AllocPd(uint32_t, uint32_t* pd) override { return Number(pd); }
  int DeallocPd(uint32_t) override { return Answer(); }
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
  void RingSendDoorbell(Doorbell*) override { ++doorbells; }
  void ArmCq(uint32_t, uint32_t word) override { arm_words.push_back(word); }
  void Poll() override;
  void NoteProductive(Call) override { ++productive; }
  void PrepareToSleep() override { ++sleeps; }
  Time Now() override { return now; }

 private:
  int Answer();
  int Number(uint32_t* number);
  void WriteEqe(const mlx5::Eqe& eqe);

  static DeviceProfile WithAtomics(DeviceProfile profile) {
    profile.features.atomic_cap = AtomicCap::kHca;
    return profile;
  }

  const DeviceProfile profile_;
  const uint16_t port_;
  std::mutex mutex_;  // the engine's lock
  uint32_t next_number_ = 100;
  std::map<uint32_t, uint32_t> cq_producers_;
  uint32_t event_producer_ = 0;
};

}  // namespace simhca

#endif  // SIMHCA_TESTS_UNIT_DRIVER_FAKE_DEVICE_H_
