#include "bench/model/table_reader.h"

#include <algorithm>
#include <cmath>

namespace simhca::bench {

namespace {

template <typename List, typename Text>
std::string Join(const List& list, Text text) {
  std::string joined;
  for (const auto& item : list) joined += (joined.empty() ? "" : ", ") + text(item);
  return joined;
}

}  // namespace

bool IsNumber(const toml::node& node, long double* value) {
  if (const auto* integer = node.as_integer()) {
    *value = static_cast<long double>(integer->get());
    return true;
  }
  const auto* real = node.as_floating_point();
  if (real == nullptr || !std::isfinite(real->get())) return false;
  *value = real->get();
  return true;
}

const toml::node* TableReader::Find(std::string_view key) {
  known_.push_back(key);
  return table_.get(key);
}

bool TableReader::Refuse(const toml::node& where, const std::string& why) {
  if (error_.empty()) {
    error_ = file_name_ + ":" + std::to_string(where.source().begin.line) + ": " + why;
  }
  return false;
}

bool TableReader::Text(std::string_view key, std::string* value) {
  const toml::node* node = Find(key);
  if (node == nullptr || !ok()) return ok();
  const auto* text = node->as_string();
  if (text == nullptr || text->get().empty()) {
    return Refuse(*node, std::string(key) + ": accepted is a text");
  }
  *value = text->get();
  return true;
}

bool TableReader::RequiredText(std::string_view key, std::string* value) {
  if (!Text(key, value)) return false;
  return !value->empty() || Refuse(std::string(key) + " is missing");
}

bool TableReader::Flag(std::string_view key, bool* value) {
  const toml::node* node = Find(key);
  if (node == nullptr || !ok()) return ok();
  if (!node->is_boolean()) return Refuse(*node, std::string(key) + ": accepted is true or false");
  *value = node->as_boolean()->get();
  return true;
}

bool TableReader::Number(std::string_view key, uint32_t* value, uint32_t min, uint32_t max) {
  const toml::node* node = Find(key);
  if (node == nullptr || !ok()) return ok();
  const auto* number = node->as_integer();
  if (number == nullptr || number->get() < min || number->get() > max) {
    return Refuse(*node, std::string(key) + ": accepted is " + std::to_string(min) + " to " +
                             std::to_string(max));
  }
  *value = static_cast<uint32_t>(number->get());
  return true;
}

bool TableReader::Choice(std::string_view key, uint32_t* value, std::span<const uint32_t> numbers) {
  const toml::node* node = Find(key);
  if (node == nullptr || !ok()) return ok();
  const auto* number = node->as_integer();
  if (number == nullptr ||
      std::find(numbers.begin(), numbers.end(), number->get()) == numbers.end()) {
    return Refuse(*node, std::string(key) + ": accepted is one of " +
                             Join(numbers, [](uint32_t one) { return std::to_string(one); }));
  }
  *value = static_cast<uint32_t>(number->get());
  return true;
}

bool TableReader::Choice(std::string_view key, size_t* value,
                         std::span<const std::string_view> names) {
  const toml::node* node = Find(key);
  if (node == nullptr || !ok()) return ok();
  const auto* text = node->as_string();
  const auto name =
      text == nullptr ? names.end() : std::find(names.begin(), names.end(), text->get());
  if (name == names.end()) {
    return Refuse(*node, std::string(key) + ": accepted is one of " +
                             Join(names, [](auto one) { return '"' + std::string(one) + '"'; }));
  }
  *value = static_cast<size_t>(name - names.begin());
  return true;
}

bool TableReader::Texts(std::string_view key, std::vector<std::string>* values) {
  const toml::node* node = Find(key);
  if (node == nullptr || !ok()) return ok();
  const toml::array* list = node->as_array();
  if (list == nullptr || list->empty() || !list->is_homogeneous(toml::node_type::string)) {
    return Refuse(*node, std::string(key) + ": accepted is a list of texts");
  }
  for (const toml::node& item : *list) values->push_back(item.as_string()->get());
  return true;
}

bool TableReader::NoOthers() {
  for (const auto& [key, node] : table_) {
    if (std::find(known_.begin(), known_.end(), key.str()) == known_.end()) {
      return Refuse(node, "unknown key \"" + std::string(key.str()) + "\"; accepted are " +
                              Join(known_, [](auto one) { return std::string(one); }));
    }
  }
  return ok();
}

}  // namespace simhca::bench
