#include "sim/timing/trace_writer.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <utility>

namespace simhca {

int TraceWriter::Open(const std::string& path) {
  Close();
  const long file =
      syscall(SYS_openat, AT_FDCWD, path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return errno;
  file_ = static_cast<int>(file);
  error_ = 0;
  first_ = true;
  buffer_ = "[";
  buffer_.reserve(kBufferBytes + 1024);
  return 0;
}

void TraceWriter::Close() {
  if (file_ < 0) return;
  buffer_ += "\n]\n";
  Flush();
  Abandon();
}

void TraceWriter::Abandon() {
  if (file_ >= 0) syscall(SYS_close, file_);
  file_ = -1;
  buffer_.clear();
}

void TraceWriter::Flush() {
  size_t written = 0;
  while (error_ == 0 && written < buffer_.size()) {
    const long count =
        syscall(SYS_write, file_, buffer_.data() + written, buffer_.size() - written);
    if (count > 0) {
      written += static_cast<size_t>(count);
    } else if (count == 0 || errno != EINTR) {
      error_ = count == 0 ? EIO : errno;
    }
  }
  buffer_.clear();
}

void TraceWriter::Begin(char phase, uint32_t device, std::string_view name) {
  buffer_ += std::exchange(first_, false) ? "\n" : ",\n";
  buffer_ += R"({"ph":")";
  buffer_ += phase;
  buffer_ += R"(","name":")";
  buffer_ += name;
  buffer_ += '"';
  Add("pid", device);
}

void TraceWriter::Add(std::string_view key, int64_t value) {
  char digits[24];
  const auto [end, error] = std::to_chars(digits, digits + sizeof(digits), value);
  buffer_ += ",\"";
  buffer_ += key;
  buffer_ += "\":";
  buffer_.append(digits, end);
}

// The format counts microseconds; the picoseconds follow the point.
void TraceWriter::AddTime(std::string_view key, Time time) {
  Add(key, time / kMicrosecond);
  std::string fraction = ".000000";
  int64_t rest = time % kMicrosecond;
  for (size_t i = 6; i > 0; --i, rest /= 10) fraction[i] = static_cast<char>('0' + rest % 10);
  buffer_ += fraction;
}

void TraceWriter::End() {
  buffer_ += '}';
  if (buffer_.size() >= kBufferBytes) Flush();
}

void TraceWriter::NameDevice(uint32_t device, std::string_view name) {
  if (!open()) return;
  Begin('M', device, "process_name");
  buffer_ += R"(,"args":{"name":")";
  buffer_ += name;
  buffer_ += "\"}";
  End();
}

void TraceWriter::NameTrack(uint32_t device, uint32_t track, std::string_view name) {
  if (!open()) return;
  Begin('M', device, "thread_name");
  Add("tid", track);
  buffer_ += R"(,"args":{"name":")";
  buffer_ += name;
  buffer_ += "\"}";
  End();
}

void TraceWriter::Slice(uint32_t device, uint32_t track, std::string_view name, Time start,
                        Time end) {
  if (!open()) return;
  Begin('X', device, name);
  Add("tid", track);
  AddTime("ts", start);
  AddTime("dur", end - start);
  End();
}

void TraceWriter::Count(uint32_t device, std::string_view name, Time when, int64_t value) {
  if (!open()) return;
  Begin('C', device, name);
  AddTime("ts", when);
  buffer_ += R"(,"args":{"value":)";
  buffer_ += std::to_string(value);
  buffer_ += '}';
  End();
}

void TraceWriter::Instant(uint32_t device, uint32_t track, std::string_view name, Time when) {
  if (!open()) return;
  Begin('i', device, name);
  Add("tid", track);
  AddTime("ts", when);
  buffer_ += R"(,"s":"p")";
  End();
}

}  // namespace simhca
