#include "sim/profiles/profile_loader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>

#include "sim/profiles/builtin_profiles.h"
#include "sim/profiles/fields.h"
#include "sim/profiles/toml_parser.h"

namespace simhca {
namespace {

constexpr std::string_view kDefaultBase = "generic";
constexpr std::string_view kSourceKey = "source";

// Largest number that a TOML float or integer is taken for without loss.
constexpr double kLargestExact = 9007199254740992.0;

// Bytes of a profile's file.  The shipped ones have a few thousand.
constexpr size_t kLargestFile = size_t{1} << 20;

std::string FileStem(std::string_view file_name) {
  const size_t slash = file_name.rfind('/');
  if (slash != std::string_view::npos) file_name.remove_prefix(slash + 1);
  const size_t dot = file_name.rfind('.');
  return std::string(dot == 0 ? file_name : file_name.substr(0, dot));
}

// Puts the values of one TOML document over those of a profile.
class Overlay {
 public:
  Overlay(std::string_view file_name, DeviceProfile* profile)
      : file_name_(file_name), profile_(profile), fields_(FieldsOf(*profile)) {}

  // False when something was refused: see error().
  bool Apply(const toml::table& document) {
    for (const auto& [key, node] : document) {
      if (key == "base") continue;
      if (!ApplySection(key.str(), node)) return false;
    }
    if (profile_->port.active_mtu > profile_->port.max_mtu) {
      // One of the two is in this document: what it inherits was right.
      const toml::node* active = document.at_path("port.active_mtu").node();
      const toml::node* max = document.at_path("port.max_mtu").node();
      return Refuse(active != nullptr ? *active : *max, "port.active_mtu is above port.max_mtu");
    }
    return true;
  }

  bool Refuse(const toml::node& where, const std::string& why) {
    error_ = file_name_ + ":" + std::to_string(where.source().begin.line) + ": " + why;
    return false;
  }

  const std::string& error() const { return error_; }

 private:
  bool ApplySection(std::string_view section, const toml::node& node) {
    const bool known = std::any_of(fields_.begin(), fields_.end(),
                                   [&](const Field& field) { return field.section == section; });
    if (!known) {
      return Refuse(node, "unknown key \"" + std::string(section) +
                              "\"; accepted are base and the sections identity, limits, port, "
                              "features, costs");
    }
    const toml::table* table = node.as_table();
    if (table == nullptr) return Refuse(node, "[" + std::string(section) + "] must be a section");
    std::string section_source;
    if (const toml::node* source = table->get(kSourceKey); source != nullptr) {
      if (!ReadText(*source, "source", &section_source)) return false;
    }
    for (const auto& [key, value] : *table) {
      if (key == kSourceKey) continue;
      if (!ApplyKey(section, key.str(), value, section_source)) return false;
    }
    return true;
  }

  bool ApplyKey(std::string_view section, std::string_view key, const toml::node& node,
                const std::string& section_source) {
    const auto field = std::find_if(fields_.begin(), fields_.end(), [&](const Field& candidate) {
      return candidate.section == section && candidate.key == key;
    });
    if (field == fields_.end()) return RefuseKey(section, key, node);

    const toml::node* value = &node;
    std::string source = section_source;
    std::string unit;
    if (const toml::table* table = node.as_table(); table != nullptr) {
      for (const auto& [part, text] : *table) {
        if (part == "value") continue;
        if (part != "unit" && part != kSourceKey) {
          return Refuse(text, field->full_name() + " has value, unit and source, not \"" +
                                  std::string(part.str()) + "\"");
        }
        if (!ReadText(text, std::string(part.str()), part == "unit" ? &unit : &source))
          return false;
      }
      value = table->get("value");
      if (value == nullptr) return Refuse(node, field->full_name() + " has no value");
    }
    const bool own_source = node.is_table() && node.as_table()->contains(kSourceKey);
    if (section == "costs" && !own_source) {
      return Refuse(node, field->full_name() +
                              " names no source; write { value = ..., source = \"...\" }, with "
                              "\"assumed\" if nothing is published");
    }
    if (!ApplyValue(*field, *value, unit)) return false;
    profile_->sources[field->full_name()] = source.empty() ? file_name_ : source;
    return true;
  }

