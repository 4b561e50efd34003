#ifndef SIMHCA_SIM_FABRIC_NUMBER_ALLOCATOR_H_
#define SIMHCA_SIM_FABRIC_NUMBER_ALLOCATOR_H_

#include <bitset>
#include <cstdint>
#include <map>

#include "sim/fabric/layout.h"

namespace simhca {

// Hands out the numbers of one process.  The fabric's numbers are owned in blocks, so that a
// packet's way is one table look-up; a block belongs to one process at a time.
//
// A number comes back as late as can be had cheaply: the process takes new blocks until it has
// some thousand free numbers, and gives blocks back when it has many more.
class NumberAllocator {
 public:
  // `owner`: as in FabricLayout::owners.
  NumberAllocator(FabricLayout& layout, uint32_t owner) : layout_(layout), owner_(owner) {}

  uint32_t Allocate();  // 0: none is left
  void Release(uint32_t number);

 private:
  static constexpr uint32_t kKeepFree = 4096;

  using Used = std::bitset<kNumbersPerBlock>;

  bool ClaimBlock();
  uint32_t NextFree();

  FabricLayout& layout_;
  const uint32_t owner_;
  std::map<uint32_t, Used> blocks_;
  uint32_t free_ = 0;
  uint32_t fresh_block_ = 0;  // the block last claimed; numbers from fresh_next_ on are unused yet
  uint32_t fresh_next_ = kNumbersPerBlock;
  bool all_claimed_ = false;  // the last search for a block found none
  uint32_t cursor_ = 0;       // where the search for a number used before goes on
};

}  // namespace simhca

#endif  // SIMHCA_SIM_FABRIC_NUMBER_ALLOCATOR_H_
