#ifndef SIMHCA_SIM_FABRIC_RING_H_
#define SIMHCA_SIM_FABRIC_RING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "sim/fabric/link.h"

namespace simhca {

// A ring of packets with one producer and one consumer, usually in different processes.
//
// The ring is a sequence of cells of one cache line.  A record occupies contiguous cells:
//
//   offset 0   stamp, 4 bytes: valid flag, written last, derived from the record's position
//   offset 4   label, 8 bytes: length and PacketAddress, see PacketLabel
//   offset 12  the packet, from BTH on
//
// so a packet of up to 52 bytes (BTH and 40 bytes of payload) is one cache line, flag included,
// and needs no index that both sides share.  Where a record does not fit before the end of the
// ring, a record of length 0 there sends the consumer to cell 0.
//
// The consumer looks for a stamp at the cell after the last record.  What lies there may be
// payload of an older lap that looks like the right stamp, so the producer clears that cell's
// stamp before it publishes the record; therefore one cell more than the record must be free.
// It also clears the cell behind in advance (PrepareNext), when nobody waits for it.
//
// Each side trusts only its own state: what it reads from the shared memory is checked, and a
// ring that breaks the rules is corrupt for good.
inline constexpr uint32_t kCellBytes = 64;
inline constexpr uint32_t kRecordHeaderBytes = 12;
inline constexpr uint32_t kRingControlBytes = 4096;  // the cells start on a page of their own

// What precedes the cells.
struct RingControl {
  alignas(kCellBytes) std::atomic<uint64_t> consumed;  // cells, ever; written by the consumer
};

// Bytes of memory, initially zero, that a ring of `cells` cells (a power of two) takes.
constexpr size_t RingBytes(uint32_t cells) {
  return kRingControlBytes + size_t{cells} * kCellBytes;
}

// Cells of a record whose packet has `length` bytes.
constexpr uint32_t RecordCells(uint32_t length) {
  return (length + kRecordHeaderBytes + kCellBytes - 1) / kCellBytes;
}

// Length and address of a packet in 8 bytes: ports have 9 bits, the length 13.
class PacketLabel {
 public:
  static uint64_t Pack(uint32_t length, const PacketAddress& address);
  static uint32_t Length(uint64_t label) { return label & 0x1fff; }
  static PacketAddress Address(uint64_t label);
};

class RingProducer {
 public:
  RingProducer(std::byte* memory, uint32_t cells);

  // Room for a packet of 1 to kMaxPacketBytes bytes, or null if the consumer has to free cells
  // first (or never will: see corrupt()).  Void at the next Reserve unless committed.
  std::byte* Reserve(uint32_t length);

  // Publishes the packet last reserved.
  void Commit(const PacketAddress& address);

  // After a batch: what the next small packet would have to do before it can be seen.
  void PrepareNext();

  // Cells committed, ever, and those of them that the consumer has taken (all, once corrupt).
  uint64_t committed() const { return head_; }
  uint64_t Consumed();

  bool corrupt() const { return corrupt_; }

 private:
  std::byte* Cell(uint64_t position) const { return cells_ + (position & mask_) * kCellBytes; }
  void Publish(uint64_t position, uint64_t label);
  void ReadCredit();

  RingControl* const control_;
  std::byte* const cells_;
  const uint32_t mask_;
  bool corrupt_ = false;
  uint64_t head_ = 0;      // position of the next record
  uint64_t consumed_ = 0;  // as last read
  uint64_t cleared_ = 0;   // the stamp of this position's cell is known to be clear
  uint64_t record_ = 0;    // the reservation: its position (beyond head_ if cells are skipped)
  uint32_t length_ = 0;    // 0: nothing is reserved
};

class RingConsumer {
 public:
  RingConsumer(std::byte* memory, uint32_t cells);

  // Hands at most `budget` packets to `handler`, in place; returns how many.
  uint32_t Poll(PacketHandler& handler, uint32_t budget);

  // Nothing that was committed is left.
  bool Empty() const;

  // The producer broke the rules: nothing more is read.
  bool corrupt() const { return corrupt_; }

 private:
  std::byte* Cell(uint64_t position) const { return cells_ + (position & mask_) * kCellBytes; }
  void ReturnCredit();

  RingControl* const control_;
  std::byte* const cells_;
  const uint32_t mask_;
  bool corrupt_ = false;
  uint64_t tail_ = 0;      // position of the next record
  uint64_t returned_ = 0;  // as last written to control_
};

}  // namespace simhca

#endif  // SIMHCA_SIM_FABRIC_RING_H_
