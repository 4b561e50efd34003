#ifndef SIMHCA_SIM_QUEUES_BIG_ENDIAN_H_
#define SIMHCA_SIM_QUEUES_BIG_ENDIAN_H_

#include <bit>
#include <cstdint>

namespace simhca {

constexpr uint16_t ByteSwap(uint16_t value) { return __builtin_bswap16(value); }
constexpr uint32_t ByteSwap(uint32_t value) { return __builtin_bswap32(value); }
constexpr uint64_t ByteSwap(uint64_t value) { return __builtin_bswap64(value); }

// An unsigned integer that is stored most significant byte first, whatever the host.
// Reads and assignments convert, so a layout struct made of these needs no other accessors.
template <typename T>
class BigEndian {
 public:
  constexpr BigEndian() = default;
  constexpr BigEndian(T value) : stored_(Convert(value)) {}  // NOLINT: a plain integer in code
  constexpr operator T() const { return Convert(stored_); }  // NOLINT

 private:
  static constexpr T Convert(T value) {
    if constexpr (std::endian::native == std::endian::little) return ByteSwap(value);
    return value;
  }
  T stored_ = 0;
};

using Be16 = BigEndian<uint16_t>;
using Be32 = BigEndian<uint32_t>;
using Be64 = BigEndian<uint64_t>;

}  // namespace simhca

#endif  // SIMHCA_SIM_QUEUES_BIG_ENDIAN_H_
