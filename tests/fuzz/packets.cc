// Packets that a hostile peer may send to a device: malformed ones, and well-formed ones in any
// order, between what the program of the device does itself.
//
// An input is a sequence of steps.  Three queue pairs take part: one on an SRQ whose peer is the
// input alone, and two that are connected to each other, one of them on the same SRQ.

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "sim/wire/headers.h"
#include "tests/fuzz/input.h"
#include "tests/unit/device/rig.h"

namespace simhca::fuzz {
namespace {

constexpr uint32_t kNobody = 0x42;  // a number that no queue pair has
constexpr uint32_t kStartPsn = 0xfffff8;
constexpr uint8_t kPathMtu256 = 1;
constexpr uint32_t kMtu = 256;
constexpr uint32_t kGuardBytes = 4096;
constexpr uint32_t kZoneBytes = 4096;
constexpr uint8_t kFiller = 0xa5;
constexpr size_t kMaxSteps = 200;
// Each idle poll lets more time pass than the one before: enough for milliseconds, not for minutes.
constexpr int kMaxPolls = 200;

// A registered part of the arena with guards on both sides.
struct Zone {
  uint32_t offset;
  uint32_t access;
  bool changes;  // whether anything may write to it
  uint32_t key = 0;
};

class Target {
 public:
  Target();

  void Play(Input& input);
  void Finish();

 private:
  struct End {
    std::unique_ptr<Rig::Qp> qp;
    uint32_t peer = kNobody;
    bool on_srq = false;
    uint32_t request_psn = kStartPsn;  // that the peer would use next
    uint32_t sends = 0;                // posted and not completed
    uint32_t receives = 0;
  };

  void Connect(End& end, const Rig::QpOptions& options);
  void ToReset(End& end);
  void ToError(End& end);

  void SendRaw(Input& input);
  void SendStructured(Input& input);
  void Deliver(Input& input, std::vector<std::byte> packet);
  void PostReceive(Input& input);
  void PostSend(Input& input);
  void PostRawWqe(Input& input);
  uint64_t AnyAddress(Input& input);
  uint32_t AnyKey(Input& input);

  void Collect();
  void OnCqe(const mlx5::Cqe& cqe);
  void GiveBack(const End& end, const ReleasedWqe& released);
  uint32_t SrqFill();
  void CheckMemory();

  Rig rig_{Profile()};
  std::unique_ptr<Rig::Cq> cq_ = rig_.MakeCq();
  std::unique_ptr<Rig::Srq> srq_ = rig_.MakeSrq();
  std::array<End, 3> ends_;
  std::array<Zone, 3> zones_ = {{{128 << 10, kLocalWrite, true},
                                 {256 << 10, kLocalWrite | kRemoteWrite | kRemoteRead, true},
                                 {384 << 10, kRemoteRead, false}}};
  std::set<uint16_t> srq_posted_;  // entries, without a completion yet
  bool losing_ = false;

