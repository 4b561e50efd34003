#include "verbs_shim/driver/mapped_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace simhca::driver {

namespace {

// The lines of /proc/self/maps, one after the other.  Uses system calls directly: the C library's
// functions may be ours.
class MapsReader {
 public:
  MapsReader()
      : fd_(static_cast<int>(
            syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC))) {}
  ~MapsReader() {
    if (fd_ >= 0) syscall(SYS_close, fd_);
  }
  bool ok() const { return fd_ >= 0; }

  struct Mapping {
    uintptr_t begin;
    uintptr_t end;
    bool readable;
    bool writable;
    bool file;
  };

  // False at the end.
  bool Next(Mapping* mapping) {
    mapping->begin = ReadHex();
    mapping->end = ReadHex();
    mapping->readable = ReadChar() == 'r';
    mapping->writable = ReadChar() == 'w';
    // "xp OFFSET DEVICE INODE PATH"
    for (int spaces = 0; spaces < 3;) {
      const int c = ReadChar();
      if (c < 0) return false;
      spaces += c == ' ';
    }
    int c = ReadChar();
    mapping->file = c >= '1' && c <= '9';
    for (; c != '\n'; c = ReadChar()) {
      if (c < 0) return false;
    }
    return true;
  }

 private:
  // Up to and including the character that ends the number.
  uintptr_t ReadHex() {
    uintptr_t value = 0;
    for (;;) {
      const int c = ReadChar();
      if (c >= '0' && c <= '9') {
        value = value << 4 | static_cast<uintptr_t>(c - '0');
      } else if (c >= 'a' && c <= 'f') {
        value = value << 4 | static_cast<uintptr_t>(c - 'a' + 10);
      } else {
        return value;
      }
    }
  }
  int ReadChar() {
    if (next_ == filled_) {
      filled_ = syscall(SYS_read, fd_, buffer_, sizeof(buffer_));
      next_ = 0;
      if (filled_ <= 0) {
        filled_ = 0;
        return -1;
      }
    }
    return static_cast<unsigned char>(buffer_[next_++]);
  }

  const int fd_;
  long next_ = 0;
  long filled_ = 0;
  char buffer_[4096];
};

// A mapping may reach beyond the end of its file, where there is nothing to access.
bool HasPages(uintptr_t begin, uintptr_t end) {
  constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ, Linux 5.14
  const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  begin &= ~(page - 1);
  end = (end + page - 1) & ~(page - 1);
  return madvise(reinterpret_cast<void*>(begin), end - begin, kPopulateRead) == 0 ||
         errno != EFAULT;
}

}  // namespace

bool IsMapped(const void* address, size_t length, bool writable) {
  uintptr_t missing = reinterpret_cast<uintptr_t>(address);  // all below is fine
  const uintptr_t end = missing + length;
  if (end < missing) return false;
  MapsReader maps;
  if (!maps.ok()) return true;
  MapsReader::Mapping mapping;
  while (missing < end && maps.Next(&mapping)) {
    if (mapping.end <= missing) continue;
    if (mapping.begin > missing) return false;
    if (!mapping.readable || (writable && !mapping.writable)) return false;
    const uintptr_t last = std::min(mapping.end, end);
    if (mapping.file && !HasPages(missing, last)) return false;
    missing = mapping.end;
  }
  return missing >= end;
}

}  // namespace simhca::driver
