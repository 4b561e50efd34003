#ifndef SIMHCA_BENCH_MODEL_TABLE_READER_H_
#define SIMHCA_BENCH_MODEL_TABLE_READER_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/profiles/toml_parser.h"

namespace simhca::bench {

// Takes a TOML table apart key by key.  The first thing that is wrong is kept as
// "FILE:LINE: what, and what is accepted"; every reader returns false from there on.  A key that is
// not there leaves the target as it is.
class TableReader {
 public:
  TableReader(const std::string& file_name, const toml::table& table)
      : file_name_(file_name), table_(table) {}

  bool Has(std::string_view key) const { return table_.contains(key); }
  // The key is known from here on; null if it is not there.
  const toml::node* Find(std::string_view key);

  bool Text(std::string_view key, std::string* value);
  bool RequiredText(std::string_view key, std::string* value);
  bool Flag(std::string_view key, bool* value);
  bool Number(std::string_view key, uint32_t* value, uint32_t min, uint32_t max);
  // One of `numbers`.
  bool Choice(std::string_view key, uint32_t* value, std::span<const uint32_t> numbers);
  // The index of one of `names`.
  bool Choice(std::string_view key, size_t* value, std::span<const std::string_view> names);
  bool Texts(std::string_view key, std::vector<std::string>* values);

  // Refuses keys that nobody has asked for.
  bool NoOthers();

  bool Refuse(const toml::node& where, const std::string& why);
  bool Refuse(const std::string& why) { return Refuse(table_, why); }
  bool ok() const { return error_.empty(); }
  const std::string& error() const { return error_; }
  int line() const { return static_cast<int>(table_.source().begin.line); }

 private:
  const std::string& file_name_;
  const toml::table& table_;
  std::vector<std::string_view> known_;
  std::string error_;
};

// A plain number, whole or not.
bool IsNumber(const toml::node& node, long double* value);

}  // namespace simhca::bench

#endif  // SIMHCA_BENCH_MODEL_TABLE_READER_H_
