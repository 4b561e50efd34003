#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "verbs_shim/abi/export.h"
#include "verbs_shim/files/device_files.h"

// Access to sysfs on behalf of librdmacm and rdma-core's programs; in no public header.

namespace simhca::abi {
namespace {

// Bytes read into `buffer`, or -1 with errno.
ssize_t ReadFile(const std::string& path, char* buffer, size_t size) {
  if (const std::optional<std::string> text = files::ReadDeviceFile(path)) {
    const size_t length = std::min(text->size(), size);
    std::memcpy(buffer, text->data(), length);
    return static_cast<ssize_t>(length);
  }
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  const ssize_t length = read(fd, buffer, size);
  const int error = errno;
  close(fd);
  errno = error;
  return length;
}

}  // namespace

// Where sysfs is mounted.  SYSFS_PATH overrides it for tests of the real library, and so here.
SIMHCA_EXPORT const char* ibv_get_sysfs_path() {
  static const auto* const path = [] {
    const char* text = secure_getenv("SYSFS_PATH");
    auto* chosen = new std::string(text == nullptr ? "/sys" : text);
    while (!chosen->empty() && chosen->back() == '/') chosen->pop_back();
    return chosen;
  }();
  return path->c_str();
}

// Reads `file` of the directory `dir` as a text without its last newline.  Returns the length, or
// -1 if the file cannot be read or its text and a terminating null do not fit.
SIMHCA_EXPORT int ibv_read_sysfs_file(const char* dir, const char* file, char* buffer,
                                      size_t size) {
  if (dir == nullptr || file == nullptr || buffer == nullptr) return MinusOne(EINVAL);
  const ssize_t length = ReadFile(std::string(dir) + "/" + file, buffer, size);
  if (length <= 0) return static_cast<int>(length);
  if (buffer[length - 1] == '\n') {
    buffer[length - 1] = '\0';
    return static_cast<int>(length - 1);
  }
  if (static_cast<size_t>(length) == size) return -1;
  buffer[length] = '\0';
  return static_cast<int>(length);
}

}  // namespace simhca::abi
