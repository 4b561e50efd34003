#ifndef SIMHCA_VERBS_SHIM_DRIVER_LOG_H_
#define SIMHCA_VERBS_SHIM_DRIVER_LOG_H_

#include <fmt/core.h>

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace simhca::driver {

// SIMHCA_LOG: each level includes those before it.
enum class LogLevel : int { kOff, kError, kWarn, kInfo, kDebug };

inline constexpr std::string_view kLogLevelNames = "off, error, warn, info, debug";

// The level of that name on the command line, or nullopt.
std::optional<LogLevel> ParseLogLevel(std::string_view name);

inline std::atomic<LogLevel> log_level{LogLevel::kError};

inline bool LogEnabled(LogLevel level) {
  return log_level.load(std::memory_order_relaxed) >= level;
}

// Writes "simhca: LEVEL: TEXT" and a newline to standard error with one system call.
void WriteLogLine(LogLevel level, std::string_view text);

// fmt::format, of which only the declarations are needed here: the library itself is compiled into
// log.cc, once.
std::string FormatArguments(fmt::string_view format, fmt::format_args arguments);

template <typename... Args>
std::string Format(fmt::format_string<Args...> format, Args&&... args) {
  return FormatArguments(format, fmt::make_format_args(args...));
}

template <typename... Args>
void Log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (LogEnabled(level)) WriteLogLine(level, Format(format, std::forward<Args>(args)...));
}

// "EINVAL" and so on.
const char* ErrnoName(int error);

// Explains a refusal and returns `error`, which the verb is about to give to its caller: the verb,
// the object (null if there is none) and the rule that the call broke.
//   return Refuse(EINVAL, "ibv_post_srq_recv", srq, "num_sge {} is above max_sge {}", n, max);
template <typename... Args>
[[gnu::cold, gnu::noinline]] int Refuse(int error, const char* verb, const void* object,
                                        fmt::format_string<Args...> rule, Args&&... args) {
  if (LogEnabled(LogLevel::kWarn)) {
    WriteLogLine(LogLevel::kWarn, Format("{}({}): {}: {}", verb, object, ErrnoName(error),
                                         Format(rule, std::forward<Args>(args)...)));
  }
  return error;
}

}  // namespace simhca::driver

#endif  // SIMHCA_VERBS_SHIM_DRIVER_LOG_H_
