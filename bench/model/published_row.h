#ifndef SIMHCA_BENCH_MODEL_PUBLISHED_ROW_H_
#define SIMHCA_BENCH_MODEL_PUBLISHED_ROW_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/model/scenario.h"

namespace simhca::bench {

// Holds every 64-bit number of a profile, which double does not.
using Value = long double;

// How far the model may be from what is published.
struct Tolerance {
  enum class Kind : uint8_t {
    kPercent,  // of the published value
    kRange,    // min to max, both included
    kExact,    // equal in every digit that is published
    kAtMost,   // not above the published value
  };
  Kind kind = Kind::kExact;
  Value percent = 0;
  Value min = 0;
  Value max = 0;
};

// One published figure, and how the model comes to its own.
struct PublishedRow {
  enum class Kind : uint8_t {
    kScenario,      // `metric` of a run of `scenario`
    kSameAs,        // the model's value of the row `same_as`
    kPcieWrites,    // payload rate of writes of `bytes`, in Gb/s
    kPcieReads,     // the same of reads
    kProfileValue,  // `field` of the profile, in `unit` if it is a time or a rate
    kRnrTimers,     // how many of `values`, in ms by timer code, are those of the wire
    kAckTimeouts,   // the same in us, from code 1 on
    kSrqMaxWr,      // what an SRQ created with `max_wr` and `max_sge` grants
    kSrqMaxSge,
    kSrqStride,  // bytes of an entry
  };
  enum class Metric : uint8_t {
    kGigabits,        // Gb/s of payload
    kMegaOperations,  // Mop/s
    kOperations,      // op/s
    kNanoseconds,     // ns per message
    kLatency,         // ns, one way, of messages one by one
    kElapsed,         // ms, of all messages after the warm-up
    kRnrNaks,         // sent in that time
    kLimitEvents,     // the same
  };

  int line = 0;  // in the file
  std::string name;
  std::string source;
  bool calibrates = false;  // parameters may be fitted to it; otherwise it checks
  std::optional<Value> published;
  int decimals = 0;  // that are published
  Tolerance tolerance;
  std::string unit;
  std::string ratio_to;  // if not empty: divided by the model's value of that earlier row

  Kind kind = Kind::kScenario;
  Scenario scenario;  // its profile is that of the other kinds too
  Metric metric = Metric::kGigabits;
  std::string same_as;
  std::string field;
  uint32_t bytes = 0;
  uint32_t max_wr = 1;
  uint32_t max_sge = 1;
  std::vector<Value> values;
};

// A parameter of a profile that was chosen so that rows come out.
struct FittedParameter {
  int line = 0;
  std::string profile;
  std::string parameter;  // "costs.cache_miss"
  std::vector<std::string> rows;
};

struct PublishedRows {
  std::vector<PublishedRow> rows;
  std::vector<FittedParameter> fitted;
  std::string error;  // "FILE:LINE: what is wrong, and what is accepted"; empty: none
};

// Reads rows in TOML; docs/validation.md describes the form.  Every row's scenario can be run.  Paths of
// profiles are relative to the folder of `file_name`.
PublishedRows ParsePublishedRows(std::string_view toml, const std::string& file_name);

PublishedRows LoadPublishedRows(const std::string& path);

}  // namespace simhca::bench

#endif  // SIMHCA_BENCH_MODEL_PUBLISHED_ROW_H_
