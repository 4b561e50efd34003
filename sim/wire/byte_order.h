#ifndef SIMHCA_SIM_WIRE_BYTE_ORDER_H_
#define SIMHCA_SIM_WIRE_BYTE_ORDER_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

// Loads and stores of big-endian fields at any alignment.

namespace simhca {
namespace wire_internal {

// Packets lie in memory that a hostile sender may change at any time.  The compiler may not assume
// that what was loaded can be loaded again, so a field that was checked stays as it was.
template <typename T>
inline T LoadOnce(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(value));
  asm("" : "+r"(value));
  return value;
}

}  // namespace wire_internal

inline uint8_t LoadByte(const std::byte* bytes) { return wire_internal::LoadOnce<uint8_t>(bytes); }

inline uint16_t LoadBe16(const std::byte* bytes) {
  const uint16_t value = wire_internal::LoadOnce<uint16_t>(bytes);
  return std::endian::native == std::endian::little ? __builtin_bswap16(value) : value;
}

inline uint32_t LoadBe32(const std::byte* bytes) {
  const uint32_t value = wire_internal::LoadOnce<uint32_t>(bytes);
  return std::endian::native == std::endian::little ? __builtin_bswap32(value) : value;
}

inline uint64_t LoadBe64(const std::byte* bytes) {
  const uint64_t value = wire_internal::LoadOnce<uint64_t>(bytes);
  return std::endian::native == std::endian::little ? __builtin_bswap64(value) : value;
}

inline void StoreBe16(std::byte* bytes, uint16_t value) {
  if (std::endian::native == std::endian::little) value = __builtin_bswap16(value);
  std::memcpy(bytes, &value, sizeof(value));
}

inline void StoreBe32(std::byte* bytes, uint32_t value) {
  if (std::endian::native == std::endian::little) value = __builtin_bswap32(value);
  std::memcpy(bytes, &value, sizeof(value));
}

inline void StoreBe64(std::byte* bytes, uint64_t value) {
  if (std::endian::native == std::endian::little) value = __builtin_bswap64(value);
  std::memcpy(bytes, &value, sizeof(value));
}

}  // namespace simhca

#endif  // SIMHCA_SIM_WIRE_BYTE_ORDER_H_
