#include "sim/timing/receive_fetcher.h"

#include <algorithm>

namespace simhca {

ReceiveFetcher::ReceiveFetcher(const Config& config)
    : config_(config), room_(std::max<uint32_t>(config.prefetch, 1), 0) {}

void ReceiveFetcher::Post(Time at, uint32_t entries) {
  posted_ = std::max(posted_, claimed_);
  const uint64_t end = std::min(posted_ + entries, claimed_ + room_.size());
  // Later ones find room only when an entry before them is claimed, after this.
  for (uint64_t entry = posted_; entry < end; ++entry) RoomOf(entry) = std::max(RoomOf(entry), at);
  posted_ += entries;
}

Time ReceiveFetcher::Claim(Time now, bool follows_neighbour, PcieLink& link) {
  const uint64_t entry = claimed_++;
  const bool came_along = follows_neighbour && entry < read_end_ && RoomOf(entry) <= issued_;
  if (came_along) {
    on_device_ = last_;
  } else {
    issued_ = std::max(on_device_, RoomOf(entry));
    const uint32_t entries = EntriesWithRoom(entry, issued_);
    read_end_ = entry + entries;
    const PcieLink::ReadTimes times =
        link.ReadWithHead(issued_, entries * config_.wqe_bytes, config_.wqe_bytes);
    // Others came first only because they were asked for before this claim was.
    const bool overtaken = issued_ < now && times.head - link.IdleRead(config_.wqe_bytes) > now;
    const Duration earlier = overtaken ? now - issued_ : 0;
    head_ = times.head - earlier;
    last_ = times.last - earlier;
    on_device_ = head_;
    ++counters_.reads;
  }
  const Time claimed_at = std::max(now, on_device_);
  RoomOf(entry) = claimed_at;  // for the entry `prefetch` further on
  ++counters_.claims;
  if (claimed_at > now) {
    ++counters_.waits;
    counters_.waited += claimed_at - now;
  }
  return claimed_at;
}

uint32_t ReceiveFetcher::EntriesWithRoom(uint64_t first, Time at) const {
  uint64_t most = room_.size();
  if (posted_ > first) most = std::min(most, posted_ - first);
  uint32_t entries = 1;
  while (entries < most && room_[(first + entries) % room_.size()] <= at) ++entries;
  return entries;
}

}  // namespace simhca
