#include "tests/unit/device/rig.h"

#include <gtest/gtest.h>

#include <cstring>

#include "sim/profiles/profile_loader.h"

namespace simhca {

DeviceProfile Rig::GenericProfile() {
  const ProfileResult result = FindProfile("generic");
  EXPECT_TRUE(result) << result.error;
  return result.profile.value_or(DeviceProfile{});
}

Rig::Rig(const DeviceProfile& profile) : Rig(std::make_unique<LoopbackFabric>(), profile) {}

namespace {
std::unique_ptr<LoopbackFabric> FaultyLoopback(const FaultPlan& faults, uint64_t seed) {
  auto fabric = std::make_unique<LoopbackFabric>();
  fabric->MakeFaulty(faults, seed);
  return fabric;
}
}  // namespace

Rig::Rig(const FaultPlan& faults, uint64_t seed)
    : Rig(FaultyLoopback(faults, seed), GenericProfile()) {}

Rig::Rig(std::unique_ptr<Fabric> joined, const DeviceProfile& profile, ClockMode mode)
    : fabric(dynamic_cast<LoopbackFabric*>(joined.get())),
      progress(std::move(joined), mode),
      hca(profile, 0, progress),
      event_ring_(kEventEntries * sizeof(mlx5::Eqe), std::byte{1}) {
  const OpenContextCommand open{this, event_ring_.data(), kEventEntries};
  EXPECT_EQ(hca.OpenContext(open, &context), 0);
  EXPECT_EQ(hca.AllocPd(context, &pd), 0);
  const RegisterRegionCommand region{pd, arena_.get(), kArenaBytes, address(0),
                                     kLocalWrite | kRemoteWrite | kRemoteRead};
  EXPECT_EQ(hca.RegisterRegion(region, &key), 0);
}

void Rig::OnInterrupt() {
  auto* ring = reinterpret_cast<mlx5::Eqe*>(event_ring_.data());
  while (true) {
    const mlx5::Eqe& eqe = ring[event_index_ % kEventEntries];
    if (eqe.owner != ((event_index_ / kEventEntries) & 1)) return;
    events_.push_back(eqe);
    ++event_index_;
  }
}

std::vector<mlx5::Eqe> Rig::TakeEvents() {
  AwaitInterrupts();
  return std::move(events_);
}

// Under a model events take their time.
void Rig::AwaitInterrupts() {
  if (!progress.virtual_time()) return;
  const Time end = hca.Now() + 2 * hca.profile().costs.event_latency;
  while (hca.Now() < end) hca.Poll();
}

size_t Rig::CountEvents(mlx5::EventType type, uint32_t number) {
  AwaitInterrupts();
  size_t count = 0;
  for (const mlx5::Eqe& eqe : events_) count += eqe.type == type && eqe.number == number;
  return count;
}

std::unique_ptr<Rig::Cq> Rig::MakeCq() {
  auto cq = std::make_unique<Cq>();
  cq->ring.resize(kCqEntries * sizeof(mlx5::Cqe));
  for (uint32_t i = 0; i < kCqEntries; ++i) {
    reinterpret_cast<mlx5::Cqe*>(cq->ring.data())[i].opcode_owner = 0xf0;
  }
  const CreateCqCommand command{context, cq->ring.data(), kCqEntries, cq->record_bytes(), true};
  EXPECT_EQ(hca.CreateCq(command, &cq->number), 0);
  return cq;
}

std::unique_ptr<Rig::Srq> Rig::MakeSrq() {
  constexpr uint32_t kStride = 32;
  auto srq = std::make_unique<Srq>();
  srq->ring.resize(kSrqEntries * kStride);
  for (uint32_t i = 0; i < kSrqEntries; ++i) {
    auto* next = reinterpret_cast<mlx5::SrqNextSegment*>(srq->ring.data() + i * kStride);
    next->next_wqe_index = static_cast<uint16_t>((i + 1) % kSrqEntries);
  }
  const CreateSrqCommand command{
      context, pd, srq->ring.data(), kSrqEntries, kStride, srq->record_bytes(), kSrqEntries - 1};
  EXPECT_EQ(hca.CreateSrq(command, &srq->number), 0);
  return srq;
}

std::unique_ptr<Rig::Qp> Rig::MakeQp(Cq& cq, Srq* srq) {
  auto qp = std::make_unique<Qp>();
  qp->send.ring.resize(kSendBlocks * mlx5::kSendBlockBytes);
  qp->receive.ring.resize(kReceiveEntries * sizeof(mlx5::DataSegment));
  const CreateQpCommand command{
      context,
      pd,
      QpType::kRc,
      cq.number,
      cq.number,
      srq != nullptr ? srq->number : 0,
      qp->send.ring.data(),
      kSendBlocks,
      qp->receive.ring.data(),
      srq != nullptr ? 0 : kReceiveEntries,
      sizeof(mlx5::DataSegment),
      qp->send.record_bytes(),
  };
  CreateQpReply reply{};
  EXPECT_EQ(hca.CreateQp(command, &reply), 0);
  qp->number = reply.qpn;
  qp->doorbell = reply.doorbell;
  return qp;
}

int Rig::Modify(Qp& qp, uint32_t mask, const QpAttributes& attributes) {
  ReleasedWqe released;
  return hca.ModifyQp({qp.number, mask, attributes}, &released);
}

int Rig::ConnectTo(Qp& qp, uint32_t peer, const QpOptions& options) {
  using namespace qp_mask;
  QpAttributes attributes;
  attributes.state = QpState::kInit;
  attributes.port = 1;
  attributes.access_flags = options.access;
  if (int error = Modify(qp, kState | kPkeyIndex | kPort | kAccessFlags, attributes)) return error;
  attributes.state = QpState::kRtr;
  attributes.path_mtu = options.path_mtu;
  attributes.dest_qpn = peer;
  attributes.rq_psn = options.psn;
  attributes.max_dest_rd_atomic = options.rd_atomic;
  attributes.min_rnr_timer = options.min_rnr_timer;
  attributes.av.dgid = GidOfPort(0, 0);
  attributes.av.is_global = true;
  attributes.av.port = 1;
  if (int error =
          Modify(qp, kState | kAv | kPathMtu | kDestQpn | kRqPsn | kMaxDestRdAtomic | kMinRnrTimer,
                 attributes)) {
    return error;
  }
  attributes.state = QpState::kRts;
  attributes.timeout = options.timeout;
  attributes.retry_count = options.retry_count;
  attributes.rnr_retry = options.rnr_retry;
  attributes.sq_psn = options.psn;
  attributes.max_rd_atomic = options.rd_atomic;
  return Modify(qp, kState | kTimeout | kRetryCount | kRnrRetry | kSqPsn | kMaxRdAtomic,
                attributes);
}

void Rig::Connect(Qp& a, Qp& b, const QpOptions& options) {
  ASSERT_EQ(ConnectTo(a, b.number, options), 0);
  ASSERT_EQ(ConnectTo(b, a.number, options), 0);
}

QpState Rig::StateOf(const Qp& qp) {
  QpAttributes attributes;
  EXPECT_EQ(hca.QueryQp(qp.number, &attributes), 0);
  return attributes.state;
}

void Rig::PostSrq(Srq& srq, uint64_t address, uint32_t length, uint32_t lkey) {
  std::byte* entry = srq.ring.data() + srq.index % kSrqEntries * 32;
  *reinterpret_cast<mlx5::DataSegment*>(entry + 16) = {length, lkey, address};
  DoorbellRecord(srq.record_bytes(), 0).Store(++srq.index);
}

void Rig::PostReceive(Qp& qp, uint64_t address, uint32_t length, uint32_t lkey) {
  auto* ring = reinterpret_cast<mlx5::DataSegment*>(qp.receive.ring.data());
  ring[qp.receive.index % kReceiveEntries] = {length, lkey, address};
  DoorbellRecord(qp.send.record_bytes(), mlx5::kReceiveRecord).Store(++qp.receive.index & 0xffff);
}

void Rig::PostSend(Qp& qp, const Send& send) {
  const bool remote = send.opcode == mlx5::WqeOpcode::kRdmaWrite ||
                      send.opcode == mlx5::WqeOpcode::kRdmaWriteImmediate ||
                      send.opcode == mlx5::WqeOpcode::kRdmaRead;
  std::byte* wqe = qp.send.ring.data() + qp.send.index % kSendBlocks * mlx5::kSendBlockBytes;
  const uint32_t data_units = send.length > 0 ? 1 : 0;
  auto* control = reinterpret_cast<mlx5::ControlSegment*>(wqe);
  control->Set(send.opcode, static_cast<uint16_t>(qp.send.index), qp.number,
               1 + (remote ? 1 : 0) + data_units, send.flags);
  control->immediate = send.immediate;
  std::byte* at = wqe + 16;
  if (remote) {
    *reinterpret_cast<mlx5::RemoteAddressSegment*>(at) = {send.remote_address, send.rkey, 0u};
    at += 16;
  }
  if (data_units > 0) {
    *reinterpret_cast<mlx5::DataSegment*>(at) = {send.length, send.lkey, send.address};
  }
  DoorbellRecord(qp.send.record_bytes(), mlx5::kSendRecord).Store(++qp.send.index & 0xffff);
  hca.RingSendDoorbell(qp.doorbell);
}

std::optional<mlx5::Cqe> Rig::Poll(Cq& cq, Duration limit) {
  const auto& cqe = reinterpret_cast<mlx5::Cqe*>(cq.ring.data())[cq.index % kCqEntries];
  const Time end = hca.Now() + limit;
  while (true) {
    // The background thread may be writing it: as a driver does, what it says counts only once the
    // owner byte, written last, is seen.
    const uint8_t owner = __atomic_load_n(&cqe.opcode_owner, __ATOMIC_ACQUIRE);
    const bool mine = owner >> 4 != static_cast<uint8_t>(mlx5::CqeOpcode::kInvalid) &&
                      (owner & 1) == mlx5::Cqe::OwnerBit(cq.index, kCqEntries);
    if (mine) {
      DoorbellRecord(cq.record_bytes(), mlx5::kConsumerRecord).Store(++cq.index & 0xffffff);
      return cqe;
    }
    if (hca.Now() >= end) return std::nullopt;
    hca.Poll();
  }
}

void Rig::Fill(uint64_t offset, uint32_t length, uint8_t seed) {
  for (uint32_t i = 0; i < length; ++i) {
    arena_[offset + i] = static_cast<std::byte>(seed + i * 7 + (i >> 8));
  }
}

bool Rig::Holds(uint64_t offset, uint32_t length, uint8_t seed) {
  for (uint32_t i = 0; i < length; ++i) {
    if (arena_[offset + i] != static_cast<std::byte>(seed + i * 7 + (i >> 8))) return false;
  }
  return true;
}

}  // namespace simhca
