#include <cmath>
#include <cstdio>

#include "bench/model/validation.h"
#include "sim/profiles/fields.h"
#include "sim/profiles/profile_loader.h"
#include "sim/tools/table.h"

namespace simhca::bench {

namespace {

std::string Format(const char* format, Value value) {
  char text[64];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

// Five digits, and whole numbers in full.
std::string Number(Value value) {
  return value == std::round(value) || std::fabs(value) >= 1e5 ? Format("%.0Lf", value)
                                                               : Format("%.5Lg", value);
}

// With its sign, unless it rounds to nothing.
std::string Percent(Value value) {
  return std::fabs(value) < 0.05L ? "0.0 %" : Format("%+.1Lf %%", value);
}

std::string ToleranceText(const PublishedRow& row) {
  const Tolerance& tolerance = row.tolerance;
  switch (tolerance.kind) {
    case Tolerance::Kind::kPercent:
      return Number(tolerance.percent) + " %";
    case Tolerance::Kind::kRange:
      return Number(tolerance.min) + " to " + Number(tolerance.max);
    case Tolerance::Kind::kAtMost:
      return "at most";
    case Tolerance::Kind::kExact:
      break;
  }
  return "exact";
}

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    // Names are single lines; a control character would not be JSON.
    quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return quoted + '"';
}

std::string JsonNumber(const std::optional<Value>& value) {
  if (!value) return "null";
  return *value == std::round(*value) ? Format("%.0Lf", *value) : Format("%.12Lg", *value);
}

const char* VerdictText(const Verdict& verdict) { return verdict.ok ? "ok" : "FAILED"; }

void PrintFitted(const PublishedRows& published, std::ostream& out) {
  if (published.fitted.empty()) return;
  Table table;
  table.Add({"PROFILE", "FITTED PARAMETER", "VALUE", "TO"});
  for (const FittedParameter& fitted : published.fitted) {
    DeviceProfile profile = *FindProfile(fitted.profile).profile;
    std::string value;
    for (const Field& field : FieldsOf(profile)) {
      if (field.full_name() == fitted.parameter) value = FormatValue(field);
    }
    std::string rows;
    for (const std::string& row : fitted.rows) rows += (rows.empty() ? "" : "; ") + row;
    table.Add({fitted.profile, fitted.parameter, value, rows});
  }
  out << '\n';
  table.Print(out);
}

}  // namespace

void PrintReport(const PublishedRows& published, const std::vector<Verdict>& verdicts,
                 std::ostream& out) {
  Table table;
  table.Add({"SCENARIO", "PUBLISHED", "MODEL", "UNIT", "ERROR", "TOLERANCE", "VERDICT", "USE"});
  size_t failed = 0, calibrating = 0;
  for (size_t i = 0; i < verdicts.size(); ++i) {
    const PublishedRow& row = published.rows[i];
    const Verdict& verdict = verdicts[i];
    failed += !verdict.ok;
    calibrating += row.calibrates;
    table.Add({row.name, row.published ? Number(*row.published) : "-",
               verdict.model ? Number(*verdict.model) : "-", row.unit,
               verdict.error ? Percent(*verdict.error) : "-", ToleranceText(row),
               VerdictText(verdict), row.calibrates ? "calibrate" : "check"});
  }
  table.Print(out);
  for (size_t i = 0; i < verdicts.size(); ++i) {
    if (verdicts[i].ok || verdicts[i].reason.empty()) continue;
    out << "\n" << published.rows[i].name << ": " << verdicts[i].reason << "\n";
  }
  PrintFitted(published, out);
  out << '\n'
      << verdicts.size() << " rows: " << verdicts.size() - failed << " ok, " << failed
      << " FAILED; " << published.fitted.size() << " fitted parameters, " << calibrating
      << " rows that calibrate\n";
}

void PrintJson(const PublishedRows& published, const std::vector<Verdict>& verdicts,
               std::ostream& out) {
  out << "{\n  \"rows\": [";
  for (size_t i = 0; i < verdicts.size(); ++i) {
    const PublishedRow& row = published.rows[i];
    const Verdict& verdict = verdicts[i];
    out << (i == 0 ? "" : ",") << "\n    {\"scenario\": " << Quoted(row.name)
        << ", \"published\": " << JsonNumber(row.published)
        << ", \"model\": " << JsonNumber(verdict.model) << ", \"unit\": " << Quoted(row.unit)
        << ", \"error\": " << JsonNumber(verdict.error)
        << ", \"tolerance\": " << Quoted(ToleranceText(row)) << ", \"verdict\": \""
        << VerdictText(verdict) << "\", \"use\": \"" << (row.calibrates ? "calibrate" : "check")
        << "\", \"reason\": " << Quoted(verdict.reason) << "}";
  }
  out << "\n  ]\n}\n";
}

}  // namespace simhca::bench
