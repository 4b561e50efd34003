// The main program of the tests TARGET_test: one case for each file of the target's corpus, so
// that every compiler and sanitizer runs what fuzzing has found before.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/input.h"

namespace simhca::fuzz {
namespace {

namespace fs = std::filesystem;

class Replay : public testing::Test {
 public:
  explicit Replay(fs::path file) : file_(std::move(file)) {}

  // A broken rule or a sanitizer's finding ends the process.
  void TestBody() override {
    std::ifstream stream(file_, std::ios::binary);
    ASSERT_TRUE(stream) << "cannot read " << file_;
    const std::vector<char> bytes{std::istreambuf_iterator<char>(stream), {}};
    EXPECT_EQ(LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()),
              0);
  }

 private:
  const fs::path file_;
};

class Corpus : public testing::Test {
 public:
  explicit Corpus(size_t files) : files_(files) {}
  void TestBody() override { EXPECT_GT(files_, 0u) << "no files in the corpus"; }

 private:
  const size_t files_;
};

// Where Bazel puts the test's files; beside the program when that is started by hand.
fs::path Runfiles(const fs::path& program) {
  const char* given = std::getenv("TEST_SRCDIR");
  return given != nullptr ? fs::path(given) : fs::path(program.string() + ".runfiles");
}

void RegisterCorpus() {
  const fs::path program = fs::read_symlink("/proc/self/exe");
  std::string target = program.filename();
  if (target.ends_with("_test")) target.resize(target.size() - 5);
  const fs::path folder = Runfiles(program) / "simhca/tests/fuzz/corpus" / target;
  std::vector<fs::path> files;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  const std::string suite = "Fuzz_" + target;
  testing::RegisterTest(suite.c_str(), "CorpusIsThere", nullptr, nullptr, __FILE__, __LINE__,
                        [count = files.size()]() -> testing::Test* { return new Corpus(count); });
  for (const fs::path& file : files) {
    testing::RegisterTest(suite.c_str(), file.filename().c_str(), nullptr, nullptr, __FILE__,
                          __LINE__, [file]() -> testing::Test* { return new Replay(file); });
  }
}

}  // namespace
}  // namespace simhca::fuzz

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  simhca::fuzz::RegisterCorpus();
  return RUN_ALL_TESTS();
}
