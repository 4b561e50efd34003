// The shared file of a fabric on which a hostile process of the same user lives: it may write
// anything to the header, the ring directory, the owners of numbers, the slots and its rings, while
// this process sends, receives, allocates numbers, looks after its peers, lists the fabric and
// lets another member in.

#include "sim/fabric/fabric.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "sim/fabric/fabric_list.h"
#include "sim/fabric/registry.h"
#include "tests/fuzz/input.h"

namespace simhca::fuzz {
namespace {

constexpr size_t kMaxSteps = 100;
constexpr uint32_t kRings = 4;    // that the hostile process uses
constexpr uint32_t kMembers = 4;  // slots that it plays

// Where the fabrics of this process are; goes away with it.
class Folder {
 public:
  Folder() { Require(mkdtemp(path_) != nullptr, "there is room for a folder in /dev/shm"); }
  ~Folder() {
    std::error_code none;
    std::filesystem::remove_all(path_, none);
  }
  const char* path() const { return path_; }

 private:
  char path_[32] = "/dev/shm/simhca-fuzz-XXXXXX";
};

const std::string& Directory() {
  static const Folder folder;
  static const std::string path = folder.path();
  return path;
}

class Reader final : public PacketHandler {
 public:
  void OnPacket(const PacketAddress&, const std::byte* bytes, uint32_t length) override {
    Require(length > 0 && length <= kMaxPacketBytes, "a packet has a length that packets have");
    std::memcpy(copy_, bytes, length);
  }

 private:
  std::byte copy_[kMaxPacketBytes];
};

Fabric::Options MemberOptions() {
  Fabric::Options options;
  options.name = std::string("f");
  options.directory = Directory();
  return options;
}

// The hostile process's view of the file.
class Hostile {
 public:
  Hostile();
  ~Hostile() { munmap(memory_, kBytes); }

  FabricLayout& layout() { return *reinterpret_cast<FabricLayout*>(memory_); }
  void Scribble(Input& input);
  void PlayMember(Input& input);
  void AnnounceRing(Input& input);
  void WriteRecord(Input& input);

 private:
  static constexpr size_t kBytes = RingOffset(kRings);

  std::byte* memory_;
  uint64_t forged_[kRings] = {};
};

Hostile::Hostile() {
  const int file = open(FabricPath(Directory(), "f").c_str(), O_RDWR);
  Require(file >= 0, "a fabric that has members has a file");
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  Require(memory != MAP_FAILED, "the file can be mapped");
  close(file);
  memory_ = static_cast<std::byte*>(memory);
}

void Hostile::Scribble(Input& input) {
  struct Part {
    size_t offset, size;
  };
  const size_t slot = offsetof(FabricLayout, slots);
  const Part parts[] = {{0, sizeof(FabricHeader)},
                        {offsetof(FabricLayout, rings), kRings * sizeof(RingEntry)},
                        {offsetof(FabricLayout, rings), sizeof(FabricLayout::rings)},
                        {offsetof(FabricLayout, owners), sizeof(FabricLayout::owners)},
                        {slot, kMembers * sizeof(ProcessSlot)},
                        {slot, sizeof(FabricLayout::slots)},
                        {RingOffset(0), kRings * kRingStride}};
  const Part part = parts[input.Below(std::size(parts))];
  const size_t offset = input.Take<uint32_t>() % part.size;
  const auto bytes = input.Bytes(std::min<size_t>(input.Below(64), part.size - offset));
  std::copy(bytes.begin(), bytes.end(), memory_ + part.offset + offset);
}

// A process in a slot, with a block of numbers: the second block is among those that this end
// sends to.
void Hostile::PlayMember(Input& input) {
  const uint32_t slot = input.Below(kMembers);
  const uint32_t generation = 1 + input.Byte();
  ProcessSlot& process = layout().slots[slot];
  process.in_use.store(input.Byte() % 4 != 0);
  process.generation.store(generation);
  process.pid = input.Flag() ? static_cast<uint32_t>(getpid()) : input.Take<uint32_t>();
  process.pid_namespace = input.Flag() ? layout().slots[0].pid_namespace : 0;
  if (input.Flag()) process.missing_since.store(input.Take<int64_t>());
  layout().owners[input.Below(4)].store(MakeOwner(slot, generation));
}

void Hostile::AnnounceRing(Input& input) {
  const uint32_t sender = input.Below(kMembers);
  const uint32_t receiver = input.Below(2);
  const uint32_t ring = input.Below(kRings);
  const uint32_t flags = kRingInUse | (input.Byte() & 3u) << 17;
  layout().rings[ring].store(flags | receiver << 8 | sender);
  layout().slots[receiver].inbound[sender].store(static_cast<uint16_t>(ring + 1));
  layout().slots[receiver].inbound_version.fetch_add(1);
  forged_[ring] = 0;
}

void Hostile::WriteRecord(Input& input) {
  const uint32_t ring = input.Below(kRings);
  const uint32_t length = input.Take<uint16_t>();
  const uint64_t position = forged_[ring];
  std::byte* const cell =
      memory_ + RingOffset(ring) + kRingControlBytes + (position & (kRingCells - 1)) * kCellBytes;
  const uint64_t label = PacketLabel::Pack(length, {});
  const uint32_t stamp =
      input.Byte() % 8 == 0 ? input.Take<uint32_t>() : static_cast<uint32_t>(position) * 2 + 1;
  std::memcpy(cell + sizeof stamp, &label, sizeof label);
  std::memcpy(cell, &stamp, sizeof stamp);
  forged_[ring] += RecordCells(length);
}

// This process, and what it does.
class Member {
 public:
  Member() {
    Require(Fabric::Join(MemberOptions(), &fabric_, &error_) == 0, "a fabric can be made");
    hostile_.emplace();
  }
  ~Member() {
    second_.reset();
    fabric_.reset();
    hostile_.reset();
    Registry::Remove(Directory(), "f");
    Require(access(FabricPath(Directory(), "f").c_str(), F_OK) != 0,
            "a dead fabric can be removed");
  }

