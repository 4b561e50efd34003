// A ring in shared memory whose other end belongs to a hostile process, which may write any bytes
// anywhere in it at any time: as consumer and as producer, this end hands out nothing that lies
// outside the ring and takes nothing on trust.

#include "sim/fabric/ring.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "tests/fuzz/input.h"

namespace simhca::fuzz {
namespace {

constexpr size_t kMaxSteps = 500;

// Reads all of each packet, so that a sanitizer sees one that lies elsewhere.
class Reader final : public PacketHandler {
 public:
  Reader(const std::byte* begin, size_t size) : begin_(begin), end_(begin + size) {}

  void OnPacket(const PacketAddress& address, const std::byte* bytes, uint32_t length) override {
    Require(length > 0 && length <= kMaxPacketBytes, "a packet has a length that packets have");
    Require(bytes >= begin_ && bytes + length <= end_, "a packet lies in the ring");
    Require(address.source_port < kMaxFabricPorts && address.destination_port < kMaxFabricPorts,
            "ports have numbers that ports have");
    std::memcpy(copy_, bytes, length);
    ++count_;
  }
  uint32_t count() const { return count_; }

 private:
  const std::byte* const begin_;
  const std::byte* const end_;
  std::byte copy_[kMaxPacketBytes];
  uint32_t count_ = 0;
};

class Ring {
 public:
  explicit Ring(uint32_t cells)
      : cells_(cells),
        bytes_(RingBytes(cells)),
        memory_(static_cast<std::byte*>(std::aligned_alloc(kCellBytes, bytes_))) {
    std::memset(memory_.get(), 0, bytes_);
  }

  void Play(Input& input);

 private:
  void Scribble(Input& input);
  void ForgeRecord(Input& input);
  void ForgeCredit(Input& input);
  void Send(Input& input);
  void Receive(Input& input);

  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  std::byte* Cell(uint64_t position) {
    return memory_.get() + kRingControlBytes + (position & (cells_ - 1)) * kCellBytes;
  }

  const uint32_t cells_;
  const size_t bytes_;
  const std::unique_ptr<std::byte, Free> memory_;
  RingProducer producer_{memory_.get(), cells_};
  RingConsumer consumer_{memory_.get(), cells_};
  Reader reader_{memory_.get() + kRingControlBytes, size_t{cells_} * kCellBytes};
  uint64_t forged_ = 0;  // where the next forged record goes
};

void Ring::Scribble(Input& input) {
  const size_t offset = input.Take<uint32_t>() % bytes_;
  const auto bytes = input.Bytes(std::min<size_t>(input.Byte(), bytes_ - offset));
  std::copy(bytes.begin(), bytes.end(), memory_.get() + offset);
}

// A record where the consumer looks next, if nothing else was written meanwhile.
void Ring::ForgeRecord(Input& input) {
  const uint8_t form = input.Byte();
  const uint32_t length = (form & 1) != 0 ? input.Take<uint16_t>() : input.Byte();
  const uint64_t position = forged_ + ((form & 2) != 0 ? input.Byte() : 0);
  const uint32_t stamp =
      (form & 4) != 0 ? input.Take<uint32_t>() : static_cast<uint32_t>(position) * 2 + 1;
  const uint64_t label = PacketLabel::Pack(length, {}) | input.Take<uint64_t>() << 13;
  std::memcpy(Cell(position) + sizeof stamp, &label, sizeof label);
  std::memcpy(Cell(position), &stamp, sizeof stamp);
  const uint64_t to_end = cells_ - (position & (cells_ - 1));
  forged_ = position + (length == 0 ? to_end : RecordCells(length));
}

void Ring::ForgeCredit(Input& input) {
  auto* control = std::launder(reinterpret_cast<RingControl*>(memory_.get()));
  const uint64_t credit = input.Flag() ? input.Take<uint64_t>() : input.Byte();
  control->consumed.store(credit);
}

void Ring::Send(Input& input) {
  const uint32_t length = 1 + input.Take<uint16_t>() % kMaxPacketBytes;
  std::byte* const bytes = producer_.Reserve(length);
  if (bytes != nullptr) {
    Require(bytes >= Cell(0) && bytes + length <= Cell(0) + size_t{cells_} * kCellBytes,
            "a reservation lies in the ring");
    std::memset(bytes, 0x5a, length);
    if (input.Byte() % 8 != 0) producer_.Commit({});
  }
  if (input.Flag()) producer_.PrepareNext();
}

void Ring::Receive(Input& input) {
  const bool was_corrupt = consumer_.corrupt();
  const uint32_t before = reader_.count();
  const uint32_t budget = input.Byte();
  const uint32_t taken = consumer_.Poll(reader_, budget);
  Require(taken <= budget && reader_.count() - before == taken, "no more than was asked for");
  Require(!was_corrupt || taken == 0, "a corrupt ring is not read");
  Require(!consumer_.corrupt() || consumer_.Empty(), "a corrupt ring is empty");
}

void Ring::Play(Input& input) {
  for (size_t steps = 0; steps < kMaxSteps && !input.empty(); ++steps) {
    switch (input.Below(8)) {
      case 0:
        Scribble(input);
        break;
      case 1:
      case 2:
        ForgeRecord(input);
        break;
      case 3:
        ForgeCredit(input);
        break;
      case 4:
      case 5:
        Send(input);
        break;
      case 6:
        producer_.Consumed();
        break;
      default:
        Receive(input);
    }
  }
}

}  // namespace
}  // namespace simhca::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  simhca::fuzz::Input input(bytes, size);
  // The largest packet takes 66 cells, so that the smaller ring never holds one.
  simhca::fuzz::Ring ring(input.Flag() ? 64 : 256);
  ring.Play(input);
  return 0;
}
