#include "sim/fabric/timed_loopback.h"

#include <algorithm>
#include <utility>

namespace simhca {

std::byte* TimedLoopback::Pool::Take() {
  if (free.empty()) {
    all.push_back(std::make_unique<std::byte[]>(buffer_bytes));
    free.reserve(all.size());
    return all.back().get();
  }
  std::byte* const bytes = free.back();
  free.pop_back();
  return bytes;
}

TimedLoopback::TimedLoopback(std::vector<LinkModel> wires,
                             std::span<const std::atomic<uint32_t>> owners, uint32_t owner)
    : models_(std::move(wires)), owners_(owners), owner_(owner), wires_(kMaxFabricPorts) {
  arrivals_.reserve(kMostInFlight / small_.buffer_bytes);
}

const LinkModel& TimedLoopback::Wire(uint16_t port) const {
  static constexpr LinkModel kInstant;
  if (models_.empty()) return kInstant;
  return models_[std::min<size_t>(port, models_.size() - 1)];
}

Link::Reservation TimedLoopback::Reserve(uint32_t destination_qpn, uint32_t length) {
  if (reserved_ != nullptr) PoolFor(reserved_length_).free.push_back(reserved_);
  reserved_ = nullptr;
  const uint32_t block = destination_qpn / kNumbersPerBlock;
  const bool reachable = owners_.empty() || (block < owners_.size() && owners_[block] == owner_);
  if (!reachable || length == 0 || length > kMaxPacketBytes) {
    return {Status::kUnreachable, nullptr};
  }
  Pool& pool = PoolFor(length);
  if (in_flight_ + pool.buffer_bytes > kMostInFlight) return {Status::kNoRoom, nullptr};
  reserved_ = pool.Take();
  reserved_length_ = length;
  return {Status::kReady, reserved_};
}

void TimedLoopback::Commit(const PacketAddress& address, Time ready) {
  const LinkModel& model = Wire(address.source_port);
  const Duration service =
      model.bits_per_second == 0
          ? 0
          : TransferTime(reserved_length_ + model.overhead_bytes, model.bits_per_second);
  const Time sent = wires_[address.source_port % kMaxFabricPorts].Reserve(ready, service);
  arrivals_.push_back(
      {SaturatingAdd(sent, model.propagation), sequence_++, address, reserved_length_, reserved_});
  std::push_heap(arrivals_.begin(), arrivals_.end());
  in_flight_ += PoolFor(reserved_length_).buffer_bytes;
  reserved_ = nullptr;
}

uint32_t TimedLoopback::Poll(PacketHandler& handler, uint32_t budget, Time now) {
  uint32_t taken = 0;
  while (taken < budget && !arrivals_.empty() && arrivals_.front().arrival <= now) {
    std::pop_heap(arrivals_.begin(), arrivals_.end());
    Packet& offer = arrivals_.back();
    const Time ready =
        handler.ReadyFor(offer.address, offer.bytes, offer.length, now, !offer.offered);
    if (ready > now) {
      offer.arrival = ready;
      offer.offered = true;
      std::push_heap(arrivals_.begin(), arrivals_.end());
      continue;
    }
    const Packet packet = offer;
    arrivals_.pop_back();
    handler.OnPacket(packet.address, packet.bytes, packet.length);
    Pool& pool = PoolFor(packet.length);
    pool.free.push_back(packet.bytes);
    in_flight_ -= pool.buffer_bytes;
    ++taken;
  }
  return taken;
}

Time TimedLoopback::NextArrival() const {
  return arrivals_.empty() ? kNever : arrivals_.front().arrival;
}

}  // namespace simhca
