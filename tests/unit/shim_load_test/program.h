#ifndef SIMHCA_TESTS_UNIT_SHIM_LOAD_TEST_PROGRAM_H_
#define SIMHCA_TESTS_UNIT_SHIM_LOAD_TEST_PROGRAM_H_

#include <string>
#include <utility>
#include <vector>

namespace simhca {

struct ProgramResult {
  int exit_status = -1;  // 128 + signal if a signal ended it, as a shell says it
  std::string output;    // standard output and standard error together
};

// One run of a program under the shim, in a form and with settings, on a fabric of this test.
class Program {
 public:
  explicit Program(std::vector<std::string> command) : command_(std::move(command)) {}

  Program& Set(const std::string& variable, const std::string& value);

  // With libsimhca.so in LD_PRELOAD; behind the sanitizer runtime of this test, or `runtime`, that
  // has to come first.
  Program& Preload(const std::string& runtime = "");

  // With the folder of the drop-in libibverbs.so.1 in LD_LIBRARY_PATH.
  Program& DropIn();

  // Kills the program after a minute.
  ProgramResult Run() const;

 private:
  std::vector<std::string> command_;
  std::vector<std::pair<std::string, std::string>> environment_;
};

// Path of a file of this package, of `//verbs_shim` for the shim's objects.
std::string Runfile(const std::string& path);
std::string PreloadObject();
std::string DropInFolder();

// The sanitizer's runtime that this test is linked with, or an empty text.
std::string SanitizerRuntime();

// Lines of what `command` prints in a shell.
std::vector<std::string> ShellLines(const std::string& command);

}  // namespace simhca

#endif  // SIMHCA_TESTS_UNIT_SHIM_LOAD_TEST_PROGRAM_H_
