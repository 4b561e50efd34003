#include "sim/fabric/raw_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

namespace simhca {
namespace {

// Above what programs use and below the usual soft limit of 1024.
constexpr int kHighDescriptor = 900;

int Result(long result) { return result < 0 ? errno : 0; }

int Statx(int directory, const char* path, int flags, FileStatus* status) {
  struct statx answer;
  if (syscall(SYS_statx, directory, path, flags, STATX_BASIC_STATS, &answer) != 0) return errno;
  status->identity.device = uint64_t{answer.stx_dev_major} << 32 | answer.stx_dev_minor;
  status->identity.inode = answer.stx_ino;
  status->owner = answer.stx_uid;
  status->mode = answer.stx_mode;
  status->bytes = answer.stx_size;
  return 0;
}

}  // namespace

int RawOpen(const std::string& path, int flags, uint32_t mode) {
  const long result =
      syscall(SYS_openat, AT_FDCWD, path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, mode);
  return result < 0 ? -errno : static_cast<int>(result);
}

void RawClose(int descriptor) { syscall(SYS_close, descriptor); }

int RawStatus(int descriptor, FileStatus* status) {
  return Statx(descriptor, "", AT_EMPTY_PATH, status);
}

int RawStatus(const std::string& path, FileStatus* status) {
  return Statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, status);
}

int RawUnlink(const std::string& path) {
  return Result(syscall(SYS_unlinkat, AT_FDCWD, path.c_str(), 0));
}

int RawTruncate(int descriptor, uint64_t bytes) {
  return Result(syscall(SYS_ftruncate, descriptor, bytes));
}

int RawAllocate(int descriptor, uint64_t offset, uint64_t bytes) {
  long result;
  do {
    result = syscall(SYS_fallocate, descriptor, 0, offset, bytes);
  } while (result < 0 && errno == EINTR);
  return Result(result);
}

int RawPunchHole(int descriptor, uint64_t offset, uint64_t bytes) {
  return Result(syscall(SYS_fallocate, descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                        offset, bytes));
}

uint64_t PidNamespace() {
  FileStatus status;
  return Statx(AT_FDCWD, "/proc/self/ns/pid", 0, &status) == 0 ? status.identity.inode : 0;
}

bool IsPrivateFile(const FileStatus& status) {
  return (status.mode & S_IFMT) == S_IFREG && (status.mode & 07777) == 0600 &&
         status.owner == static_cast<uint32_t>(syscall(SYS_geteuid));
}

KeptDescriptor::KeptDescriptor(std::string path, int descriptor) : path_(std::move(path)) {
  FileStatus status;
  if (RawStatus(descriptor, &status) == 0) identity_ = status.identity;
  const long high = syscall(SYS_fcntl, descriptor, F_DUPFD_CLOEXEC, kHighDescriptor);
  descriptor_ = descriptor;
  if (high >= 0) {
    RawClose(descriptor);
    descriptor_ = static_cast<int>(high);
  }
}

KeptDescriptor::~KeptDescriptor() {
  if (descriptor_ >= 0 && StillOurs()) RawClose(descriptor_);
}

bool KeptDescriptor::StillOurs() const {
  FileStatus status;
  return RawStatus(descriptor_, &status) == 0 && status.identity == identity_;
}

int KeptDescriptor::Get(bool* reopened) {
  if (reopened != nullptr) *reopened = false;
  if (descriptor_ >= 0 && StillOurs()) return descriptor_;
  descriptor_ = -1;
  const int descriptor = RawOpen(path_, O_RDWR, 0);
  if (descriptor < 0) return descriptor;
  FileStatus status;
  const int error = RawStatus(descriptor, &status);
  if (error != 0 || status.identity != identity_) {
    RawClose(descriptor);
    return error != 0 ? -error : -ESTALE;
  }
  const long high = syscall(SYS_fcntl, descriptor, F_DUPFD_CLOEXEC, kHighDescriptor);
  descriptor_ = descriptor;
  if (high >= 0) {
    RawClose(descriptor);
    descriptor_ = static_cast<int>(high);
  }
  if (reopened != nullptr) *reopened = true;
  return descriptor_;
}

}  // namespace simhca
