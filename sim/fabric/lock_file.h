#ifndef SIMHCA_SIM_FABRIC_LOCK_FILE_H_
#define SIMHCA_SIM_FABRIC_LOCK_FILE_H_

#include <bitset>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "sim/fabric/layout.h"
#include "sim/fabric/raw_file.h"

namespace simhca {

// Guards everything in this file and the changes of membership against other threads of this
// process, which record locks do not.  Held across fork, so that the child finds it free.
std::mutex& FabricMutex();

// The lock file of a fabric as this process holds it.  Byte 0 is the fabric's lock; a process
// shows that it lives by holding byte 1 + slot; the byte after these keeps clients of control
// apart. These are fcntl record locks: they belong to the process (a forked child does not hold
// them, threads share them), they end with the process, and they end when *any* descriptor of the
// file is closed.  Therefore a process has one LockFile for a path, however often it joins, and it
// is closed when nobody uses it any more.
//
// All functions: FabricMutex held.
class LockFile {
 public:
  // The process's LockFile for `path`, opened or created.  Returns 0 or a positive errno.
  static int Open(const std::string& path, std::shared_ptr<LockFile>* file, std::string* error);

  LockFile(const std::string& path, int descriptor);
  ~LockFile();

  // The path still names the file: nobody removed it since it was opened.
  bool IsCurrent() const;
  // Makes Open open the path anew.
  static void Forget(const std::string& path);

  // The fabric's lock.  Try: at once or not at all.  Wait: within about `milliseconds`.
  bool TryLock();
  bool WaitLock(int milliseconds);
  void Unlock();

  // The lock of control clients, at once or not at all.
  bool TryLockControl();
  void UnlockControl();

  // This process as the one that lives in `slot`.  Hold also takes back a lost lock.
  bool Hold(uint32_t slot);
  void Release(uint32_t slot);

  bool Lives(uint32_t slot);
  bool AnybodyLives();

 private:
  friend void ForgetLocksInChild();
  bool SetLock(int type, uint64_t start);
  bool OthersLock(uint64_t start, uint64_t length);

  const std::string path_;
  KeptDescriptor descriptor_;
  std::bitset<kMaxProcesses> held_;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_FABRIC_LOCK_FILE_H_
