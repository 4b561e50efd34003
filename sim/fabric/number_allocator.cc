#include "sim/fabric/number_allocator.h"

namespace simhca {
namespace {

// Blocks are taken in steps of an odd stride, so that numbers of different processes differ in
// more than their low bits, and none comes again before all others.
constexpr uint32_t kBlockStride = 613;

uint32_t BlockAt(uint32_t step) { return (1 + step * kBlockStride) % kNumberBlocks; }

}  // namespace

uint32_t NumberAllocator::Allocate() {
  if (fresh_next_ == kNumbersPerBlock) {
    // A search for a block that nobody has is long: not for each of the last numbers.
    const bool wanted = free_ == 0 || (free_ < kKeepFree && !all_claimed_);
    if (!wanted || !ClaimBlock()) return NextFree();
  }
  Used& used = blocks_[fresh_block_];
  used.set(fresh_next_);
  --free_;
  return fresh_block_ * kNumbersPerBlock + fresh_next_++;
}

bool NumberAllocator::ClaimBlock() {
  for (uint32_t tries = 0; tries < kNumberBlocks; ++tries) {
    const uint32_t block = BlockAt(layout_.header.next_block.fetch_add(1));
    uint32_t nobody = 0;
    // Block 0 holds the numbers 0 and 1, which are special.  A block that we hold is not free, even
    // if the shared memory has come to say so.
    if (block == 0 || blocks_.contains(block)) continue;
    if (!layout_.owners[block].compare_exchange_strong(nobody, owner_)) continue;
    blocks_.emplace(block, Used());
    free_ += kNumbersPerBlock;
    fresh_block_ = block;
    fresh_next_ = 0;
    all_claimed_ = false;
    return true;
  }
  all_claimed_ = true;
  return false;
}

uint32_t NumberAllocator::NextFree() {
  if (free_ == 0) return 0;
  auto block = blocks_.lower_bound(cursor_ / kNumbersPerBlock);
  for (;;) {
    if (block == blocks_.end()) {
      block = blocks_.begin();
      cursor_ = 0;
    }
    const uint32_t base = block->first * kNumbersPerBlock;
    for (uint32_t i = cursor_ > base ? cursor_ - base : 0; i < kNumbersPerBlock; ++i) {
      if (block->second.test(i)) continue;
      block->second.set(i);
      --free_;
      cursor_ = base + i + 1;
      return base + i;
    }
    cursor_ = base + kNumbersPerBlock;
    ++block;
  }
}

void NumberAllocator::Release(uint32_t number) {
  const auto block = blocks_.find(number / kNumbersPerBlock);
  if (block == blocks_.end() || !block->second.test(number % kNumbersPerBlock)) return;
  block->second.reset(number % kNumbersPerBlock);
  ++free_;
  if (free_ < 2 * kKeepFree || !block->second.none()) return;
  if (block->first == fresh_block_ && fresh_next_ != kNumbersPerBlock) return;
  layout_.owners[block->first].store(0, std::memory_order_release);
  blocks_.erase(block);
  free_ -= kNumbersPerBlock;
}

}  // namespace simhca