  bool RefuseKey(std::string_view section, std::string_view key, const toml::node& node) {
    std::string keys;
    for (const Field& field : fields_) {
      if (field.section == section) keys += (keys.empty() ? "" : ", ") + std::string(field.key);
    }
    return Refuse(node, "unknown key " + std::string(section) + "." + std::string(key) +
                            "; accepted are " + keys);
  }

  bool ReadText(const toml::node& node, const std::string& name, std::string* text) {
    const toml::value<std::string>* value = node.as_string();
    if (value == nullptr || value->get().empty()) return Refuse(node, name + " must be a text");
    *text = value->get();
    return true;
  }

  bool RefuseValue(const Field& field, const toml::node& node) {
    return Refuse(node, field.full_name() + ": accepted is " + AcceptedValues(field));
  }

  bool ApplyValue(const Field& field, const toml::node& node, const std::string& unit) {
    if (!unit.empty() && UnitFactor(field.quantity, unit) == 0) {
      const std::string names = UnitNames(field.quantity);
      return Refuse(node, field.full_name() + ": unit \"" + unit + "\"; accepted is " +
                              (names.empty() ? "none" : names));
    }
    if (auto* flag = std::get_if<bool*>(&field.target)) {
      if (!node.is_boolean()) return RefuseValue(field, node);
      **flag = node.as_boolean()->get();
      return true;
    }
    if (auto* text = std::get_if<std::string*>(&field.target)) {
      if (!node.is_string()) return RefuseValue(field, node);
      const std::string& value = node.as_string()->get();
      if (value.size() < field.min || value.size() > field.max) return RefuseValue(field, node);
      **text = value;
      return true;
    }
    if (auto* index = std::get_if<uint8_t*>(&field.target)) {
      if (!node.is_string()) return RefuseValue(field, node);
      const auto name = std::find(field.names.begin(), field.names.end(), node.as_string()->get());
      if (name == field.names.end()) return RefuseValue(field, node);
      **index = static_cast<uint8_t>(name - field.names.begin());
      return true;
    }
    return ApplyNumber(field, node, unit);
  }

  bool ApplyNumber(const Field& field, const toml::node& node, const std::string& unit) {
    if ((field.quantity == Quantity::kTime || field.quantity == Quantity::kRate) && unit.empty()) {
      return Refuse(node, field.full_name() + " needs a unit: " + UnitNames(field.quantity));
    }
    const uint64_t factor = unit.empty() ? 1 : UnitFactor(field.quantity, unit);
    const std::optional<uint64_t> number = ReadNumber(node, factor);
    if (!number || *number < field.min || *number > field.max) return RefuseValue(field, node);
    if (!field.codes.empty() &&
        std::find(field.codes.begin(), field.codes.end(), *number) == field.codes.end()) {
      return RefuseValue(field, node);
    }
    if (auto* target = std::get_if<uint32_t*>(&field.target)) {
      **target = static_cast<uint32_t>(*number);
    } else if (auto* target = std::get_if<uint64_t*>(&field.target)) {
      **target = *number;
    } else {
      **std::get_if<Duration*>(&field.target) = static_cast<Duration>(*number);
    }
    return true;
  }

  // `node` times `factor`.  Numbers that TOML's signed integers do not hold are written as a text
  // in hexadecimal.
  static std::optional<uint64_t> ReadNumber(const toml::node& node, uint64_t factor) {
    if (const auto* integer = node.as_integer(); integer != nullptr) {
      uint64_t product = 0;
      if (integer->get() < 0 ||
          __builtin_mul_overflow(static_cast<uint64_t>(integer->get()), factor, &product)) {
        return std::nullopt;
      }
      return product;
    }
    if (const auto* real = node.as_floating_point(); real != nullptr && factor != 1) {
      const double product = std::round(real->get() * static_cast<double>(factor));
      if (!(product >= 0 && product <= kLargestExact)) return std::nullopt;
      return static_cast<uint64_t>(product);
    }
    if (const auto* text = node.as_string(); text != nullptr && factor == 1) {
      const std::string& digits = text->get();
      if (!digits.starts_with("0x")) return std::nullopt;
      uint64_t number = 0;
      const char* end = digits.data() + digits.size();
      const auto [stop, status] = std::from_chars(digits.data() + 2, end, number, 16);
      if (status != std::errc() || stop != end) return std::nullopt;
      return number;
    }
    return std::nullopt;
  }

