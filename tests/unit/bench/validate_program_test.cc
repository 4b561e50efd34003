// The exit status and the output of the program behind ./simhca bench --validate.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace {

using testing::HasSubstr;

struct Outcome {
  int status;
  std::string output;  // of both streams
};

class ValidateProgram : public testing::Test {
 protected:
  Outcome Run(const std::string& arguments) {
    FILE* pipe = popen(("bench/model/validate " + arguments + " 2>&1").c_str(), "r");
    std::string output;
    char block[4096];
    size_t got;
    while ((got = fread(block, 1, sizeof(block), pipe)) > 0) output.append(block, got);
    return {WEXITSTATUS(pclose(pipe)), output};
  }

  Outcome RunOn(const std::string& text, const std::string& arguments = "") {
    std::ofstream(file_) << text;
    return Run(file_ + " " + arguments);
  }

  const std::string file_ = testing::TempDir() + "/rows.toml";
  const std::string json_ = testing::TempDir() + "/rows.json";
};

std::string RowOf(const std::string& published) {
  return "[[row]]\nname = \"writes\"\nsource = \"here\"\nprofile = \"connectx3\"\n"
         "quantity = \"pcie_write_rate\"\nbytes = 64\ntolerance = 1\npublished = " +
         published + "\n";
}

TEST_F(ValidateProgram, EndsWith0WhenAllRowsAgree) {
  const Outcome outcome = RunOn(RowOf("42.1"), "--json " + json_);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.output, HasSubstr("1 rows: 1 ok, 0 FAILED"));
  std::stringstream json;
  json << std::ifstream(json_).rdbuf();
  EXPECT_THAT(json.str(), HasSubstr("\"scenario\": \"writes\", \"published\": 42.1, "));
}

TEST_F(ValidateProgram, EndsWith1WhenARowFails) {
  const Outcome outcome = RunOn(RowOf("50"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.output, HasSubstr("FAILED"));
}

TEST_F(ValidateProgram, EndsWith2ForBadInput) {
  const Outcome outcome = RunOn(RowOf("\"much\""));
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.output, file_ + ":8: published: accepted is a number\n");
  EXPECT_EQ(Run("").status, 2);
  EXPECT_EQ(Run("--colour x.toml").status, 2);
  EXPECT_EQ(Run("/nonexistent.toml").output,
            "/nonexistent.toml: cannot be read: No such file or directory\n");
  EXPECT_EQ(Run("/nonexistent.toml").status, 2);
  EXPECT_EQ(RunOn(RowOf("42.1"), "--json /nonexistent/j").status, 2);
}

}  // namespace
