#include "sim/fabric/fault_plan.h"

#include <charconv>
#include <cmath>
#include <optional>

namespace simhca {
namespace {

constexpr std::string_view kNames = "loss, corrupt, duplicate, reorder, delay, lose";
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

std::optional<uint64_t> ParseIndex(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value == 0) return std::nullopt;
  return value;
}

double* ProbabilityOf(FaultPlan& plan, std::string_view name) {
  if (name == "loss") return &plan.loss;
  if (name == "corrupt") return &plan.corrupt;
  if (name == "duplicate") return &plan.duplicate;
  if (name == "reorder") return &plan.reorder;
  return nullptr;
}

std::string Wrong(std::string_view item, std::string_view wanted) {
  return std::string(item) + ": " + std::string(wanted);
}

// One `name=value`.
std::string ParseItem(std::string_view item, FaultPlan* plan) {
  const size_t equals = item.find('=');
  const std::string_view name = item.substr(0, equals);
  const std::string_view value =
      equals == std::string_view::npos ? std::string_view() : item.substr(equals + 1);
  if (double* probability = ProbabilityOf(*plan, name)) {
    const std::optional<double> parsed = ParseProbability(value);
    if (!parsed) return Wrong(item, "not a probability of 0 to 1, or 0% to 100%");
    *probability = *parsed;
  } else if (name == "delay") {
    const std::optional<Duration> parsed = ParseDelay(value);
    if (!parsed) return Wrong(item, "not a time of up to 1000ms, as 20us or 1.5ms");
    plan->delay = *parsed;
  } else if (name == "lose") {
    const std::optional<uint64_t> parsed = ParseIndex(value);
    if (!parsed) return Wrong(item, "not the number of a packet, counted from 1");
    plan->lose.push_back(*parsed);
  } else {
    return Wrong(item, "not one of " + std::string(kNames));
  }
  return "";
}

}  // namespace

std::string ParseFaultPlan(std::string_view text, FaultPlan* plan) {
  FaultPlan parsed;
  while (true) {
    const size_t comma = text.find(',');
    std::string error = ParseItem(text.substr(0, comma), &parsed);
    if (!error.empty()) return error;
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  *plan = std::move(parsed);
  return "";
}

}  // namespace simhca
