#ifndef SIMHCA_TESTS_CONFORMANCE_REPORT_H_
#define SIMHCA_TESTS_CONFORMANCE_REPORT_H_

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

namespace simhca::conformance {

// Collects the results of a run.  The report holds nothing that depends on the machine's speed:
// under virtual time two runs give the same bytes.
class Report : public testing::EmptyTestEventListener {
 public:
  explicit Report(std::vector<std::string> left_out) : left_out_(std::move(left_out)) {}

  void OnTestEnd(const testing::TestInfo& info) override;

  int skipped() const { return skipped_; }
  // JSON: every test with its result and the durations it recorded, and the counts.
  void Write(std::ostream& out, const std::string& device, const std::string& clock) const;

 private:
  struct Entry {
    std::string name;
    std::string result;
    std::vector<std::pair<std::string, std::string>> properties;
  };

  std::vector<std::string> left_out_;
  std::vector<Entry> entries_;
  int passed_ = 0;
  int failed_ = 0;
  int skipped_ = 0;
};

}  // namespace simhca::conformance

#endif  // SIMHCA_TESTS_CONFORMANCE_REPORT_H_
