#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

// The table of rules and the tests that name them say the same.

namespace simhca {
namespace {

constexpr const char* kFolder = "tests/conformance";

// From a test, "Suite.Name", to the rules that it names, or that the table says it shows.
using RulesByTest = std::map<std::string, std::set<std::string>>;

std::string Read(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Calls `found` with each match of `pattern` in `text`.
template <typename Found>
void ForEach(const std::string& text, const char* pattern, Found found) {
  const std::regex regex(pattern);
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at) found(*at);
}

constexpr const char* kRuleName = "[A-Z]+-[0-9]+";

RulesByTest RulesInSources() {
  RulesByTest rules;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() != ".cc") continue;
    ForEach(Read(entry.path()),
            R"re(TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)\s*\{(?:\s*Rule\(([^)]*)\))?)re",
            [&rules](const std::smatch& test) {
              std::set<std::string>& named = rules[test.str(1) + "." + test.str(2)];
              ForEach(test.str(3), kRuleName,
                      [&named](const std::smatch& rule) { named.insert(rule.str()); });
            });
  }
  return rules;
}

// Rows of the table: the rule, and everything behind it.
std::map<std::string, std::string> Table() {
  std::map<std::string, std::string> rows;
  std::istringstream table(Read(std::string(kFolder) + "/rules.md"));
  for (std::string line; std::getline(table, line);) {
    std::smatch row;
    if (!std::regex_match(line, row, std::regex("\\| ([A-Z]+-[0-9]+) \\|(.*)"))) continue;
    EXPECT_TRUE(rows.emplace(row.str(1), row.str(2)).second) << row.str(1) << " stands twice";
  }
  return rows;
}

TEST(Rules, EveryRowNamesTestsThatExistAndThatNameIt) {
  const RulesByTest sources = RulesInSources();
  const std::map<std::string, std::string> table = Table();
  ASSERT_GT(table.size(), 100u) << "is the table there?";
  for (const auto& [rule, row] : table) {
    int tests = 0;
    ForEach(row, "`(\\w+\\.\\w+)`", [&, &rule = rule](const std::smatch& test) {
      ++tests;
      const auto found = sources.find(test.str(1));
      ASSERT_NE(sources.end(), found) << rule << " names " << test.str(1);
      EXPECT_TRUE(found->second.contains(rule)) << test.str(1) << " does not name " << rule;
    });
    EXPECT_GT(tests, 0) << rule << " has no test";
  }
}

TEST(Rules, EveryRuleThatATestNamesListsTheTest) {
  const std::map<std::string, std::string> table = Table();
  for (const auto& [test, rules] : RulesInSources()) {
    for (const std::string& rule : rules) {
      const auto row = table.find(rule);
      ASSERT_NE(table.end(), row) << test << " names " << rule;
      EXPECT_NE(std::string::npos, row->second.find('`' + test + '`'))
          << rule << " does not list " << test;
    }
  }
}

}  // namespace
}  // namespace simhca