  void Play(Input& input);

 private:
  void Send(Input& input);
  void Number(Input& input);
  void Upkeep(Input& input);
  void LookAround();

  std::string error_;
  std::unique_ptr<Fabric> fabric_;
  std::unique_ptr<Fabric> second_;
  std::optional<Hostile> hostile_;
  Reader reader_;
  std::set<uint32_t> numbers_;
  bool joined_again_ = false;
};

void Member::Send(Input& input) {
  const uint32_t number = input.Below(4) * kNumbersPerBlock + input.Byte();
  const uint32_t length = input.Take<uint16_t>();
  for (uint32_t repeat = 1 + input.Below(8); repeat > 0; --repeat) {
    const Link::Reservation room = fabric_->link().Reserve(number, length);
    if (room.status != Link::Status::kReady) break;
    std::memset(room.bytes, 0x5a, length);
    fabric_->link().Commit({}, 0);
  }
  fabric_->link().Flush();
}

void Member::Number(Input& input) {
  for (uint32_t count = input.Byte(); count > 0; --count) {
    const uint32_t number = fabric_->AllocateNumber();
    if (number == 0) break;
    Require(number > 1 && number < 1 << 24, "numbers have 24 bits and are not special");
    Require(numbers_.insert(number).second, "a number is given once");
  }
  const uint32_t number =
      input.Flag() && !numbers_.empty() ? *numbers_.begin() : input.Take<uint32_t>();
  fabric_->ReleaseNumber(number);
  numbers_.erase(number);
}

void Member::Upkeep(Input& input) {
  switch (input.Below(5)) {
    case 0:
      fabric_->Maintain();
      break;
    case 1:
      fabric_->WantWake(input.Flag());
      break;
    case 2:
      fabric_->Sleep(kMicrosecond);
      break;
    case 3:
      fabric_->Wake();
      break;
    default:
      fabric_->Beat();
      fabric_->trouble();
  }
}

void Member::LookAround() {
  for (const FabricInfo& info : ListFabrics(Directory())) {
    Require(info.processes.size() <= kMaxProcesses, "a fabric has at most 256 processes");
  }
  if (joined_again_) return;
  joined_again_ = true;
  if (Fabric::Join(MemberOptions(), &second_, &error_) != 0) return;
  Require(second_->epoch_ns() >= 0 && second_->epoch_ns() <= MonotonicNanoseconds(),
          "a fabric's time began before now");
}

void Member::Play(Input& input) {
  for (size_t steps = 0; steps < kMaxSteps && !input.empty(); ++steps) {
    switch (input.Below(12)) {
      case 0:
      case 1:
        hostile_->Scribble(input);
        break;
      case 2:
        hostile_->PlayMember(input);
        break;
      case 3:
        hostile_->AnnounceRing(input);
        break;
      case 4:
        hostile_->WriteRecord(input);
        break;
      case 5:
      case 6:
        Send(input);
        break;
      case 7:
        Number(input);
        break;
      case 8:
        fabric_->PeerOf(input.Flag() ? input.Take<uint32_t>() : input.Take<uint16_t>());
        break;
      case 9:
        Upkeep(input);
        break;
      case 10:
        LookAround();
        break;
      default:
        fabric_->link().Poll(reader_, 1 + input.Byte(), 0);
        if (second_ != nullptr) second_->link().Poll(reader_, 1 + input.Byte(), 0);
    }
  }
}

}  // namespace
}  // namespace simhca::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  simhca::fuzz::Input input(bytes, size);
  simhca::fuzz::Member member;
  member.Play(input);
  return 0;
}
