#ifndef SIMHCA_SIM_DEVICE_QUEUE_PAIR_TABLE_H_
#define SIMHCA_SIM_DEVICE_QUEUE_PAIR_TABLE_H_

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

namespace simhca {

class QueuePair;

// The queue pairs of a process by number.  Two levels, since a process has numbers from few blocks
// of the 24-bit space: a look-up is two loads.
class QueuePairTable {
 public:
  QueuePair* Find(uint32_t qpn) const {
    const Block* block = blocks_[(qpn >> 8) & (kBlocks - 1)];
    return block != nullptr ? (*block)[qpn & 0xff] : nullptr;
  }

  void Set(uint32_t qpn, QueuePair* qp) {
    Block*& block = blocks_[qpn >> 8];
    if (block == nullptr) block = owned_.emplace_back(std::make_unique<Block>()).get();
    (*block)[qpn & 0xff] = qp;
  }

 private:
  static constexpr uint32_t kBlocks = 1u << 16;
  using Block = std::array<QueuePair*, 256>;
  struct Free {
    void operator()(Block** blocks) const { std::free(blocks); }
  };
  // From calloc: half a mebibyte of which only the few pages in use are ever touched.
  std::unique_ptr<Block* [], Free> blocks_ {
    static_cast<Block**>(std::calloc(kBlocks, sizeof(Block*)))
  };
  std::vector<std::unique_ptr<Block>> owned_;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_DEVICE_QUEUE_PAIR_TABLE_H_
