// The one file that compiles the library behind the declarations in log.h.
#define FMT_HEADER_ONLY 1
#include "verbs_shim/driver/log.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace simhca::driver {

namespace {
constexpr std::string_view kNames[] = {"off", "error", "warn", "info", "debug"};
}  // namespace

std::optional<LogLevel> ParseLogLevel(std::string_view name) {
  for (int level = 0; level < static_cast<int>(std::size(kNames)); ++level) {
    if (name == kNames[level]) return static_cast<LogLevel>(level);
  }
  return std::nullopt;
}

void WriteLogLine(LogLevel level, std::string_view text) {
  const int saved_errno = errno;
  const std::string line = Format("simhca: {}: {}\n", kNames[static_cast<int>(level)], text);
  [[maybe_unused]] const long written = syscall(SYS_write, STDERR_FILENO, line.data(), line.size());
  errno = saved_errno;
}

std::string FormatArguments(fmt::string_view format, fmt::format_args arguments) {
  return fmt::vformat(format, arguments);
}

const char* ErrnoName(int error) {
  const char* name = strerrorname_np(error);
  return name != nullptr ? name : "?";
}

}  // namespace simhca::driver
