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
                             std::span<const std::atomic<uint32_t>> owners, uint32_t owner,
                             uint32_t most_in_flight)
    : models_(std::move(wires)),
      owners_(owners),
      owner_(owner),
      most_in_flight_(most_in_flight),
      wires_(kMaxFabricPorts) {
  arrivals_.reserve(most_in_flight_ / small_.buffer_bytes);
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
  if (in_flight_ + pool.buffer_bytes > most_in_flight_) return {Status::kNoRoom, nullptr};
  reserved_ = pool.Take();
  reserved_length_ = length;
  reserved_flow_ = destination_qpn;
  return {Status::kReady, reserved_};
}

void TimedLoopback::Commit(const PacketAddress& address, Time ready) {
  const LinkModel& model = Wire(address.source_port);
  const Time sent =
      wires_[address.source_port % kMaxFabricPorts].Reserve(ready, model.TimeOf(reserved_length_));
  Push({.arrival = SaturatingAdd(sent, model.propagation),
        .sequence = sequence_++,
        .address = address,
        .length = reserved_length_,
        .bytes = reserved_,
        .flow = reserved_flow_});
  in_flight_ += PoolFor(reserved_length_).buffer_bytes;
  reserved_ = nullptr;
}

void TimedLoopback::Push(const Packet& packet) {
  arrivals_.push_back(packet);
  std::push_heap(arrivals_.begin(), arrivals_.end());
}

TimedLoopback::Packet TimedLoopback::Pop() {
  std::pop_heap(arrivals_.begin(), arrivals_.end());
  const Packet packet = arrivals_.back();
  arrivals_.pop_back();
  return packet;
}

bool TimedLoopback::Join(PacketHandler& handler, Packet& packet, Time now) {
  if (packet.offered || blocked_.empty()) return false;
  const auto flow = blocked_.find(packet.flow);
  if (flow == blocked_.end()) return false;
  packet.arrival = handler.ReadyFor(packet.address, packet.bytes, packet.length, now, true);
  packet.offered = true;
  flow->second.push_back(packet);
  return true;
}

void TimedLoopback::LetNextCome(uint32_t number, Time now) {
  const auto flow = blocked_.find(number);
  if (flow == blocked_.end()) return;
  if (flow->second.empty()) {
    blocked_.erase(flow);
    return;
  }
  Packet next = flow->second.front();
  flow->second.pop_front();
  next.arrival = std::max(next.arrival, now);
  Push(next);
}

uint32_t TimedLoopback::Poll(PacketHandler& handler, uint32_t budget, Time now) {
  uint32_t taken = 0;
  while (taken < budget && !arrivals_.empty() && arrivals_.front().arrival <= now) {
    Packet packet = Pop();
    if (Join(handler, packet, now)) continue;
    const Time ready =
        handler.ReadyFor(packet.address, packet.bytes, packet.length, now, !packet.offered);
    if (ready > now) {
      blocked_.try_emplace(packet.flow);
      packet.arrival = ready;
      packet.offered = true;
      Push(packet);
      continue;
    }
    handler.OnPacket(packet.address, packet.bytes, packet.length);
    Pool& pool = PoolFor(packet.length);
    pool.free.push_back(packet.bytes);
    in_flight_ -= pool.buffer_bytes;
    ++taken;
    if (packet.offered) LetNextCome(packet.flow, now);
  }
  return taken;
}

Time TimedLoopback::NextArrival() const {
  return arrivals_.empty() ? kNever : arrivals_.front().arrival;
}

}  // namespace simhca
