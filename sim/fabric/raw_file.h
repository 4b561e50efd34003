#ifndef SIMHCA_SIM_FABRIC_RAW_FILE_H_
#define SIMHCA_SIM_FABRIC_RAW_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace simhca {

// Files by direct system calls: the names of libc may be interposed in the processes that this
// code runs in.  Functions that return int give 0 or a positive errno unless they say otherwise.

struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  bool operator==(const FileIdentity&) const = default;
};

struct FileStatus {
  FileIdentity identity;
  uint32_t owner = 0;
  uint32_t mode = 0;  // with the type
  uint64_t bytes = 0;
};

// A descriptor (>= 0) or a negative errno.  Never follows a symbolic link; closed on exec.
int RawOpen(const std::string& path, int flags, uint32_t mode);
void RawClose(int descriptor);
int RawStatus(int descriptor, FileStatus* status);
int RawStatus(const std::string& path, FileStatus* status);
int RawUnlink(const std::string& path);
int RawTruncate(int descriptor, uint64_t bytes);
// Gives the range pages (ENOSPC when the file system has none), or takes them away.
int RawAllocate(int descriptor, uint64_t offset, uint64_t bytes);
int RawPunchHole(int descriptor, uint64_t offset, uint64_t bytes);

// Identifies the namespace of this process's pid; 0 if it cannot be known.
uint64_t PidNamespace();

// A regular file of this user that nobody else may read or write, as ours are made.
bool IsPrivateFile(const FileStatus& status);

// A descriptor that programs are unlikely to step on, and that comes back when a program has
// closed it: daemons close every descriptor.
class KeptDescriptor {
 public:
  KeptDescriptor() = default;
  // Takes `descriptor`, moving it to a high number.
  KeptDescriptor(std::string path, int descriptor);
  KeptDescriptor(const KeptDescriptor&) = delete;
  KeptDescriptor& operator=(const KeptDescriptor&) = delete;
  ~KeptDescriptor();

  // The descriptor, opened again if need be; negative errno if the path no longer names the file.
  // `reopened` (may be null) tells whether it was.
  int Get(bool* reopened = nullptr);
  const FileIdentity& identity() const { return identity_; }

 private:
  bool StillOurs() const;

  std::string path_;
  FileIdentity identity_;
  int descriptor_ = -1;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_FABRIC_RAW_FILE_H_
