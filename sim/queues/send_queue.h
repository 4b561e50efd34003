#ifndef SIMHCA_SIM_QUEUES_SEND_QUEUE_H_
#define SIMHCA_SIM_QUEUES_SEND_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "sim/queues/doorbell_record.h"
#include "sim/queues/mlx5/layout.h"
#include "sim/queues/scatter_cursor.h"

namespace simhca {

// Room for one send WQE that crosses the ring's end and has to be put together.
using WqeScratch = std::unique_ptr<std::byte[]>;

// A send WQE as read from the ring.  The ring keeps its bytes until the WQE completes; those of a
// WQE that wraps stand in the scratch it was read with.
struct SendWqe {
  enum class Form : uint8_t { kValid, kMalformed };

  Form form = Form::kMalformed;
  mlx5::WqeOpcode opcode = mlx5::WqeOpcode::kNop;
  uint8_t flags = 0;  // mlx5::kSolicited ...
  uint16_t blocks = 1;
  uint32_t immediate = 0;  // as the program gave it
  uint32_t rkey = 0;
  uint64_t remote_address = 0;
  uint64_t length = 0;
  const std::byte* inline_bytes = nullptr;  // null: the data are in `segments`
  ScatterCursor segments;
};

// The device's side of a send queue: a ring of 64-byte blocks.
class SendQueue {
 public:
  SendQueue() = default;
  SendQueue(std::byte* ring, uint32_t blocks, std::byte* doorbell_record)
      : ring_(ring), blocks_(blocks), posted_(doorbell_record, mlx5::kSendRecord) {}

  // Block index after the last WQE posted, modulo 2^16.
  uint16_t posted() const { return blocks_ == 0 ? 0 : static_cast<uint16_t>(posted_.Load()); }

  // Reads the WQE that starts at `block`.  What does not follow the layout (size, opcode, segment
  // order, more blocks than are posted) comes back as malformed, one block long.
  SendWqe Read(uint16_t block, uint32_t qpn, uint16_t posted, WqeScratch& scratch) const;

 private:
  const std::byte* Contiguous(uint16_t block, uint32_t bytes, WqeScratch& scratch) const;

  std::byte* ring_ = nullptr;
  uint32_t blocks_ = 0;
  DoorbellRecord posted_;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_QUEUES_SEND_QUEUE_H_
