#include "sim/queues/send_queue.h"

#include <algorithm>
#include <cstring>

namespace simhca {

namespace {

constexpr uint32_t kUnit = 16;  // bytes

bool HasRemoteAddress(mlx5::WqeOpcode opcode) {
  switch (opcode) {
    case mlx5::WqeOpcode::kRdmaWrite:
    case mlx5::WqeOpcode::kRdmaWriteImmediate:
    case mlx5::WqeOpcode::kRdmaRead:
      return true;
    default:
      return false;
  }
}

bool IsKnown(mlx5::WqeOpcode opcode) {
  switch (opcode) {
    case mlx5::WqeOpcode::kSend:
    case mlx5::WqeOpcode::kSendImmediate:
    case mlx5::WqeOpcode::kSendInvalidate:
      return true;
    default:
      return HasRemoteAddress(opcode);
  }
}

// Reads the data part: one inline segment, or pointers.  False if it is neither.
bool ReadData(const std::byte* data, uint32_t units, SendWqe* wqe) {
  if (units == 0) return true;
  const auto* segments = reinterpret_cast<const mlx5::DataSegment*>(data);
  const uint32_t first = segments[0].byte_count;
  if ((first & mlx5::kInlineFlag) != 0) {
    const uint32_t length = first & ~mlx5::kInlineFlag;
    if (sizeof(Be32) + length > units * kUnit) return false;
    if (wqe->opcode == mlx5::WqeOpcode::kRdmaRead) return false;
    wqe->inline_bytes = data + sizeof(Be32);
    wqe->length = length;
    return true;
  }
  for (uint32_t i = 0; i < units; ++i) {
    const uint32_t length = segments[i].byte_count;
    if ((length & mlx5::kInlineFlag) != 0) return false;
    wqe->length += length;
  }
  wqe->segments = ScatterCursor(segments, units);
  return true;
}

}  // namespace

const std::byte* SendQueue::Contiguous(uint16_t block, uint32_t bytes, WqeScratch& scratch) const {
  const uint32_t first = block & (blocks_ - 1);
  const size_t start = size_t{first} * mlx5::kSendBlockBytes;
  const size_t to_end = size_t{blocks_} * mlx5::kSendBlockBytes - start;
  if (bytes <= to_end) return ring_ + start;
  if (scratch == nullptr) scratch = std::make_unique<std::byte[]>(mlx5::kMaxSendWqeBytes);
  std::memcpy(scratch.get(), ring_ + start, to_end);
  std::memcpy(scratch.get() + to_end, ring_, bytes - to_end);
  return scratch.get();
}

SendWqe SendQueue::Read(uint16_t block, uint32_t qpn, uint16_t posted, WqeScratch& scratch) const {
  SendWqe wqe;
  // A block never wraps, so neither does the control segment at its start.
  const auto* control = reinterpret_cast<const mlx5::ControlSegment*>(
      Contiguous(block, sizeof(mlx5::ControlSegment), scratch));
  const uint32_t units = control->size_units();
  const uint16_t available = static_cast<uint16_t>(posted - block);
  const uint32_t blocks = (units * kUnit + mlx5::kSendBlockBytes - 1) / mlx5::kSendBlockBytes;
  wqe.opcode = control->opcode();
  wqe.flags = control->fm_ce_se;
  wqe.immediate = control->immediate;
  if (units == 0 || blocks > std::min<uint32_t>(available, blocks_)) return wqe;
  wqe.blocks = static_cast<uint16_t>(blocks);
  if (control->qpn_ds >> 8 != qpn || control->block_index() != block || !IsKnown(wqe.opcode)) {
    return wqe;
  }
  const std::byte* bytes = Contiguous(block, units * kUnit, scratch);
  uint32_t at = 1;
  if (HasRemoteAddress(wqe.opcode)) {
    if (units < 2) return wqe;
    const auto* remote = reinterpret_cast<const mlx5::RemoteAddressSegment*>(bytes + at * kUnit);
    wqe.remote_address = remote->address;
    wqe.rkey = remote->rkey;
    ++at;
  }
  if (!ReadData(bytes + at * kUnit, units - at, &wqe)) return wqe;
  wqe.form = SendWqe::Form::kValid;
  return wqe;
}

}  // namespace simhca
