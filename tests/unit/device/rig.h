#ifndef SIMHCA_TESTS_UNIT_DEVICE_RIG_H_
#define SIMHCA_TESTS_UNIT_DEVICE_RIG_H_

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/device/hca.h"
#include "sim/device/progress.h"
#include "sim/queues/mlx5/layout.h"
#include "tests/unit/device/loopback_fabric.h"

namespace simhca {

// A device, under virtual time unless it is said otherwise, driven through rings, doorbells and
// commands as a driver would.
class Rig : private InterruptHandler {
 public:
  static constexpr uint32_t kArenaBytes = 1 << 20;
  static constexpr uint32_t kCqEntries = 256;
  static constexpr uint32_t kSrqEntries = 64;
  static constexpr uint32_t kSendBlocks = 64;
  static constexpr uint32_t kReceiveEntries = 16;

  struct Queue {
    std::vector<std::byte> ring;
    std::unique_ptr<Be32[]> record = std::make_unique<Be32[]>(2);
    uint32_t number = 0;
    uint32_t index = 0;
    std::byte* record_bytes() { return reinterpret_cast<std::byte*>(record.get()); }
  };
  using Cq = Queue;
  using Srq = Queue;
  struct Qp {
    Queue send;
    Queue receive;
    uint32_t number = 0;
    Doorbell* doorbell = nullptr;
  };
  struct QpOptions {
    uint8_t rnr_retry = 7;
    uint8_t retry_count = 7;
    uint8_t timeout = 14;
    uint8_t min_rnr_timer = 12;
    uint8_t path_mtu = 3;  // 1024
    uint8_t rd_atomic = 4;
    uint32_t psn = 0xfffff0;  // so that every test of some length wraps
    uint32_t access = kLocalWrite | kRemoteWrite | kRemoteRead;
  };
  struct Send {
    mlx5::WqeOpcode opcode = mlx5::WqeOpcode::kSend;
    uint64_t address = 0;
    uint32_t length = 0;
    uint32_t lkey = 0;
    uint64_t remote_address = 0;
    uint32_t rkey = 0;
    uint32_t immediate = 0;
    uint8_t flags = mlx5::kCompletionOnSuccess;
  };

  static DeviceProfile GenericProfile();
  explicit Rig(const DeviceProfile& profile = GenericProfile());
  // On the loopback fabric, with a wire that does this to packets.
  Rig(const FaultPlan& faults, uint64_t seed);
  // On a fabric of the test's choice; `fabric` below is null unless it is a LoopbackFabric.
  Rig(std::unique_ptr<Fabric> joined, const DeviceProfile& profile,
      ClockMode mode = ClockMode::kVirtual);
  ~Rig() override = default;

  std::unique_ptr<Cq> MakeCq();
  std::unique_ptr<Srq> MakeSrq();
  std::unique_ptr<Qp> MakeQp(Cq& cq, Srq* srq);
  int Modify(Qp& qp, uint32_t mask, const QpAttributes& attributes);
  // From RESET to RTS, towards the number `peer`.  Returns the errno of the move that is refused.
  int ConnectTo(Qp& qp, uint32_t peer, const QpOptions& options);
  // Both, towards each other.
  void Connect(Qp& a, Qp& b, const QpOptions& options);
  void Connect(Qp& a, Qp& b) { Connect(a, b, QpOptions{}); }
  QpState StateOf(const Qp& qp);

  void PostSrq(Srq& srq, uint64_t address, uint32_t length, uint32_t lkey);
  void PostReceive(Qp& qp, uint64_t address, uint32_t length, uint32_t lkey);
  void PostSend(Qp& qp, const Send& send);

  // The next CQE, or nullopt after `limit` of virtual time without one.
  std::optional<mlx5::Cqe> Poll(Cq& cq, Duration limit = kSecond);

  // Events that the device has raised since the last call.
  std::vector<mlx5::Eqe> TakeEvents();
  size_t CountEvents(mlx5::EventType type, uint32_t number);

  std::byte* at(uint64_t offset) { return arena_.get() + offset; }
  uint64_t address(uint64_t offset) { return reinterpret_cast<uint64_t>(at(offset)); }
  void Fill(uint64_t offset, uint32_t length, uint8_t seed);
  bool Holds(uint64_t offset, uint32_t length, uint8_t seed);

  LoopbackFabric* fabric;
  Progress progress;
  Hca hca;
  uint32_t context = 0;
  uint32_t pd = 0;
  uint32_t key = 0;  // of the whole arena

 private:
  void OnInterrupt() override;
  void AwaitInterrupts();

  static constexpr uint32_t kEventEntries = 64;
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  // From calloc, so that only what a test uses is touched.
  std::unique_ptr<std::byte[], Free> arena_{static_cast<std::byte*>(std::calloc(kArenaBytes, 1))};
  std::vector<std::byte> event_ring_;
  uint32_t event_index_ = 0;
  std::vector<mlx5::Eqe> events_;
};

inline mlx5::Syndrome SyndromeOf(const mlx5::Cqe& cqe) {
  return reinterpret_cast<const mlx5::ErrorCqe&>(cqe).syndrome;
}

}  // namespace simhca

#endif  // SIMHCA_TESTS_UNIT_DEVICE_RIG_H_
