// Writes random bytes into the shared memory of a fabric, as a program with a stray pointer might.
//
// usage: scribble FILE SEED MILLISECONDS AREA
//   AREA: header, directory, owners, slots, rings (those in use), or all
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include "sim/fabric/layout.h"

namespace simhca {
namespace {

constexpr uint32_t kSlotsLookedAt = 8;  // those that a test's few processes have
constexpr uint32_t kRingsLookedAt = 16;

class Scribbler {
 public:
  Scribbler(std::byte* memory, uint32_t seed) : memory_(memory), random_(seed) {}

  void WriteInto(const std::string& area) {
    static constexpr const char* kAreas[] = {"header", "directory", "owners", "slots", "rings"};
    const std::string chosen = area == "all" ? kAreas[random_() % std::size(kAreas)] : area;
    if (chosen == "header") {
      // Not the words by which a joining process recognises the file.
      Scatter(offsetof(FabricHeader, epoch_ns),
              sizeof(FabricHeader) - offsetof(FabricHeader, epoch_ns));
    } else if (chosen == "directory") {
      Scatter(offsetof(FabricLayout, rings), kRingsLookedAt * sizeof(RingEntry));
    } else if (chosen == "owners") {
      ScatterOwners();
    } else if (chosen == "slots") {
      const size_t slot = random_() % kSlotsLookedAt;
      Scatter(offsetof(FabricLayout, slots) + slot * sizeof(ProcessSlot), sizeof(ProcessSlot));
    } else {
      WriteIntoARing();
    }
  }

 private:
  FabricLayout& layout() { return *reinterpret_cast<FabricLayout*>(memory_); }

  // Into a ring in use: the credit, the head of a record, or anywhere.
  void WriteIntoARing() {
    uint32_t ring = random_() % kRingsLookedAt;
    for (uint32_t i = 0; i < kRingsLookedAt && layout().rings[ring].load() == 0; ++i) {
      ring = (ring + 1) % kRingsLookedAt;
    }
    if (layout().rings[ring].load() == 0) return;
    const uint32_t choice = random_() % 8;
    if (choice == 0) return Scatter(RingOffset(ring), sizeof(uint64_t));
    if (choice < 3) return Scatter(RingOffset(ring), kRingStride);
    const size_t cell = kRingControlBytes + random_() % kRingCells * size_t{kCellBytes};
    Scatter(RingOffset(ring) + cell, kRecordHeaderBytes);
  }

  // A few bytes or a word: random, all zero or all ones, small or with one bit changed.
  void Scatter(size_t offset, size_t size) {
    const size_t at = offset + random_() % (size - sizeof(uint32_t) + 1) / 4 * 4;
    uint32_t word;
    std::memcpy(&word, memory_ + at, sizeof word);
    const uint32_t choices[] = {static_cast<uint32_t>(random_()), 0u, ~0u,
                                static_cast<uint32_t>(random_() % 300),
                                word ^ (1u << random_() % 32)};
    word = choices[random_() % std::size(choices)];
    std::memcpy(memory_ + at, &word, 1 + random_() % sizeof word);
  }

  void ScatterOwners() {
    for (auto& owner : layout().owners) {
      if (owner.load() != 0 && random_() % 2 == 0) {
        Scatter(reinterpret_cast<std::byte*>(&owner) - memory_, sizeof owner);
      }
    }
    Scatter(offsetof(FabricLayout, owners), sizeof layout().owners);
  }

  std::byte* const memory_;
  std::mt19937 random_;
};

int Main(int argc, char** argv) {
  if (argc != 5) return 2;
  const int file = open(argv[1], O_RDWR);
  if (file < 0) return 3;
  void* memory = mmap(nullptr, kFabricFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return 3;
  Scribbler scribbler(static_cast<std::byte*>(memory), static_cast<uint32_t>(std::atoi(argv[2])));
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(std::atoi(argv[3]));
  uint64_t writes = 0;
  for (; std::chrono::steady_clock::now() < end; ++writes) {
    scribbler.WriteInto(argv[4]);
    const timespec pause = {0, 200'000};  // lets what was broken have its effect
    nanosleep(&pause, nullptr);
  }
  std::printf("%llu writes\n", static_cast<unsigned long long>(writes));
  return writes > 0 ? 0 : 1;
}

}  // namespace
}  // namespace simhca

int main(int argc, char** argv) { return simhca::Main(argc, argv); }
