#include "sim/timing/context_cache.h"

#include <algorithm>

namespace simhca {
namespace {

constexpr uint32_t kFirstBucketBits = 4;

}  // namespace

ContextCache::ContextCache(uint32_t capacity)
    : capacity_(std::max<uint32_t>(capacity, 1)),
      buckets_(size_t{1} << kFirstBucketBits, kNone),
      bucket_bits_(kFirstBucketBits) {}

bool ContextCache::Touch(uint32_t key) {
  uint32_t index = Find(key);
  if (index != kNone) {
    ++hits_;
    if (index != newest_) {
      Unlink(index);
      LinkNewest(index);
    }
    return true;
  }
  ++misses_;
  index = Acquire();
  entries_[index].key = key;
  uint32_t& bucket = BucketOf(key);
  entries_[index].next = bucket;
  bucket = index;
  LinkNewest(index);
  ++size_;
  return false;
}

void ContextCache::Forget(uint32_t key) {
  const uint32_t index = Find(key);
  if (index == kNone) return;
  LeaveBucket(index);
  Unlink(index);
  entries_[index].next = free_;
  free_ = index;
  --size_;
}

uint32_t& ContextCache::BucketOf(uint32_t key) {
  // Numbers of objects are often multiples of a power of two: the upper bits of the product mix
  // all of them (2^32 over the golden ratio).
  return buckets_[(key * 2654435769u) >> (32 - bucket_bits_)];
}

uint32_t ContextCache::Find(uint32_t key) {
  uint32_t index = BucketOf(key);
  while (index != kNone && entries_[index].key != key) index = entries_[index].next;
  return index;
}

// An entry that is in no list: a free one, a new one, or the oldest.
uint32_t ContextCache::Acquire() {
  if (free_ != kNone) {
    const uint32_t index = free_;
    free_ = entries_[index].next;
    return index;
  }
  if (entries_.size() < capacity_) {
    if (entries_.size() == buckets_.size()) GrowBuckets();
    entries_.push_back({});
    return static_cast<uint32_t>(entries_.size() - 1);
  }
  const uint32_t index = oldest_;
  LeaveBucket(index);
  Unlink(index);
  --size_;
  return index;
}

void ContextCache::Unlink(uint32_t index) {
  const Entry& entry = entries_[index];
  (entry.newer == kNone ? newest_ : entries_[entry.newer].older) = entry.older;
  (entry.older == kNone ? oldest_ : entries_[entry.older].newer) = entry.newer;
}

void ContextCache::LinkNewest(uint32_t index) {
  entries_[index].newer = kNone;
  entries_[index].older = newest_;
  (newest_ == kNone ? oldest_ : entries_[newest_].newer) = index;
  newest_ = index;
}

void ContextCache::LeaveBucket(uint32_t index) {
  uint32_t* link = &BucketOf(entries_[index].key);
  while (*link != index) link = &entries_[*link].next;
  *link = entries_[index].next;
}

// Only called while no entry is free: all are in a bucket.
void ContextCache::GrowBuckets() {
  ++bucket_bits_;
  buckets_.assign(size_t{1} << bucket_bits_, kNone);
  for (uint32_t index = 0; index < entries_.size(); ++index) {
    uint32_t& bucket = BucketOf(entries_[index].key);
    entries_[index].next = bucket;
    bucket = index;
  }
}

}  // namespace simhca