  static const DeviceProfile& Profile() {
    static const DeviceProfile profile = Rig::GenericProfile();
    return profile;
  }
};

Target::Target() {
  Require(rig_.hca.DeregisterRegion(rig_.key) == 0, "the rig's own region goes");
  for (Zone& zone : zones_) {
    std::memset(rig_.at(zone.offset - kGuardBytes), kFiller, kZoneBytes + 2 * kGuardBytes);
    const RegisterRegionCommand region{rig_.pd, rig_.at(zone.offset), kZoneBytes,
                                       rig_.address(zone.offset), zone.access};
    Require(rig_.hca.RegisterRegion(region, &zone.key) == 0, "regions can be registered");
  }
  for (size_t i = 0; i < ends_.size(); ++i) {
    ends_[i].on_srq = i != 2;
    ends_[i].qp = rig_.MakeQp(*cq_, ends_[i].on_srq ? srq_.get() : nullptr);
  }
  ends_[1].peer = ends_[2].qp->number;
  ends_[2].peer = ends_[1].qp->number;
  rig_.fabric->lose = [this](size_t, const std::byte*) { return losing_; };
}

// A queue pair that is not in RESET stays as it is.
void Target::Connect(End& end, const Rig::QpOptions& options) {
  rig_.ConnectTo(*end.qp, end.peer, options);
  end.request_psn = kStartPsn;
}

void Target::ToReset(End& end) {
  QpAttributes attributes;
  attributes.state = QpState::kReset;
  ReleasedWqe released;
  Require(rig_.hca.ModifyQp({end.qp->number, qp_mask::kState, attributes}, &released) == 0,
          "every state has a way to RESET");
  GiveBack(end, released);
  // As a driver does: the queues start anew, what they held is forgotten.
  DoorbellRecord(end.qp->send.record_bytes(), 0).Store(0);
  DoorbellRecord(end.qp->send.record_bytes(), 1).Store(0);
  end.qp->send.index = end.qp->receive.index = 0;
  Collect();
  end.sends = end.receives = 0;
}

void Target::ToError(End& end) {
  QpAttributes attributes;
  attributes.state = QpState::kErr;
  rig_.Modify(*end.qp, qp_mask::kState, attributes);
}

// ---- What arrives ----

void Target::Deliver(Input& input, std::vector<std::byte> packet) {
  const uint8_t where = input.Byte();
  if (packet.empty()) return;
  packet.resize(std::min<size_t>(packet.size(), kMaxPacketBytes));
  PacketAddress address;
  if ((where & 0xc0) == 0xc0) address.source_port = where & 0x3f;
  if ((where & 0xc0) == 0x80) address.destination_port = where & 0x3f;
  rig_.fabric->Inject(address, std::move(packet));
}

void Target::SendRaw(Input& input) {
  const End& end = ends_[input.Below(ends_.size())];
  std::vector<std::byte> packet = input.Bytes(input.Byte());
  if (packet.size() >= Bth::kSize && input.Flag()) {
    Bth bth = Bth::Parse(packet.data());
    bth.dest_qpn = end.qp->number;
    bth.version = 0;
    bth.Emit(packet.data());
  }
  Deliver(input, std::move(packet));
}

void Target::SendStructured(Input& input) {
  End& end = ends_[input.Below(ends_.size())];
  Bth bth;
  bth.opcode = static_cast<Opcode>(input.Byte());
  const uint8_t flags = input.Byte();
  bth.solicited = (flags & 1) != 0;
  bth.ack_request = (flags & 2) != 0;
  const Operation operation = OperationOf(bth.opcode);
  const int delta = (flags & 4) != 0 ? input.Take<int8_t>() : 0;
  const bool response = IsResponse(operation);
  bth.psn = PsnAdd(response ? kStartPsn : end.request_psn, static_cast<uint32_t>(delta));
  bth.dest_qpn = end.qp->number;
  if (!response && delta == 0) end.request_psn = PsnAdd(end.request_psn, 1);

  constexpr uint32_t kPayloads[] = {0, 1, kMtu, kMtu + 1, kMtu - 1, 4096};
  const uint32_t choice = input.Below(8);
  const uint32_t payload = choice < std::size(kPayloads) ? kPayloads[choice] : input.Byte();
  bth.pad = (flags & 8) != 0 ? flags >> 6 : PadBytes(payload);

  const bool known = IsKnown(bth.opcode);
  const size_t headers = known ? HeaderBytes(bth.opcode) : Bth::kSize;
  std::vector<std::byte> packet(headers + payload + bth.pad, std::byte{0x5a});
  bth.Emit(packet.data());
  std::byte* at = packet.data() + Bth::kSize;
  if (known && HasReth(operation)) {
    constexpr uint32_t kLengths[] = {0, kMtu, 2 * kMtu, 2 * kMtu + 1, kZoneBytes, 1u << 31};
    const uint64_t address = AnyAddress(input);
    const uint32_t key = AnyKey(input);
    const uint32_t which = input.Below(8);
    const uint32_t length = which < std::size(kLengths) ? kLengths[which]
                            : which == 6                ? payload
                                                        : input.Take<uint32_t>();
    Reth{address, key, length}.Emit(at);
    at += Reth::kSize;
    // The responder counts a READ's responses in PSNs.
    if (operation == Operation::kReadRequest && delta == 0) {
      end.request_psn = PsnAdd(end.request_psn, std::max(1u, (length + kMtu - 1) / kMtu) - 1);
    }
  }
  if (known && HasAeth(operation)) Aeth{input.Byte(), input.Byte()}.Emit(at);
  if ((flags & 16) != 0) packet.resize(std::min<size_t>(packet.size(), input.Byte()));
  Deliver(input, std::move(packet));
}

uint64_t Target::AnyAddress(Input& input) {
  const Zone& zone = zones_[input.Below(zones_.size())];
  const uint8_t form = input.Byte();
  if (form < 128) return rig_.address(zone.offset);
  if (form < 192) return rig_.address(zone.offset) + input.Take<int16_t>();
  if (form < 224) return rig_.address(zone.offset) + kZoneBytes - kMtu;
  return form == 255 ? ~uint64_t{0} - input.Byte() : input.Take<uint64_t>();
}

uint32_t Target::AnyKey(Input& input) {
  const uint32_t choice = input.Below(8);
  if (choice < 6) return zones_[choice % zones_.size()].key;
  return choice == 6 ? mlx5::kTerminatorKey : input.Take<uint32_t>();
}

// ---- What the program does ----

void Target::PostReceive(Input& input) {
  End& end = ends_[input.Below(ends_.size())];
  constexpr uint32_t kLengths[] = {0, 1, kMtu, 2 * kMtu, kZoneBytes, 0xffffffff};
  const uint64_t address = AnyAddress(input);
  const uint32_t key = AnyKey(input);
  const uint32_t length = kLengths[input.Below(std::size(kLengths))];
  if (!end.on_srq) {
    if (end.receives == Rig::kReceiveEntries) return;
    rig_.PostReceive(*end.qp, address, length, key);
    ++end.receives;
    return;
  }
  // The rig's list is a circle: an entry that is not free ends it.
  const uint16_t entry = static_cast<uint16_t>(srq_->index % Rig::kSrqEntries);
  if (srq_posted_.size() == Rig::kSrqEntries - 1 || srq_posted_.contains(entry)) return;
  srq_posted_.insert(entry);
  rig_.PostSrq(*srq_, address, length, key);
}

void Target::PostSend(Input& input) {
  End& end = ends_[input.Below(ends_.size())];
  if (end.sends == Rig::kSendBlocks - 1) return;
  constexpr mlx5::WqeOpcode kOpcodes[] = {
      mlx5::WqeOpcode::kSend,      mlx5::WqeOpcode::kSendImmediate,
      mlx5::WqeOpcode::kRdmaWrite, mlx5::WqeOpcode::kRdmaWriteImmediate,
      mlx5::WqeOpcode::kRdmaRead,  mlx5::WqeOpcode::kSendInvalidate,
      mlx5::WqeOpcode::kNop,       mlx5::WqeOpcode::kAtomicFetchAdd};
  constexpr uint32_t kLengths[] = {0, 1, kMtu, 3 * kMtu, kZoneBytes, 0x7fffffff};
  Rig::Send send;
  send.opcode = kOpcodes[input.Below(std::size(kOpcodes))];
  send.address = AnyAddress(input);
  send.lkey = AnyKey(input);
  send.length = kLengths[input.Below(std::size(kLengths))];
  send.remote_address = AnyAddress(input);
  send.rkey = AnyKey(input);
  send.flags = mlx5::kCompletionOnSuccess | (input.Byte() & (mlx5::kFence | mlx5::kSolicited));
  ++end.sends;
  rig_.PostSend(*end.qp, send);
}

// The rings are the program's own memory, which it may spoil.
void Target::PostRawWqe(Input& input) {
  End& end = ends_[input.Below(ends_.size())];
  if (end.sends == Rig::kSendBlocks - 1) return;
  Rig::Queue& queue = end.qp->send;
  std::byte* wqe = queue.ring.data() + queue.index % Rig::kSendBlocks * mlx5::kSendBlockBytes;
  const auto bytes = input.Bytes(input.Below(mlx5::kSendBlockBytes + 1));
  std::copy(bytes.begin(), bytes.end(), wqe);
  auto* control = reinterpret_cast<mlx5::ControlSegment*>(wqe);
  // One block and one completion for each post, so that they can be counted.
  const uint32_t units = control->size_units() % (mlx5::kSendBlockBytes / 16 + 1);
  control->qpn_ds = (control->qpn_ds & ~0x3fu) | units;
  control->fm_ce_se |= mlx5::kCompletionOnSuccess;
  if (input.Flag()) {
    control->Set(control->opcode(), static_cast<uint16_t>(queue.index), end.qp->number, units,
                 control->fm_ce_se);
  }
  ++end.sends;
  DoorbellRecord(queue.record_bytes(), mlx5::kSendRecord).Store(++queue.index & 0xffff);
  rig_.hca.RingSendDoorbell(end.qp->doorbell);
}

// ---- What comes of it ----

void Target::GiveBack(const End& end, const ReleasedWqe& released) {
  if (!released.any || !end.on_srq) return;
  Require(srq_posted_.erase(released.index) == 1, "an entry that is given back was claimed");
}

void Target::OnCqe(const mlx5::Cqe& cqe) {
  const mlx5::CqeOpcode opcode = cqe.opcode();
  const bool sent =
      opcode == mlx5::CqeOpcode::kRequester || opcode == mlx5::CqeOpcode::kRequesterError;
  for (End& end : ends_) {
    if (end.qp->number != cqe.qpn()) continue;
    if (sent) {
      Require(end.sends > 0, "a send completes once");
      --end.sends;
    } else if (!end.on_srq) {
      Require(end.receives > 0, "a receive completes once");
      --end.receives;
    } else {
      Require(cqe.srqn == srq_->number, "a completion names its SRQ");
      Require(srq_posted_.erase(cqe.wqe_counter) == 1, "an SRQ entry completes once");
    }
    return;
  }
  Require(false, "a completion names its queue pair");
}

void Target::Collect() {
  while (const auto cqe = rig_.Poll(*cq_, 0)) OnCqe(*cqe);
  rig_.TakeEvents();
}

// Entries posted and not claimed: a resize to a smaller capacity is refused.
uint32_t Target::SrqFill() {
  uint32_t fill = 0;
  while (fill <= Rig::kSrqEntries) {
    ModifySrqCommand command{.srq = srq_->number, .resize = true};
    command.ring = srq_->ring.data();
    command.entries = Rig::kSrqEntries;
    command.max_limit = Rig::kSrqEntries - 1;
    command.capacity = fill;
    if (rig_.hca.ModifySrq(command) == 0) break;
    ++fill;
  }
  return fill;
}

void Target::CheckMemory() {
  static const std::vector<uint8_t> filler(std::max(kGuardBytes, kZoneBytes), kFiller);
  const auto untouched = [this](uint32_t offset, uint32_t length) {
    return std::memcmp(rig_.at(offset), filler.data(), length) == 0;
  };
  for (const Zone& zone : zones_) {
    Require(untouched(zone.offset - kGuardBytes, kGuardBytes) &&
                untouched(zone.offset + kZoneBytes, kGuardBytes),
            "nothing is written outside a region");
    Require(zone.changes || untouched(zone.offset, kZoneBytes),
            "nothing is written to a region without the right to write");
  }
}

void Target::Play(Input& input) {
  Rig::QpOptions options;
  const uint8_t setup = input.Byte();
  options.path_mtu = kPathMtu256;
  options.psn = kStartPsn;
  options.rd_atomic = setup & 3;
  options.rnr_retry = (setup & 4) != 0 ? 7 : 1;
  options.retry_count = (setup & 8) != 0 ? 7 : 1;
  options.min_rnr_timer = 12;  // 0.64 ms
  options.timeout = 8;         // 1 ms
  options.access = (setup & 16) != 0 ? kLocalWrite : kLocalWrite | kRemoteWrite | kRemoteRead;
  for (End& end : ends_) Connect(end, options);
  int polls_left = kMaxPolls;
  for (size_t steps = 0; steps < kMaxSteps && !input.empty(); ++steps) {
    switch (input.Below(16)) {
      case 0:
        SendRaw(input);
        break;
      case 1:
      case 2:
        PostReceive(input);
        break;
      case 3:
      case 4:
        PostSend(input);
        break;
      case 5:
        PostRawWqe(input);
        break;
      case 6:
        for (uint32_t i = input.Below(64); i > 0 && polls_left > 0; --i, --polls_left) {
          rig_.hca.Poll();
        }
        break;
      case 7:
        losing_ = input.Flag();
        break;
      case 8: {
        End& end = ends_[input.Below(ends_.size())];
        ToReset(end);
        Connect(end, options);
        break;
      }
      case 9:
        ToError(ends_[input.Below(ends_.size())]);
        break;
      default:
        SendStructured(input);
    }
    // Several packets may wait for one another's turn.
    if (input.Flag()) rig_.hca.Poll();
    Collect();
  }
}

void Target::Finish() {
  losing_ = false;
  for (End& end : ends_) ToError(end);
  for (int i = 0; i < 4; ++i) {
    rig_.hca.Poll();
    Collect();
  }
  for (const End& end : ends_) {
    if (rig_.StateOf(*end.qp) != QpState::kErr) continue;  // RESET, if it could not be connected
    Require(end.sends == 0 && end.receives == 0, "in ERR everything that was posted completes");
  }
  Require(SrqFill() == srq_posted_.size(), "what the SRQ holds was posted and not completed");
  CheckMemory();
  for (End& end : ends_) {
    ReleasedWqe released;
    Require(rig_.hca.DestroyQp(end.qp->number, &released) == 0, "a queue pair can be destroyed");
    Require(!released.any, "in ERR no message is open");
  }
  for (const Zone& zone : zones_) {
    Require(rig_.hca.DeregisterRegion(zone.key) == 0, "regions can be deregistered");
  }
  Require(rig_.hca.DestroySrq(srq_->number) == 0, "an SRQ can be destroyed");
  Require(rig_.hca.DestroyCq(cq_->number) == 0, "a CQ can be destroyed");
  Require(rig_.hca.DeallocPd(rig_.pd) == 0, "a PD can be deallocated");
}

}  // namespace
}  // namespace simhca::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  simhca::fuzz::Input input(bytes, size);
  simhca::fuzz::Target target;
  target.Play(input);
  target.Finish();
  return 0;
}
