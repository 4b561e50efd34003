#include "tests/unit/shim_load_test/program.h"

#include <link.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

namespace simhca {
namespace {

std::string Quoted(const std::string& text) {
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

ProgramResult RunInShell(const std::string& command) {
  ProgramResult result;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return result;
  char chunk[4096];
  for (size_t n; (n = std::fread(chunk, 1, sizeof(chunk), pipe)) > 0;) {
    result.output.append(chunk, n);
  }
  const int status = pclose(pipe);
  result.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

std::string WorkspaceFile(const std::string& path) {
  const char* root = std::getenv("TEST_SRCDIR");
  const char* workspace = std::getenv("TEST_WORKSPACE");
  if (root == nullptr || workspace == nullptr) throw std::runtime_error("not run by Bazel");
  return std::string(root) + "/" + workspace + "/" + path;
}

}  // namespace

std::string Runfile(const std::string& path) {
  return WorkspaceFile("tests/unit/shim_load_test/" + path);
}

std::string PreloadObject() { return WorkspaceFile("verbs_shim/libsimhca.so"); }

std::string DropInFolder() { return WorkspaceFile("verbs_shim/dropin"); }

std::string SanitizerRuntime() {
  std::string found;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* result) {
        const std::string name = info->dlpi_name;
        const bool is_runtime = name.find("/libasan.so") != std::string::npos ||
                                name.find("/libtsan.so") != std::string::npos;
        if (is_runtime) *static_cast<std::string*>(result) = name;
        return is_runtime ? 1 : 0;
      },
      &found);
  return found;
}

std::vector<std::string> ShellLines(const std::string& command) {
  std::istringstream output(RunInShell(command).output);
  std::vector<std::string> lines;
  for (std::string line; std::getline(output, line);) lines.push_back(line);
  return lines;
}

Program& Program::Set(const std::string& variable, const std::string& value) {
  environment_.emplace_back(variable, value);
  return *this;
}

Program& Program::Preload(const std::string& runtime) {
  const std::string first = runtime.empty() ? SanitizerRuntime() : runtime;
  return Set("LD_PRELOAD", first.empty() ? PreloadObject() : first + ":" + PreloadObject());
}

Program& Program::DropIn() {
  const std::string runtime = SanitizerRuntime();
  if (!runtime.empty()) Set("LD_PRELOAD", runtime);
  return Set("LD_LIBRARY_PATH", DropInFolder());
}

ProgramResult Program::Run() const {
  // `env` is the last program that runs without the shim.
  std::string line = "timeout 60 env";
  line += " SIMHCA_FABRIC=shim_load_" + std::to_string(getpid());
  if (!SanitizerRuntime().empty()) line += " ASAN_OPTIONS=detect_leaks=0";
  for (const auto& [variable, value] : environment_) line += " " + Quoted(variable + "=" + value);
  for (const std::string& word : command_) line += " " + Quoted(word);
  return RunInShell(line + " 2>&1");
}

}  // namespace simhca
