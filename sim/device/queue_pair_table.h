#ifndef SIMHCA_SIM_DEVICE_QUEUE_PAIR_TABLE_H_
#define SIMHCA_SIM_DEVICE_QUEUE_PAIR_TABLE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace simhca {

class QueuePair;

// The queue pairs of a process by number.  Two levels, since a process has numbers from few blocks
// of the 24-bit space: a look-up is two loads.
class QueuePairTable {
 public:
  QueuePairTable() : blocks_(kBlocks) {}

  QueuePair* Find(uint32_t qpn) const {
    const Block* block = blocks_[(qpn >> 8) & (kBlocks - 1)].get();
    return block != nullptr ? (*block)[qpn & 0xff] : nullptr;
  }

  void Set(uint32_t qpn, QueuePair* qp) {
    std::unique_ptr<Block>& block = blocks_[qpn >> 8];
    if (block == nullptr) block = std::make_unique<Block>();
    (*block)[qpn & 0xff] = qp;
  }

 private:
  static constexpr uint32_t kBlocks = 1u << 16;
  using Block = std::array<QueuePair*, 256>;
  std::vector<std::unique_ptr<Block>> blocks_;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_DEVICE_QUEUE_PAIR_TABLE_H_
