#include "sim/fabric/ring.h"

#include <cstring>
#include <new>

namespace simhca {
namespace {

// Never 0, which is the clear stamp.
uint32_t StampOf(uint64_t position) { return static_cast<uint32_t>(position) * 2 + 1; }

std::atomic<uint32_t>& Stamp(std::byte* cell) {
  return *std::launder(reinterpret_cast<std::atomic<uint32_t>*>(cell));
}

}  // namespace

uint64_t PacketLabel::Pack(uint32_t length, const PacketAddress& address) {
  return uint64_t{length & 0x1fff} | uint64_t{address.source_port & 0x1ffu} << 13 |
         uint64_t{address.destination_port & 0x1ffu} << 22 |
         uint64_t{address.source_gid_index} << 31 | uint64_t{address.destination_gid_index} << 39 |
         uint64_t{address.traffic_class} << 47 | uint64_t{address.hop_limit} << 55;
}

PacketAddress PacketLabel::Address(uint64_t label) {
  PacketAddress address;
  address.source_port = label >> 13 & 0x1ff;
  address.destination_port = label >> 22 & 0x1ff;
  address.source_gid_index = label >> 31 & 0xff;
  address.destination_gid_index = label >> 39 & 0xff;
  address.traffic_class = label >> 47 & 0xff;
  address.hop_limit = label >> 55 & 0xff;
  return address;
}

// ------------------------------------------------------------------------------ producer

RingProducer::RingProducer(std::byte* memory, uint32_t cells)
    : control_(reinterpret_cast<RingControl*>(memory)),
      cells_(memory + kRingControlBytes),
      mask_(cells - 1) {}

void RingProducer::ReadCredit() {
  const uint64_t consumed = control_->consumed.load(std::memory_order_acquire);
  if (consumed < consumed_ || consumed > head_) {
    corrupt_ = true;
  } else {
    consumed_ = consumed;
  }
}

std::byte* RingProducer::Reserve(uint32_t length) {
  const uint32_t cells = RecordCells(length);
  const uint64_t to_end = mask_ + 1 - (head_ & mask_);
  const uint64_t record = cells <= to_end ? head_ : head_ + to_end;
  // Two more than the record: the cell whose stamp must be clear, and the one PrepareNext clears.
  const uint64_t end = record + cells + 2;
  length_ = 0;
  if (end - consumed_ > mask_ + 1) [[unlikely]] {
    if (!corrupt_) ReadCredit();
    if (corrupt_ || end - consumed_ > mask_ + 1) return nullptr;
  }
  record_ = record;
  length_ = length;
  return Cell(record) + kRecordHeaderBytes;
}

void RingProducer::Publish(uint64_t position, uint64_t label) {
  std::byte* const cell = Cell(position);
  std::memcpy(cell + sizeof(uint32_t), &label, sizeof label);
  Stamp(cell).store(StampOf(position), std::memory_order_release);
}

void RingProducer::Commit(const PacketAddress& address) {
  const uint64_t next = record_ + RecordCells(length_);
  if (cleared_ != next) Stamp(Cell(next)).store(0, std::memory_order_relaxed);
  Publish(record_, PacketLabel::Pack(length_, address));
  if (record_ != head_) Publish(head_, 0);  // last: the consumer waits for this one
  head_ = cleared_ = next;
  length_ = 0;
}

void RingProducer::PrepareNext() {
  if (cleared_ == head_ + 1) return;
  Stamp(Cell(head_ + 1)).store(0, std::memory_order_relaxed);
  cleared_ = head_ + 1;
}

uint64_t RingProducer::Consumed() {
  if (!corrupt_) ReadCredit();
  return corrupt_ ? head_ : consumed_;
}

// ------------------------------------------------------------------------------ consumer

RingConsumer::RingConsumer(std::byte* memory, uint32_t cells)
    : control_(reinterpret_cast<RingControl*>(memory)),
      cells_(memory + kRingControlBytes),
      mask_(cells - 1) {}

void RingConsumer::ReturnCredit() {
  control_->consumed.store(tail_, std::memory_order_release);
  returned_ = tail_;
}

bool RingConsumer::Empty() const {
  return corrupt_ || Stamp(Cell(tail_)).load(std::memory_order_acquire) == 0;
}

uint32_t RingConsumer::Poll(PacketHandler& handler, uint32_t budget) {
  uint32_t taken = 0;
  while (taken < budget && !corrupt_) {
    std::byte* const cell = Cell(tail_);
    const uint32_t stamp = Stamp(cell).load(std::memory_order_acquire);
    if (stamp == 0) {
      // The producer may be waiting for room: an idle consumer owes no credit.
      if (returned_ != tail_) ReturnCredit();
      break;
    }
    uint64_t label;
    std::memcpy(&label, cell + sizeof stamp, sizeof label);
    asm volatile("" : "+r"(label));  // read once: what is checked is what is used
    const uint32_t length = PacketLabel::Length(label);
    const uint64_t index = tail_ & mask_;
    const uint64_t to_end = mask_ + 1 - index;
    const uint32_t cells = length == 0 ? static_cast<uint32_t>(to_end) : RecordCells(length);
    if (stamp != StampOf(tail_) || length > kMaxPacketBytes || cells > to_end ||
        (length == 0 && index == 0)) {
      corrupt_ = true;
      break;
    }
    if (length != 0) {
      handler.OnPacket(PacketLabel::Address(label), cell + kRecordHeaderBytes, length);
      ++taken;
    }
    tail_ += cells;
    if (tail_ - returned_ > mask_ / 8) ReturnCredit();
  }
  return taken;
}

}  // namespace simhca
