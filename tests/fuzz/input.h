#ifndef SIMHCA_TESTS_FUZZ_INPUT_H_
#define SIMHCA_TESTS_FUZZ_INPUT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

namespace simhca::fuzz {

// The bytes of one input, taken from the front as the values that a target needs.  When they are
// used up all further values are 0.
class Input {
 public:
  Input(const uint8_t* bytes, size_t size) : bytes_(bytes, size) {}

  bool empty() const { return bytes_.empty(); }
  size_t left() const { return bytes_.size(); }

  // Little-endian, so that an input means the same on every machine.
  template <typename T>
  T Take() {
    uint64_t value = 0;
    const size_t count = std::min(sizeof(T), bytes_.size());
    for (size_t i = 0; i < count; ++i) value |= uint64_t{bytes_[i]} << 8 * i;
    bytes_ = bytes_.subspan(count);
    return static_cast<T>(value);
  }
  uint8_t Byte() { return Take<uint8_t>(); }
  bool Flag() { return (Byte() & 1) != 0; }
  // 0 to limit - 1, limit <= 256.
  uint32_t Below(uint32_t limit) { return Byte() % limit; }

  // At most `count` bytes.
  std::vector<std::byte> Bytes(size_t count) {
    const auto taken = std::as_bytes(bytes_.first(std::min(count, bytes_.size())));
    bytes_ = bytes_.subspan(taken.size());
    return {taken.begin(), taken.end()};
  }

 private:
  std::span<const uint8_t> bytes_;
};

// Ends the process, which is how a fuzzer sees a broken rule.
inline void Require(bool holds, const char* rule) {
  if (holds) return;
  std::fprintf(stderr, "broken rule: %s\n", rule);
  std::abort();
}

}  // namespace simhca::fuzz

// What libFuzzer and the replaying tests call with each input.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size);

#endif  // SIMHCA_TESTS_FUZZ_INPUT_H_