  const std::string file_name_;
  DeviceProfile* const profile_;
  const std::vector<Field> fields_;
  std::string error_;
};

const BuiltinProfile* FindBuiltin(std::string_view name) {
  for (const BuiltinProfile& builtin : BuiltinProfiles()) {
    if (builtin.name == name) return &builtin;
  }
  return nullptr;
}

ProfileResult Failure(std::string error) { return {std::nullopt, std::move(error)}; }

// `is_root`: the profile from which all others inherit; it starts from nothing.
ProfileResult Parse(std::string_view text, std::string_view file_name, bool is_root) {
  const toml::parse_result document = toml::parse(text, file_name);
  if (!document) {
    return Failure(std::string(file_name) + ":" +
                   std::to_string(document.error().source().begin.line) + ": " +
                   std::string(document.error().description()));
  }
  DeviceProfile profile;
  const toml::table& table = document.table();
  if (!is_root) {
    std::string_view base = kDefaultBase;
    if (const toml::node* node = table.get("base"); node != nullptr) {
      const auto* name = node->as_string();
      if (name == nullptr || FindBuiltin(name->get()) == nullptr || name->get() == file_name) {
        Overlay overlay(file_name, &profile);
        overlay.Refuse(*node, "base: accepted is the name of a built-in profile");
        return Failure(overlay.error());
      }
      base = name->get();
    }
    ProfileResult inherited = FindProfile(base);
    if (!inherited) return inherited;
    profile = *std::move(inherited.profile);
  }
  profile.identity.name = FileStem(file_name);
  Overlay overlay(file_name, &profile);
  if (!overlay.Apply(table)) return Failure(overlay.error());
  return {std::move(profile), ""};
}

// All of an open file into `text`; returns why not, or nothing.
std::string ReadRegularFile(int file, std::string* text) {
  struct stat status = {};
  if (fstat(file, &status) != 0) return std::strerror(errno);
  if (S_ISDIR(status.st_mode)) return std::strerror(EISDIR);
  if (!S_ISREG(status.st_mode)) return "it is not a regular file";
  char block[4096];
  // Counted as it is read: a file may grow, and those of /proc tell no size.
  while (text->size() <= kLargestFile) {
    const ssize_t got = read(file, block, sizeof(block));
    if (got == 0) return "";
    if (got > 0) {
      text->append(block, static_cast<size_t>(got));
    } else if (errno != EINTR) {
      return std::strerror(errno);
    }
  }
  return "it is larger than 1 MiB";
}

// What FindProfile accepts.
std::string ProfileChoices() {
  std::string choices;
  for (std::string_view name : BuiltinProfileNames()) choices += std::string(name) + ", ";
  return choices + "or the path of a TOML file";
}

}  // namespace

ProfileResult ParseProfile(std::string_view toml, std::string_view file_name) {
  return Parse(toml, file_name, /*is_root=*/false);
}

ProfileResult LoadProfileFile(const std::string& path) {
  // Not blocking: opening a FIFO would otherwise wait for a writer.
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return Failure(path + ": cannot be read: " + std::strerror(errno));
  std::string text;
  const std::string error = ReadRegularFile(file, &text);
  close(file);
  if (!error.empty()) return Failure(path + ": cannot be read: " + error);
  return ParseProfile(text, path);
}

ProfileResult FindProfile(std::string_view name_or_path) {
  if (const BuiltinProfile* builtin = FindBuiltin(name_or_path); builtin != nullptr) {
    return Parse(builtin->toml, builtin->name, builtin->name == kDefaultBase);
  }
  if (name_or_path.find('/') != std::string_view::npos || name_or_path.ends_with(".toml")) {
    return LoadProfileFile(std::string(name_or_path));
  }
  return Failure("there is no profile \"" + std::string(name_or_path) + "\"; accepted are " +
                 ProfileChoices());
}

std::vector<std::string_view> BuiltinProfileNames() {
  std::vector<std::string_view> names;
  for (const BuiltinProfile& builtin : BuiltinProfiles()) names.push_back(builtin.name);
  return names;
}

}  // namespace simhca
