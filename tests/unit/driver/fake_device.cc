#include "tests/unit/driver/fake_device.h"

#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

namespace simhca {

namespace {

int engine_starts = 0;
std::vector<FakeDevice*> devices_of_engine;

class FakeEngine final : public Engine {
 public:
  explicit FakeEngine(const EngineOptions& options) {
    devices_of_engine.clear();
    uint16_t port = 0;
    for (const DeviceProfile& profile : options.devices) {
      devices_.push_back(std::make_unique<FakeDevice>(profile, port++));
      devices_of_engine.push_back(devices_.back().get());
    }
  }
  size_t device_count() const override { return devices_.size(); }
  Device& device(size_t index) override { return *devices_[index]; }
  void Quiesce(Duration) override {}
  void Abandon() override {}
  std::string CounterReport() const override { return ""; }

 private:
  std::vector<std::unique_ptr<FakeDevice>> devices_;
};

}  // namespace

int Engine::Start(const EngineOptions& options, std::unique_ptr<Engine>* engine, std::string*) {
  *engine = std::make_unique<FakeEngine>(options);
  ++engine_starts;
  return 0;
}

FakeDevice* FakeDevice::At(size_t index) {
  return index < devices_of_engine.size() ? devices_of_engine[index] : nullptr;
}
int FakeDevice::starts() { return engine_starts; }

int FakeDevice::Answer() { return std::exchange(next_error, 0); }

int FakeDevice::Number(uint32_t* number) {
  if (const int error = Answer()) return error;
  *number = next_number_++;
  return 0;
}

void FakeDevice::WriteCqe(uint32_t cqn, mlx5::Cqe cqe, mlx5::CqeOpcode opcode) {
  const CreateCqCommand& cq = cqs.at(cqn);
  const uint32_t index = cq_producers_[cqn]++;
  auto& target = reinterpret_cast<mlx5::Cqe*>(cq.ring)[index & (cq.entries - 1)];
  cqe.opcode_owner = target.opcode_owner;
  target = cqe;
  const uint8_t owner = mlx5::Cqe::OwnerBit(index, cq.entries);
  __atomic_store_n(&target.opcode_owner, mlx5::Cqe::OpcodeOwner(opcode, false, owner),
                   __ATOMIC_RELEASE);
}

void FakeDevice::WriteErrorCqe(uint32_t cqn, mlx5::Cqe cqe, mlx5::CqeOpcode opcode,
                               mlx5::Syndrome syndrome) {
  auto& error = reinterpret_cast<mlx5::ErrorCqe&>(cqe);
  error.syndrome = syndrome;
  error.vendor_syndrome = 0x77;
  WriteCqe(cqn, cqe, opcode);
}

void FakeDevice::WriteEqe(const mlx5::Eqe& eqe) {
  std::lock_guard guard(mutex_);
  auto* ring = reinterpret_cast<mlx5::Eqe*>(open_context.event_ring);
  mlx5::Eqe& target = ring[event_producer_ & (open_context.event_entries - 1)];
  const uint8_t not_yet = target.owner;
  target = eqe;
  target.owner = not_yet;
  __atomic_store_n(&target.owner, mlx5::Cqe::OwnerBit(event_producer_, open_context.event_entries),
                   __ATOMIC_RELEASE);
  ++event_producer_;
  open_context.handler->OnInterrupt();
}

void FakeDevice::RaiseCompletionEvent(uint32_t cqn) {
  RaiseEvent(mlx5::EventType::kCompletion, cqn);
}

void FakeDevice::RaiseEvent(mlx5::EventType type, uint32_t number) {
  mlx5::Eqe eqe{};
  eqe.type = type;
  if (type == mlx5::EventType::kCqError) {
    eqe.cq_error_cqn = number;
  } else {
    eqe.number = number;
  }
  WriteEqe(eqe);
}

void FakeDevice::RaisePortEvent(uint8_t sub_type, uint8_t port) {
  mlx5::Eqe eqe{};
  eqe.type = mlx5::EventType::kPortChange;
  eqe.sub_type = sub_type;
  eqe.port = static_cast<uint8_t>(port << 4);
  WriteEqe(eqe);
}

uint32_t FakeDevice::Record(const std::byte* record, int word) {
  return std::bit_cast<Be32>(
      __atomic_load_n(reinterpret_cast<const uint32_t*>(record) + word, __ATOMIC_ACQUIRE));
}

int FakeDevice::OpenContext(const OpenContextCommand& command, uint32_t* context) {
  open_context = command;
  event_producer_ = 0;
  return Number(context);
}

int FakeDevice::RegisterRegion(const RegisterRegionCommand& command, uint32_t* key) {
  if (const int error = Number(key)) return error;
  regions[*key] = command;
  return 0;
}

int FakeDevice::DeregisterRegion(uint32_t key) {
  if (const int error = Answer()) return error;
  return regions.erase(key) == 1 ? 0 : ENOENT;
}

int FakeDevice::CreateCq(const CreateCqCommand& command, uint32_t* cqn) {
  if (const int error = Number(cqn)) return error;
  cqs[*cqn] = command;
  return 0;
}

int FakeDevice::ResizeCq(uint32_t cqn, std::byte* ring, uint32_t entries) {
  if (const int error = Answer()) return error;
  CreateCqCommand& cq = cqs.at(cqn);
  const uint32_t consumer = Record(cq.doorbell_record, mlx5::kConsumerRecord);
  for (uint32_t index = consumer; index != cq_producers_[cqn]; ++index) {
    auto& target = reinterpret_cast<mlx5::Cqe*>(ring)[index & (entries - 1)];
    target = reinterpret_cast<mlx5::Cqe*>(cq.ring)[index & (cq.entries - 1)];
    target.opcode_owner =
        static_cast<uint8_t>((target.opcode_owner & ~1u) | mlx5::Cqe::OwnerBit(index, entries));
  }
  cq.ring = ring;
  cq.entries = entries;
  return 0;
}

int FakeDevice::DestroyCq(uint32_t cqn) {
  if (const int error = Answer()) return error;
  cqs.erase(cqn);
  return 0;
}

int FakeDevice::CreateSrq(const CreateSrqCommand& command, uint32_t* srqn) {
  if (const int error = Number(srqn)) return error;
  srqs[*srqn] = command;
  return 0;
}

int FakeDevice::ModifySrq(const ModifySrqCommand& command) {
  srq_changes.push_back(command);
  return Answer();
}

int FakeDevice::QuerySrqLimit(uint32_t, uint32_t* limit) {
  *limit = srq_limit;
  return Answer();
}

int FakeDevice::DestroySrq(uint32_t srqn) {
  if (const int error = Answer()) return error;
  srqs.erase(srqn);
  return 0;
}

int FakeDevice::CreateQp(const CreateQpCommand& command, CreateQpReply* reply) {
  if (const int error = Number(&reply->qpn)) return error;
  qps[reply->qpn] = command;
  reply->doorbell = reinterpret_cast<Doorbell*>(this);
  return 0;
}

int FakeDevice::ModifyQp(const ModifyQpCommand& command, ReleasedWqe* given_back) {
  if (const int error = Answer()) return error;
  qp_changes.push_back(command);
  *given_back = std::exchange(released, {});
  return 0;
}

int FakeDevice::QueryQp(uint32_t, QpAttributes* attributes) {
  if (!qp_changes.empty()) *attributes = qp_changes.back().attributes;
  return Answer();
}

int FakeDevice::DestroyQp(uint32_t qpn, ReleasedWqe* given_back) {
  if (const int error = Answer()) return error;
  qps.erase(qpn);
  *given_back = std::exchange(released, {});
  return 0;
}

void FakeDevice::Poll() {
  ++polls;
  if (const auto action = on_poll) action();  // may replace itself
}

}  // namespace simhca
