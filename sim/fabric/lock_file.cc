#include "sim/fabric/lock_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <map>

namespace simhca {

constexpr uint64_t kControlByte = 1 + kMaxProcesses;

// The process's open lock files.  Never destroyed: calls may come after static destructors.
using OpenFiles = std::map<std::string, std::weak_ptr<LockFile>>;
static OpenFiles& TheOpenFiles() {
  static OpenFiles& files = *new OpenFiles;
  return files;
}

// The child of a fork has none of its parent's locks.
void ForgetLocksInChild() {
  for (auto& [path, weak] : TheOpenFiles()) {
    if (const auto file = weak.lock()) file->held_.reset();
  }
}

std::mutex& FabricMutex() {
  static std::mutex& mutex = *new std::mutex;
  static const int registered =
      pthread_atfork([] { FabricMutex().lock(); }, [] { FabricMutex().unlock(); },
                     [] {
                       ForgetLocksInChild();
                       FabricMutex().unlock();
                     });
  static_cast<void>(registered);
  return mutex;
}

// Registered before anybody who takes the mutex in a handler of its own, as an engine that is given
// up in the child does: handlers for the child run in the order of their registration.
[[gnu::constructor]] static void RegisterForkHandlers() { FabricMutex(); }

int LockFile::Open(const std::string& path, std::shared_ptr<LockFile>* file, std::string* error) {
  *file = TheOpenFiles()[path].lock();
  if (*file != nullptr) return 0;
  const int descriptor = RawOpen(path, O_RDWR | O_CREAT, 0600);
  if (descriptor < 0) {
    *error = "cannot open " + path + ": " + strerror(-descriptor);
    return -descriptor;
  }
  FileStatus status;
  if (RawStatus(descriptor, &status) != 0 || !IsPrivateFile(status)) {
    RawClose(descriptor);
    *error = path + " is not a private file (mode 0600) of this user";
    return EPERM;
  }
  *file = std::make_shared<LockFile>(path, descriptor);
  TheOpenFiles()[path] = *file;
  return 0;
}

LockFile::LockFile(const std::string& path, int descriptor)
    : path_(path), descriptor_(path, descriptor) {}

LockFile::~LockFile() {
  const auto found = TheOpenFiles().find(path_);
  if (found != TheOpenFiles().end() && found->second.expired()) TheOpenFiles().erase(found);
}

bool LockFile::IsCurrent() const {
  FileStatus status;
  return RawStatus(path_, &status) == 0 && status.identity == descriptor_.identity();
}

void LockFile::Forget(const std::string& path) { TheOpenFiles().erase(path); }

bool LockFile::SetLock(int type, uint64_t start) {
  const int descriptor = descriptor_.Get();
  if (descriptor < 0) return false;
  struct flock lock = {};
  lock.l_type = static_cast<short>(type);
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(start);
  lock.l_len = 1;
  return syscall(SYS_fcntl, descriptor, F_SETLK, &lock) == 0;
}

bool LockFile::OthersLock(uint64_t start, uint64_t length) {
  const int descriptor = descriptor_.Get();
  if (descriptor < 0) return true;  // unknown: nobody is declared dead
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(start);
  lock.l_len = static_cast<off_t>(length);
  return syscall(SYS_fcntl, descriptor, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

bool LockFile::TryLock() { return SetLock(F_WRLCK, 0); }

bool LockFile::WaitLock(int milliseconds) {
  constexpr int kStepsPerMillisecond = 5;
  const timespec step = {0, 1'000'000 / kStepsPerMillisecond};
  for (int i = 0; i < milliseconds * kStepsPerMillisecond; ++i) {
    if (TryLock()) return true;
    nanosleep(&step, nullptr);
  }
  return TryLock();
}

void LockFile::Unlock() { SetLock(F_UNLCK, 0); }

bool LockFile::TryLockControl() { return SetLock(F_WRLCK, kControlByte); }

void LockFile::UnlockControl() { SetLock(F_UNLCK, kControlByte); }

bool LockFile::Hold(uint32_t slot) {
  if (!SetLock(F_WRLCK, 1 + slot)) return false;
  held_.set(slot);
  return true;
}

void LockFile::Release(uint32_t slot) {
  held_.reset(slot);
  SetLock(F_UNLCK, 1 + slot);
}

bool LockFile::Lives(uint32_t slot) { return held_.test(slot) || OthersLock(1 + slot, 1); }

bool LockFile::AnybodyLives() { return held_.any() || OthersLock(1, kMaxProcesses); }

}  // namespace simhca
