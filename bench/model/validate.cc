// validate: what the device model says to published figures.  ./simhca bench --validate.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <string>

#include "bench/model/validation.h"

namespace {

constexpr int kRowFailed = 1;
constexpr int kBadInput = 2;

}  // namespace

int main(int argc, char** argv) {
  using namespace simhca::bench;

  CLI::App app(
      "Runs the scenarios of FILE on the device model and compares with what is published.");
  std::string path, json;
  app.add_option("FILE", path, "rows in TOML, see docs/validation.md")->required();
  app.add_option("--json", json, "the rows as JSON in this file");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadInput;
  }

  const PublishedRows published = LoadPublishedRows(path);
  if (!published.error.empty()) {
    std::cerr << published.error << '\n';
    return kBadInput;
  }
  std::ofstream json_file;
  if (!json.empty()) {
    json_file.open(json);
    if (!json_file) {
      std::cerr << "--json: cannot write '" << json << "'\n";
      return kBadInput;
    }
  }

  const bool terminal = isatty(STDERR_FILENO) == 1;
  const std::vector<Verdict> verdicts = Validate(published.rows, [&](size_t index) {
    if (!terminal) return;
    std::cerr << "\r\033[K[" << index + 1 << "/" << published.rows.size() << "] "
              << published.rows[index].name << std::flush;
  });
  if (terminal) std::cerr << "\r\033[K" << std::flush;
  PrintReport(published, verdicts, std::cout);
  if (json_file.is_open()) PrintJson(published, verdicts, json_file);
  json_file.close();
  std::cout.flush();
  if (!std::cout || (!json.empty() && !json_file)) {
    std::cerr << "validate: the results could not be written\n";
    return kRowFailed;
  }
  for (const Verdict& verdict : verdicts) {
    if (!verdict.ok) return kRowFailed;
  }
  return 0;
}
