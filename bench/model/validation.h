#ifndef SIMHCA_BENCH_MODEL_VALIDATION_H_
#define SIMHCA_BENCH_MODEL_VALIDATION_H_

#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "bench/model/published_row.h"

namespace simhca::bench {

// What the model says to one published row.
struct Verdict {
  std::optional<Value> model;  // none: the scenario came to no result
  std::optional<Value> error;  // from the published value, in percent of it
  bool ok = false;
  std::string reason;  // why there is no result, or which of several values is wrong
};

// The model's verdicts on all rows, in their order.  `begin` is told each row's index beforehand.
std::vector<Verdict> Validate(const std::vector<PublishedRow>& rows,
                              const std::function<void(size_t)>& begin);

// The table that a reader sees, the fitted parameters with their values, and a count.
void PrintReport(const PublishedRows& published, const std::vector<Verdict>& verdicts,
                 std::ostream& out);

// {"rows": [{scenario, published, model, unit, error, tolerance, verdict}, ...]}; what there is not
// is null.
void PrintJson(const PublishedRows& published, const std::vector<Verdict>& verdicts,
               std::ostream& out);

}  // namespace simhca::bench

#endif  // SIMHCA_BENCH_MODEL_VALIDATION_H_
