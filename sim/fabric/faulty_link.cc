#include "sim/fabric/faulty_link.h"

#include <algorithm>
#include <array>
#include <utility>

#include "sim/wire/icrc.h"

namespace simhca {
namespace {

constexpr uint32_t kCheckedBytes = 12;  // a BTH; what is shorter has no ICRC and is no packet

// The ICRC of a packet whose outer headers arrived as they were sent: what they say matters not,
// as long as it is the same for both computations.
uint32_t IcrcOf(std::span<const std::byte> transport) {
  static constexpr std::array<std::byte, 40> kIp = {std::byte{0x60}};
  static constexpr std::array<std::byte, 8> kUdp = {};
  return ComputeIcrc(kIp, kUdp, transport);
}

}  // namespace

// What stands between the link and the handler during one Poll.
class FaultyLink::Receiver final : public PacketHandler {
 public:
  Receiver(FaultyLink& link, PacketHandler& handler, Time now)
      : link_(link), handler_(handler), now_(now) {}
  Time ReadyFor(const PacketAddress& address, const std::byte* bytes, uint32_t length, Time now,
                bool first_offer) override {
    return handler_.ReadyFor(address, bytes, length, now, first_offer);
  }
  void OnPacket(const PacketAddress& address, const std::byte* bytes, uint32_t length) override {
    link_.OnArrival(handler_, address, bytes, length, now_);
  }

 private:
  FaultyLink& link_;
  PacketHandler& handler_;
  const Time now_;
};

FaultyLink::FaultyLink(Link& link, FaultPlan plan, uint64_t seed, CounterSet counters)
    : link_(link), plan_(std::move(plan)), random_(seed), counters_(counters) {}

uint32_t FaultyLink::Poll(PacketHandler& handler, uint32_t budget, Time now) {
  uint32_t taken = 0;
  for (; taken < budget && !held_.empty() && held_.front().due <= now; ++taken) {
    std::pop_heap(held_.begin(), held_.end());
    const Held packet = std::move(held_.back());
    held_.pop_back();
    handler.OnPacket(packet.address, packet.bytes.data(),
                     static_cast<uint32_t>(packet.bytes.size()));
  }
  Receiver receiver(*this, handler, now);
  if (taken < budget) taken += link_.Poll(receiver, budget - taken, now);
  return taken;
}

Time FaultyLink::NextArrival() const {
  return std::min(link_.NextArrival(), held_.empty() ? kNever : held_.front().due);
}

void FaultyLink::OnArrival(PacketHandler& handler, const PacketAddress& address,
                           const std::byte* bytes, uint32_t length, Time now) {
  ++arrivals_;
  const bool chosen =
      std::find(plan_.lose.begin(), plan_.lose.end(), arrivals_) != plan_.lose.end();
  if (Chance(plan_.loss) || chosen) {
    counters_.Add(Counter::kFaultsLost);
    return;
  }
  if (length >= kCheckedBytes && Chance(plan_.corrupt)) {
    Corrupt(handler, address, bytes, length);
    return;
  }
  if (Chance(plan_.duplicate) && Hold(address, bytes, length, now)) {
    counters_.Add(Counter::kFaultsDuplicated);
  }
  if (Chance(plan_.reorder) && Hold(address, bytes, length, now)) {
    counters_.Add(Counter::kFaultsReordered);
    return;
  }
  handler.OnPacket(address, bytes, length);
}

// One to three bits flip on the wire.  The receiver computes the ICRC over what it got and drops
// what does not fit; the byte that the ICRC leaves out (FECN, BECN) may well change unseen.
void FaultyLink::Corrupt(PacketHandler& handler, const PacketAddress& address,
                         const std::byte* bytes, uint32_t length) {
  std::vector<std::byte> changed(bytes, bytes + length);
  const uint32_t sent = IcrcOf(changed);
  for (uint64_t flips = 1 + random_.Next() % 3; flips > 0; --flips) {
    const uint64_t bit = random_.Next() % (uint64_t{length} * 8);
    changed[bit / 8] ^= std::byte{1} << (bit % 8);
  }
  if (IcrcOf(changed) != sent) {
    counters_.Add(Counter::kFaultsCorrupted);
    return;
  }
  handler.OnPacket(address, changed.data(), length);
}

bool FaultyLink::Hold(const PacketAddress& address, const std::byte* bytes, uint32_t length,
                      Time now) {
  if (held_.size() >= kMostHeld) return false;
  const Duration wait =
      1 + static_cast<Duration>(random_.Next() % static_cast<uint64_t>(plan_.delay));
  held_.push_back({SaturatingAdd(now, wait), sequence_++, address, {bytes, bytes + length}});
  std::push_heap(held_.begin(), held_.end());
  return true;
}

// Draws only where there is a chance, so that one kind of fault more does not move the others'.
bool FaultyLink::Chance(double probability) {
  if (probability <= 0) return false;
  return static_cast<double>(random_.Next() >> 11) * 0x1p-53 < probability;
}

}  // namespace simhca
