#ifndef SIMHCA_SIM_TIMING_CONTEXT_CACHE_H_
#define SIMHCA_SIM_TIMING_CONTEXT_CACHE_H_

#include <cstdint>
#include <vector>

namespace simhca {

// Which contexts (of queue pairs, CQs, SRQs, regions) are on the chip: the `capacity` ones used
// last. O(1).  Memory grows with the number of keys, up to the capacity; from then on nothing is
// allocated, so a device with millions of entries costs what its program uses.
class ContextCache {
 public:
  explicit ContextCache(uint32_t capacity);  // >= 1

  // Uses the context of `key`.  True if it was on the chip; otherwise it is now, and where the
  // cache was full the one used longest ago is not.
  bool Touch(uint32_t key);

  // The object is gone: its context takes no room any more.
  void Forget(uint32_t key);

  uint32_t size() const { return size_; }
  uint64_t hits() const { return hits_; }
  uint64_t misses() const { return misses_; }

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};

  struct Entry {
    uint32_t key;
    uint32_t newer;  // towards the one used last
    uint32_t older;
    uint32_t next;  // of the same bucket, or of the free ones
  };

  uint32_t& BucketOf(uint32_t key);
  uint32_t Find(uint32_t key);
  uint32_t Acquire();
  void Unlink(uint32_t index);  // from the order of use
  void LinkNewest(uint32_t index);
  void LeaveBucket(uint32_t index);
  void GrowBuckets();

  const uint32_t capacity_;
  std::vector<Entry> entries_;
  std::vector<uint32_t> buckets_;  // a power of two of them; first entry or kNone
  uint32_t bucket_bits_;
  uint32_t newest_ = kNone;
  uint32_t oldest_ = kNone;
  uint32_t free_ = kNone;
  uint32_t size_ = 0;
  uint64_t hits_ = 0;
  uint64_t misses_ = 0;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_TIMING_CONTEXT_CACHE_H_
