#include "sim/device/other_threads.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <cstring>
#include <string>

#include "sim/fabric/raw_file.h"

namespace simhca {

namespace {

// As getdents64 writes it.
struct DirectoryEntry {
  uint64_t inode;
  int64_t offset;
  uint16_t bytes;
  uint8_t type;
  char name[];
};

// State letter of a thread; 0 if it is gone.
char StateOf(const std::string& thread) {
  const int file = RawOpen("/proc/self/task/" + thread + "/stat", O_RDONLY, 0);
  if (file < 0) return 0;
  char text[256];
  const long bytes = syscall(SYS_read, file, text, sizeof(text) - 1);
  RawClose(file);
  if (bytes <= 0) return 0;
  text[bytes] = 0;
  const char* name_end = std::strrchr(text, ')');  // "pid (name) state ..."
  return name_end != nullptr && name_end[1] != 0 ? name_end[2] : 0;
}

}  // namespace

bool OtherThreads::MainHasEnded() {
  const char state = StateOf(std::to_string(syscall(SYS_getpid)));
  return state == 'Z' || state == 'X';
}

OtherThreads OtherThreads::Look() {
  OtherThreads others;
  const int directory = RawOpen("/proc/self/task", O_RDONLY | O_DIRECTORY, 0);
  if (directory < 0) return others;
  const long self = syscall(SYS_gettid);
  alignas(DirectoryEntry) char buffer[4096];
  long bytes;
  while ((bytes = syscall(SYS_getdents64, directory, buffer, sizeof(buffer))) > 0) {
    for (long at = 0; at < bytes;) {
      const auto* entry = reinterpret_cast<const DirectoryEntry*>(buffer + at);
      at += entry->bytes;
      long thread = 0;
      const char* end = entry->name + std::strlen(entry->name);
      if (std::from_chars(entry->name, end, thread).ptr != end || thread == self) continue;
      switch (StateOf(entry->name)) {
        case 0:
        case 'Z':
        case 'X':
          break;
        case 'R':
          ++others.running;
          break;
        default:
          ++others.sleeping;
      }
    }
  }
  others.known = bytes == 0;
  RawClose(directory);
  return others;
}

}  // namespace simhca
