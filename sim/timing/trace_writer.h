#ifndef SIMHCA_SIM_TIMING_TRACE_WRITER_H_
#define SIMHCA_SIM_TIMING_TRACE_WRITER_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/timing/time.h"

namespace simhca {

// Writes what happened when as a trace in the JSON array form of Chrome's trace viewer, which
// ui.perfetto.dev and chrome://tracing open.  A device is a process there, a resource a thread.
// Names must need no escaping.  Uses system calls alone: the names of libc may be interposed.
class TraceWriter {
 public:
  TraceWriter() = default;
  ~TraceWriter() { Close(); }
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  // Makes the file, or empties it.  Returns 0 or a positive errno.
  int Open(const std::string& path);
  bool open() const { return file_ >= 0; }
  // After a failed write: nothing more is written.  0 or a positive errno.
  int error() const { return error_; }
  void Close();

  // In a forked child: the file is the parent's.
  void Abandon();

  // The name of a track, once for each.
  void NameTrack(uint32_t device, uint32_t track, std::string_view name);
  void NameDevice(uint32_t device, std::string_view name);

  // Something that took from `start` to `end`.
  void Slice(uint32_t device, uint32_t track, std::string_view name, Time start, Time end);
  // A value from now on, in a graph of its own.
  void Count(uint32_t device, std::string_view name, Time when, int64_t value);
  void Instant(uint32_t device, uint32_t track, std::string_view name, Time when);

 private:
  static constexpr size_t kBufferBytes = 64 * 1024;

  void Begin(char phase, uint32_t device, std::string_view name);
  void Add(std::string_view key, int64_t value);
  void AddTime(std::string_view key, Time time);
  void End();
  void Flush();

  int file_ = -1;
  int error_ = 0;
  bool first_ = true;
  std::string buffer_;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_TIMING_TRACE_WRITER_H_
