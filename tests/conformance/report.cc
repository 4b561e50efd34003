#include "tests/conformance/report.h"

namespace simhca::conformance {

namespace {

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return quoted + '"';
}

}  // namespace

void Report::OnTestEnd(const testing::TestInfo& info) {
  const testing::TestResult& result = *info.result();
  Entry entry;
  entry.name = std::string(info.test_suite_name()) + "." + info.name();
  if (result.Skipped()) {
    entry.result = "skipped";
    ++skipped_;
  } else if (result.Passed()) {
    entry.result = "passed";
    ++passed_;
  } else {
    entry.result = "failed";
    ++failed_;
  }
  for (int i = 0; i < result.test_property_count(); ++i) {
    const testing::TestProperty& property = result.GetTestProperty(i);
    entry.properties.emplace_back(property.key(), property.value());
  }
  entries_.push_back(std::move(entry));
}

void Report::Write(std::ostream& out, const std::string& device, const std::string& clock) const {
  out << "{\n  \"device\": " << Quoted(device) << ",\n  \"clock\": " << Quoted(clock)
      << ",\n  \"tests\": [";
  const char* separator = "\n";
  for (const Entry& entry : entries_) {
    out << separator << "    {\"name\": " << Quoted(entry.name)
        << ", \"result\": " << Quoted(entry.result);
    for (const auto& [key, value] : entry.properties) {
      out << ", " << Quoted(key) << ": " << Quoted(value);
    }
    out << "}";
    separator = ",\n";
  }
  out << "\n  ],\n  \"left_out\": [";
  separator = "";
  for (const std::string& pattern : left_out_) {
    out << separator << Quoted(pattern);
    separator = ", ";
  }
  out << "],\n  \"passed\": " << passed_ << ",\n  \"failed\": " << failed_
      << ",\n  \"skipped\": " << skipped_ << "\n}\n";
}

}  // namespace simhca::conformance
