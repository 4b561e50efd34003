#include "sim/fabric/ring.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "tests/unit/fabric/recorder.h"

namespace simhca {
namespace {

constexpr uint32_t kCells = 256;

class RingTest : public testing::Test {
 protected:
  RingTest()
      : memory(static_cast<std::byte*>(mmap(nullptr, RingBytes(kCells), PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
        producer(memory, kCells),
        consumer(memory, kCells) {}
  ~RingTest() override { munmap(memory, RingBytes(kCells)); }

  std::byte* Cell(uint32_t index) { return memory + kRingControlBytes + index * kCellBytes; }

  bool Send(uint64_t number, uint32_t length) {
    std::byte* const bytes = producer.Reserve(length);
    if (bytes == nullptr) return false;
    FillPacket(number, bytes, length);
    producer.Commit({});
    return true;
  }

  // Writes a record as a hostile producer may.
  void Forge(uint32_t index, uint32_t stamp, uint32_t length) {
    const uint64_t label = PacketLabel::Pack(length, {});
    memcpy(Cell(index) + sizeof stamp, &label, sizeof label);
    memcpy(Cell(index), &stamp, sizeof stamp);
  }

  void ExpectRefused() {
    EXPECT_EQ(consumer.Poll(recorder, 100), 0u);
    EXPECT_TRUE(consumer.corrupt());
    EXPECT_TRUE(recorder.packets.empty());
    EXPECT_EQ(consumer.Poll(recorder, 100), 0u);
  }

  std::byte* const memory;
  RingProducer producer;
  RingConsumer consumer;
  Recorder recorder;
};

TEST_F(RingTest, LabelKeepsEveryField) {
  const PacketAddress address = {511, 257, 255, 129, 0xfe, 0x81};
  const uint64_t label = PacketLabel::Pack(kMaxPacketBytes, address);
  const PacketAddress read = PacketLabel::Address(label);
  EXPECT_EQ(PacketLabel::Length(label), kMaxPacketBytes);
  EXPECT_EQ(read.source_port, 511);
  EXPECT_EQ(read.destination_port, 257);
  EXPECT_EQ(read.source_gid_index, 255);
  EXPECT_EQ(read.destination_gid_index, 129);
  EXPECT_EQ(read.traffic_class, 0xfe);
  EXPECT_EQ(read.hop_limit, 0x81);
}

TEST_F(RingTest, SmallMessageFitsOneCacheLine) {
  EXPECT_EQ(RecordCells(12 + 40), 1u);
  EXPECT_EQ(RecordCells(12 + 41), 2u);
}

TEST_F(RingTest, PacketsOfRandomSizesArriveInOrderAndIntact) {
  std::minstd_rand random(5);
  uint64_t sent = 0, received = 0;
  while (received < 20'000) {
    ASSERT_FALSE(consumer.corrupt());
    for (uint32_t burst = random() % 8; burst > 0; --burst) {
      if (Send(sent, LengthOfPacket(sent))) ++sent;
    }
    if (random() % 2 == 0) producer.PrepareNext();
    recorder.packets.clear();
    consumer.Poll(recorder, random() % 8 + 1);
    for (const auto& packet : recorder.packets) {
      ASSERT_TRUE(IsPacket(received, packet.bytes.data(), packet.bytes.size())) << received;
      ++received;
    }
  }
  EXPECT_LE(received, sent);
}

TEST_F(RingTest, FullRingRefusesUntilTheConsumerReturnsCredit) {
  uint64_t sent = 0;
  while (Send(sent, 1000)) ++sent;
  EXPECT_GE(sent, (kCells - 2) / RecordCells(1000) - 1);
  EXPECT_FALSE(producer.corrupt());
  EXPECT_EQ(consumer.Poll(recorder, 1000), sent);
  uint64_t again = 0;
  while (Send(sent + again, 1000)) ++again;
  EXPECT_GE(again + 1, sent);  // the whole ring, but for what is lost at its end
  EXPECT_EQ(consumer.Poll(recorder, 1000), again);
}

TEST_F(RingTest, IdleConsumerOwesNoCredit) {
  ASSERT_TRUE(Send(0, 10));
  EXPECT_LT(producer.Consumed(), producer.committed());
  EXPECT_EQ(consumer.Poll(recorder, 1), 1u);
  EXPECT_EQ(consumer.Poll(recorder, 1), 0u);
  EXPECT_EQ(producer.Consumed(), producer.committed());
}

TEST_F(RingTest, ReservationWithoutCommitIsVoid) {
  std::byte* const first = producer.Reserve(100);
  ASSERT_NE(first, nullptr);
  memset(first, 0xee, 100);
  EXPECT_EQ(consumer.Poll(recorder, 1), 0u);
  ASSERT_TRUE(Send(0, 30));
  EXPECT_EQ(consumer.Poll(recorder, 10), 1u);
  EXPECT_EQ(recorder.packets[0].bytes.size(), 30u);
}

// Each cell of a large packet gets, where a stamp would be, the very stamp that a record there
// will have in the next lap; and after it a label that would be accepted.
TEST_F(RingTest, PayloadOfAnOlderLapIsNotTakenForARecord) {
  const uint64_t label = PacketLabel::Pack(20, {});
  uint64_t position = 0;
  for (int lap = 0; lap < 6; ++lap) {
    const uint64_t end = position + kCells;
    while (position < end) {
      const bool small = lap % 2 == 1;
      const uint32_t length = small ? 40 : 20 * kCellBytes - kRecordHeaderBytes;
      const uint32_t to_end = kCells - position % kCells;
      if (RecordCells(length) > to_end) position += to_end;
      std::byte* const bytes = producer.Reserve(length);
      ASSERT_NE(bytes, nullptr);
      memset(bytes, 0, length);
      for (uint32_t cell = 1; cell < RecordCells(length); ++cell) {
        const uint32_t stamp = static_cast<uint32_t>((position + cell + kCells) * 2 + 1);
        memcpy(bytes - kRecordHeaderBytes + cell * kCellBytes, &stamp, sizeof stamp);
        memcpy(bytes - kRecordHeaderBytes + cell * kCellBytes + 4, &label, sizeof label);
      }
      producer.Commit({});
      if (position % 3 == 0) producer.PrepareNext();
      position += RecordCells(length);
      recorder.packets.clear();
      ASSERT_EQ(consumer.Poll(recorder, 10), 1u) << "lap " << lap;
      ASSERT_FALSE(consumer.corrupt());
      ASSERT_EQ(recorder.packets[0].bytes.size(), length);
    }
  }
}

TEST_F(RingTest, RecordLongerThanAnyPacketIsRefused) {
  Forge(0, 1, kMaxPacketBytes + 1);
  ExpectRefused();
}

TEST_F(RingTest, RecordBeyondTheEndIsRefused) {
  for (uint32_t i = 0; i < kCells - 3; ++i) {
    ASSERT_TRUE(Send(i, 10));
    ASSERT_EQ(consumer.Poll(recorder, 10), 1u);
  }
  recorder.packets.clear();
  Forge(kCells - 3, (kCells - 3) * 2 + 1, 3 * kCellBytes);
  ExpectRefused();
}

TEST_F(RingTest, RecordWithAnotherPositionsStampIsRefused) {
  Forge(0, 3, 10);
  ExpectRefused();
}

TEST_F(RingTest, SkipOfAWholeLapIsRefused) {
  Forge(0, 1, 0);
  ExpectRefused();
}

TEST_F(RingTest, CreditForWhatWasNeverSentIsRefused) {
  reinterpret_cast<RingControl*>(memory)->consumed.store(1000);
  while (Send(0, 1000)) {
  }
  EXPECT_TRUE(producer.corrupt());
}

TEST_F(RingTest, CreditThatIsTakenBackIsRefused) {
  while (Send(0, 1000)) {
  }
  consumer.Poll(recorder, 1000);
  while (Send(0, 1000)) {
  }
  ASSERT_FALSE(producer.corrupt());
  reinterpret_cast<RingControl*>(memory)->consumed.store(0);
  EXPECT_EQ(producer.Reserve(1000), nullptr);
  EXPECT_TRUE(producer.corrupt());
}

class Verifier : public PacketHandler {
 public:
  void OnPacket(const PacketAddress& address, const std::byte* bytes, uint32_t length) override {
    good &= IsPacket(received, bytes, length) && address.source_port == received % 512;
    ++received;
  }
  uint64_t received = 0;
  bool good = true;
};

TEST_F(RingTest, ProducerAndConsumerMayRunAtTheSameTime) {
  constexpr uint64_t kPackets = 20'000;
  std::thread sender([&] {
    for (uint64_t sent = 0; sent < kPackets;) {
      const uint32_t length = LengthOfPacket(sent);
      std::byte* const bytes = producer.Reserve(length);
      if (bytes == nullptr) {
        std::this_thread::yield();
        continue;
      }
      FillPacket(sent, bytes, length);
      PacketAddress address;
      address.source_port = sent % 512;
      producer.Commit(address);
      if (++sent % 5 == 0) producer.PrepareNext();
    }
  });
  Verifier verifier;
  while (verifier.received < kPackets && !consumer.corrupt()) {
    if (consumer.Poll(verifier, 16) == 0) std::this_thread::yield();
  }
  sender.join();
  EXPECT_TRUE(verifier.good);
  EXPECT_FALSE(consumer.corrupt());
  EXPECT_TRUE(consumer.Empty());
}

}  // namespace
}  // namespace simhca
