#include "sim/fabric/fault_plan.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

namespace simhca {
namespace {

constexpr Duration kLongestDelay = kSecond;

// The number at the head of `text`, which becomes what follows it.
std::optional<double> TakeNumber(std::string_view& text) {
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc{} || !std::isfinite(value)) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

std::optional<double> ParseProbability(std::string_view text) {
  std::optional<double> value = TakeNumber(text);
  if (value && text == "%") {
    *value /= 100;
  } else if (!text.empty()) {
    return std::nullopt;
  }
  return value && *value >= 0 && *value <= 1 ? value : std::nullopt;
}

std::optional<Duration> ParseDelay(std::string_view text) {
  const std::optional<double> value = TakeNumber(text);
  const Duration unit = text == "ns"   ? kNanosecond
                        : text == "us" ? kMicrosecond
                        : text == "ms" ? kMillisecond
                                       : 0;
  if (!value || unit == 0) return std::nullopt;
  const double delay = *value * static_cast<double>(unit);
  if (delay < 1 || delay > static_cast<double>(kLongestDelay)) return std::nullopt;
  return static_cast<Duration>(delay);
}

// An unsigned number that is all of `text`.
std::optional<uint64_t> ParseNumber(std::string_view text, int base) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

double* ProbabilityOf(FaultPlan& plan, std::string_view name) {
  if (name == "loss") return &plan.loss;
  if (name == "corrupt") return &plan.corrupt;
  if (name == "duplicate") return &plan.duplicate;
  if (name == "reorder") return &plan.reorder;
  return nullptr;
}

std::string Quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

// The value of one `name=value`.
std::string ParseValue(std::string_view name, std::string_view value, FaultPlan* plan) {
  if (double* probability = ProbabilityOf(*plan, name)) {
    const std::optional<double> parsed = ParseProbability(value);
    if (!parsed) return "is not a probability of 0 to 1, or of 0% to 100%";
    *probability = *parsed;
  } else if (name == "delay") {
    const std::optional<Duration> parsed = ParseDelay(value);
    if (!parsed) return "is not a time of more than 0 and at most 1000ms, such as delay=20us";
    plan->delay = *parsed;
  } else if (name == "lose") {
    const std::optional<uint64_t> parsed = ParseNumber(value, 10);
    if (!parsed || *parsed == 0) return "is not the number of a packet, counted from 1";
    plan->lose.push_back(*parsed);
  } else {
    return "is none of loss=P, corrupt=P, duplicate=P, reorder=P, delay=TIME, lose=N";
  }
  return "";
}

// Reads items into a plan, and knows which of them it has read before.
class Reader {
 public:
  std::string Read(std::string_view item) {
    const size_t equals = item.find('=');
    const std::string_view name = item.substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : item.substr(equals + 1);
    const std::string error = ParseValue(name, value, &plan_);
    if (!error.empty()) return Quoted(item) + " " + error;
    if (name == "lose") return "";
    if (std::find(names_.begin(), names_.end(), name) != names_.end()) {
      return Quoted(item) + ": " + std::string(name) + " has been given before";
    }
    names_.push_back(name);
    return "";
  }
  FaultPlan& plan() { return plan_; }

 private:
  FaultPlan plan_;
  std::vector<std::string_view> names_;
};

}  // namespace

std::string ParseFaultPlan(std::string_view text, FaultPlan* plan) {
  Reader reader;
  while (true) {
    const size_t comma = text.find(',');
    std::string error = reader.Read(text.substr(0, comma));
    if (!error.empty()) return error;
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  *plan = std::move(reader.plan());
  return "";
}

std::string ParseSeed(std::string_view text, uint64_t* seed) {
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  const std::optional<uint64_t> parsed =
      hexadecimal ? ParseNumber(text.substr(2), 16) : ParseNumber(text, 10);
  if (!parsed) return Quoted(text) + " is not a number of 0 to 2^64 - 1, decimal or 0x...";
  *seed = *parsed;
  return "";
}

}  // namespace simhca
