#ifndef SIMHCA_SIM_PROFILES_FIELDS_H_
#define SIMHCA_SIM_PROFILES_FIELDS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/profiles/profile.h"

namespace simhca {

// What a number counts, and so which units a profile may write it in.
enum class Quantity : uint8_t {
  kPlain,
  kTime,   // ps, ns, us, ms
  kRate,   // bit/s, Mb/s, Gb/s
  kBytes,  // B
};

// One value of a profile: where it lies, how it is written, and what is accepted.
struct Field {
  std::string_view section;
  std::string_view key;
  // uint8_t: an enum, by the index of its name in `names`.
  std::variant<std::string*, bool*, uint32_t*, uint64_t*, Duration*, uint8_t*> target;
  // Bounds, both included; of the length for a text.  In picoseconds for a time.
  uint64_t min = 0;
  uint64_t max = 0;
  Quantity quantity = Quantity::kPlain;
  bool hex = false;                           // shown in hexadecimal
  std::span<const std::string_view> names{};  // of an enum's values
  std::span<const uint32_t> codes{};          // if not empty: the only accepted numbers

  std::string full_name() const;  // "section.key"
};

// All fields of `profile`, in the order in which they are shown.  They point into it.
std::vector<Field> FieldsOf(DeviceProfile& profile);

// The field's value as text, with its unit.
std::string FormatValue(const Field& field);

// "1 to 16777214", "one of exact, mlx5": what a profile may say there.
std::string AcceptedValues(const Field& field);

// Picoseconds, bits per second or bytes of one `unit`; 0 if the quantity has no such unit.
uint64_t UnitFactor(Quantity quantity, std::string_view unit);

// "ns, us" and so on.
std::string UnitNames(Quantity quantity);

}  // namespace simhca

#endif  // SIMHCA_SIM_PROFILES_FIELDS_H_
