#include "bench/model/validation.h"

#include <algorithm>
#include <cmath>

#include "sim/profiles/fields.h"
#include "sim/timing/pcie_link.h"
#include "sim/wire/timers.h"
#include "verbs_shim/driver/srq_sizes.h"

namespace simhca::bench {

namespace {

using Kind = PublishedRow::Kind;
using Metric = PublishedRow::Metric;

struct Answer {
  std::optional<Value> value;
  std::string reason;
};

Answer RunScenario(const PublishedRow& row) {
  const ScenarioResult result = Run(row.scenario);
  if (!result.error.empty()) return {std::nullopt, result.error};
  switch (row.metric) {
    case Metric::kGigabits:
      return {result.gigabits_per_second(row.scenario.message_bytes), ""};
    case Metric::kMegaOperations:
      return {result.messages_per_second() / 1e6, ""};
    case Metric::kOperations:
      return {result.messages_per_second(), ""};
    case Metric::kNanoseconds:
      return {result.nanoseconds_per_message(), ""};
    case Metric::kLatency:
      return {static_cast<Value>(result.latency) / kNanosecond, ""};
    case Metric::kElapsed:
      return {static_cast<Value>(result.elapsed) / kMillisecond, ""};
    case Metric::kRnrNaks:
      return {static_cast<Value>(result.rnr_naks), ""};
    case Metric::kLimitEvents:
      return {static_cast<Value>(result.limit_events), ""};
  }
  return {};
}

// Payload in Gb/s when the link never idles: as many requests in flight as that takes.
Value PcieRate(const PublishedRow& row) {
  constexpr uint32_t kTransfers = 10'000;
  const DeviceProfile::Costs& costs = row.scenario.profile.costs;
  PcieLink link({.bits_per_second = costs.pcie_bits_per_second,
                 .max_payload = costs.pcie_max_payload,
                 .max_read_request = costs.pcie_max_read_request,
                 .outstanding_reads = 1024,
                 .read_latency = 0,
                 .write_latency = 0,
                 .doorbell_latency = 0});
  Time end = 0;
  for (uint32_t i = 0; i < kTransfers; ++i) {
    end = row.kind == Kind::kPcieReads ? link.Read(0, row.bytes) : link.Write(0, row.bytes);
  }
  return Value{8} * row.bytes * kTransfers * 1000 / static_cast<Value>(end);
}

Value ProfileValue(const PublishedRow& row) {
  DeviceProfile profile = row.scenario.profile;
  for (const Field& field : FieldsOf(profile)) {
    if (field.full_name() != row.field) continue;
    const uint64_t factor = std::max<uint64_t>(UnitFactor(field.quantity, row.unit), 1);
    const auto in_unit = [factor](auto number) { return static_cast<Value>(number) / factor; };
    if (auto* flag = std::get_if<bool*>(&field.target)) return **flag ? 1 : 0;
    if (auto* index = std::get_if<uint8_t*>(&field.target)) return **index;
    if (auto* number = std::get_if<uint32_t*>(&field.target)) return in_unit(**number);
    if (auto* number = std::get_if<uint64_t*>(&field.target)) return in_unit(**number);
    if (auto* time = std::get_if<Duration*>(&field.target)) return in_unit(**time);
  }
  return 0;
}

// How many of the row's values are what the wire's timers say, and which is the first that is not.
Answer CountTimers(const PublishedRow& row) {
  const bool rnr = row.kind == Kind::kRnrTimers;
  const Value unit = rnr ? kMillisecond : kMicrosecond;
  Value agree = 0;
  std::string reason;
  for (size_t i = 0; i < row.values.size(); ++i) {
    const auto code = static_cast<uint8_t>(rnr ? i : i + 1);
    const Duration modelled = rnr ? RnrDelay(code) : AckTimeout(code);
    if (std::llround(row.values[i] * unit) == modelled) {
      ++agree;
    } else if (reason.empty()) {
      reason = "code " + std::to_string(code) + " is another value in the model";
    }
  }
  return {agree, reason};
}

Answer AnswerOf(const PublishedRow& row) {
  const driver::SrqSizes srq =
      driver::ComputeSrqSizes(row.scenario.profile, row.max_wr, row.max_sge);
  switch (row.kind) {
    case Kind::kScenario:
      return RunScenario(row);
    case Kind::kPcieWrites:
    case Kind::kPcieReads:
      return {PcieRate(row), ""};
    case Kind::kProfileValue:
      return {ProfileValue(row), ""};
    case Kind::kRnrTimers:
    case Kind::kAckTimeouts:
      return CountTimers(row);
    case Kind::kSrqMaxWr:
      return {srq.capacity, ""};
    case Kind::kSrqMaxSge:
      return {srq.max_sge, ""};
    case Kind::kSrqStride:
      return {srq.stride, ""};
    case Kind::kSameAs:
      break;
  }
  return {};
}

bool Within(const PublishedRow& row, Value model) {
  const Value published = row.published.value_or(0);
  const Tolerance& tolerance = row.tolerance;
  switch (tolerance.kind) {
    case Tolerance::Kind::kPercent:
      return std::fabs(model - published) * 100 <= tolerance.percent * std::fabs(published);
    case Tolerance::Kind::kRange:
      return tolerance.min <= model && model <= tolerance.max;
    case Tolerance::Kind::kAtMost:
      return model <= published;
    case Tolerance::Kind::kExact:
      break;
  }
  if (row.decimals == 0) return std::round(model) == published;
  return std::fabs(model - published) <= 0.5L * std::pow(10.0L, -row.decimals);
}

}  // namespace

std::vector<Verdict> Validate(const std::vector<PublishedRow>& rows,
                              const std::function<void(size_t)>& begin) {
  std::vector<Answer> answers;  // before ratios
  std::vector<Verdict> verdicts;
  const auto index_of = [&rows](const std::string& name) {
    return std::find_if(rows.begin(), rows.end(),
                        [&](const PublishedRow& row) { return row.name == name; }) -
           rows.begin();
  };
  for (size_t i = 0; i < rows.size(); ++i) {
    const PublishedRow& row = rows[i];
    begin(i);
    answers.push_back(row.kind == Kind::kSameAs ? answers[index_of(row.same_as)] : AnswerOf(row));
    Verdict verdict{.model = answers[i].value, .error = {}, .reason = answers[i].reason};
    if (verdict.model && !row.ratio_to.empty()) {
      const Answer& divisor = answers[index_of(row.ratio_to)];
      if (divisor.value && *divisor.value != 0) {
        *verdict.model /= *divisor.value;
      } else {
        verdict.model.reset();
        verdict.reason = "the row \"" + row.ratio_to + "\" has no result";
      }
    }
    if (verdict.model) {
      verdict.ok = Within(row, *verdict.model);
      if (row.published && *row.published != 0) {
        verdict.error = (*verdict.model - *row.published) * 100 / *row.published;
      }
    }
    verdicts.push_back(std::move(verdict));
  }
  return verdicts;
}

}  // namespace simhca::bench
