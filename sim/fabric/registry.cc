#include "sim/fabric/registry.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bitset>

namespace simhca {
namespace {

constexpr int kLockMilliseconds = 10'000;
constexpr int kLeaveLockMilliseconds = 1'000;

int Explain(int error, std::string* text, const std::string& what) {
  *text = what;
  return error;
}

uint32_t Pid() { return static_cast<uint32_t>(syscall(SYS_getpid)); }

}  // namespace

std::string FabricPath(const std::string& directory, const std::string& name) {
  return directory + "/simhca-" + std::to_string(syscall(SYS_geteuid)) + "-" + name;
}

std::string FabricLockPath(const std::string& directory, const std::string& name) {
  return FabricPath(directory, name) + ".lock";
}

bool IsFabricName(const std::string& name) {
  const bool characters = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.';
  });
  return characters && !name.empty() && name.size() <= 64 && !name.ends_with(".lock");
}

int64_t MonotonicNanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

int CheckFabricFile(const std::string& path, int descriptor, std::string* error) {
  FileStatus status;
  if (RawStatus(descriptor, &status) != 0 || !IsPrivateFile(status)) {
    return Explain(EPERM, error, path + " is not a private file (mode 0600) of this user");
  }
  FabricHeader header;
  const bool complete = status.bytes == kFabricFileBytes &&
                        syscall(SYS_pread64, descriptor, &header, sizeof header, 0) ==
                            static_cast<long>(sizeof header);
  if (!complete || header.magic != kFabricMagic || header.layout != LayoutHash()) {
    return Explain(EPROTO, error,
                   path +
                       " is in use by another version of simhca: stop its processes, or use "
                       "another fabric name");
  }
  return 0;
}

void WakeProcess(ProcessSlot& process) {
  process.want_wake.store(0);
  syscall(SYS_futex, &process.want_wake, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

// ------------------------------------------------------------------------------ joining

int Registry::Join(const std::string& directory, const std::string& name, bool exclusive,
                   std::unique_ptr<Registry>* registry, std::string* error) {
  if (!IsFabricName(name)) {
    return Explain(EINVAL, error,
                   "bad fabric name '" + name +
                       "': at most 64 letters, digits, '-', '_' and '.', not ending in .lock");
  }
  const std::string lock_path = FabricLockPath(directory, name);
  std::lock_guard guard(FabricMutex());
  for (;;) {
    std::unique_ptr<Registry> joining(new Registry);
    int result = LockFile::Open(lock_path, &joining->lock_, error);
    if (result != 0) return result;
    LockFile& lock = *joining->lock_;
    if (!lock.WaitLock(kLockMilliseconds)) {
      return Explain(ETIMEDOUT, error, lock_path + " is locked by a process that does not run");
    }
    if (!lock.IsCurrent()) {  // removed by the last process that left, just now
      lock.Unlock();
      LockFile::Forget(lock_path);
      continue;
    }
    result = joining->Attach(directory, name, exclusive, error);
    if (result != 0 && result != EAGAIN && !lock.AnybodyLives()) {
      FileStatus status;
      if (RawStatus(FabricPath(directory, name), &status) == ENOENT) RawUnlink(lock_path);
    }
    lock.Unlock();
    if (result == 0) *registry = std::move(joining);
    if (result != EAGAIN) return result;
    const timespec moment = {0, 5'000'000};
    nanosleep(&moment, nullptr);
  }
}

int Registry::Attach(const std::string& directory, const std::string& name, bool exclusive,
                     std::string* error) {
  path_ = FabricPath(directory, name);
  pid_ = Pid();
  pid_namespace_ = PidNamespace();
  const bool inhabited = lock_->AnybodyLives();
  const int descriptor = RawOpen(path_, O_RDWR, 0);
  if (descriptor < 0) {
    if (descriptor != -ENOENT) {
      return Explain(-descriptor, error, "cannot open " + path_ + ": " + strerror(-descriptor));
    }
    if (inhabited) {
      return Explain(EBUSY, error, path_ + " was removed, but processes still live on it");
    }
    const int result = Create(path_, exclusive, error);
    return result != 0 ? result : TakeSlot(error);
  }

  int result = CheckFabricFile(path_, descriptor, error);
  if (result == EPERM || (result != 0 && inhabited)) {
    RawClose(descriptor);
    return result;
  }
  if (result == 0)
    result = Map(path_, descriptor, error);
  else
    RawClose(descriptor);

  if (!inhabited) {
    // What killed processes left, unless one of them is only taking its lock again.
    if (result == 0 && SomebodyMayReturn()) return EAGAIN;
    if (layout_ != nullptr) munmap(layout_, sizeof *layout_);
    layout_ = nullptr;
    file_.reset();
    RawUnlink(path_);
    result = Create(path_, exclusive, error);
    return result != 0 ? result : TakeSlot(error);
  }
  if (result != 0) return result;
  if (layout_->header.exclusive != 0) {
    return Explain(EBUSY, error,
                   "fabric '" + name +
                       "' runs in virtual time, where one process holds all devices; it is in use");
  }
  if (exclusive) {
    return Explain(EBUSY, error,
                   "virtual time wants fabric '" + name + "' for one process; others live on it");
  }
  return TakeSlot(error);
}

int Registry::Create(const std::string& path, bool exclusive, std::string* error) {
  rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < kFabricFileBytes) {
    return Explain(EFBIG, error, "the limit of file sizes (ulimit -f) is too low for a fabric");
  }
  const int descriptor = RawOpen(path, O_RDWR | O_CREAT | O_EXCL, 0600);
  if (descriptor < 0) {
    return Explain(-descriptor, error, "cannot create " + path + ": " + strerror(-descriptor));
  }
  int result = RawTruncate(descriptor, kFabricFileBytes);
  if (result == 0) result = RawAllocate(descriptor, 0, sizeof(FabricLayout));
  if (result != 0) {
    RawClose(descriptor);
    RawUnlink(path);
    return Explain(result, error,
                   result == ENOSPC
                       ? "no room for " + path +
                             ": a fabric takes 1 MiB, and 260 KiB "
                             "for each direction between two processes; a container may "
                             "need a larger /dev/shm (--shm-size)"
                       : "cannot size " + path + ": " + strerror(result));
  }
  result = Map(path, descriptor, error);
  if (result != 0) {
    RawUnlink(path);
    return result;
  }
  FabricHeader& header = layout_->header;
  header.layout = LayoutHash();
  header.exclusive = exclusive;
  header.epoch_ns = MonotonicNanoseconds();
  header.next_generation = 1;
  std::atomic_ref(header.magic).store(kFabricMagic, std::memory_order_release);
  return 0;
}

// Takes the descriptor.
int Registry::Map(const std::string& path, int descriptor, std::string* error) {
  void* memory =
      mmap(nullptr, sizeof(FabricLayout), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) {
    const int result = errno;
    RawClose(descriptor);
    return Explain(result, error, "cannot map " + path + ": " + strerror(result));
  }
  layout_ = static_cast<FabricLayout*>(memory);
  file_ = std::make_unique<KeptDescriptor>(path, descriptor);
  return 0;
}

bool Registry::SomebodyMayReturn() {
  for (uint32_t slot = 0; slot < kMaxProcesses; ++slot) {
    if (process(slot).in_use.load() != 0 && LifeOfLocked(slot) != Life::kDead) return true;
  }
  return false;
}

int Registry::TakeSlot(std::string* error) {
  bool missing = false;
  for (uint32_t slot = 0; slot < kMaxProcesses; ++slot) {
    if (process(slot).in_use.load() == 0) continue;
    const Life life = LifeOfLocked(slot);
    if (life == Life::kDead) Reclaim(slot);
    missing |= life == Life::kMissing;
  }
  FreeClosedRings();
  // A slot is not used again while a ring of its last process is: the other end still has it.
  std::bitset<kMaxProcesses> referenced;
  for (const RingEntry& ring : layout_->rings) {
    const uint32_t entry = ring.load();
    if (entry == 0) continue;
    referenced.set(RingSender(entry));
    referenced.set(RingReceiver(entry));
  }
  FabricHeader& header = layout_->header;
  for (uint32_t i = 0; i < kMaxProcesses; ++i) {
    const uint32_t slot = (header.next_slot + i) % kMaxProcesses;
    ProcessSlot& mine = process(slot);
    if (mine.in_use.load() != 0 || referenced.test(slot)) continue;
    if (!lock_->Hold(slot)) continue;  // somebody whose death was declared too early
    header.next_slot = (slot + 1) % kMaxProcesses;
    slot_ = slot;
    generation_ = (header.next_generation - 1) % 0xffffff + 1;
    header.next_generation = generation_ % 0xffffff + 1;
    mine.pid = pid_;
    mine.pid_namespace = pid_namespace_;
    memset(mine.name, 0, sizeof mine.name);
    prctl(PR_GET_NAME, mine.name);
    mine.missing_since.store(0);
    mine.want_wake.store(0);
    for (auto& inbound : mine.inbound) inbound.store(0);
    for (auto& counter : mine.counters) counter.store(0);
    mine.control.state.store(0);
    mine.generation.store(generation_);
    mine.in_use.store(1);
    return 0;
  }
  if (missing) return EAGAIN;
  return Explain(EMFILE, error, "256 processes already use " + path_);
}

// ------------------------------------------------------------------------ life and death

Registry::Life Registry::LifeOf(uint32_t slot) {
  std::unique_lock guard(FabricMutex(), std::try_to_lock);
  return guard && lock_ ? LifeOfLocked(slot) : Life::kLives;  // not known now
}

Registry::Life Registry::LifeOfLocked(uint32_t slot) {
  ProcessSlot& other = process(slot);
  if (lock_->Lives(slot)) return Life::kLives;
  // A pid says nothing about who lives, but where it is known not to exist, nobody returns.
  if (other.pid_namespace != 0 && other.pid_namespace == pid_namespace_ &&
      syscall(SYS_kill, other.pid, 0) != 0 && errno == ESRCH) {
    return Life::kDead;
  }
  const int64_t now = MonotonicNanoseconds();
  int64_t since = other.missing_since.load();
  // A time to come, which nobody could wait for, counts as none.
  if (since <= 0 || since > now) {
    // If it is there, it takes its lock again.
    if (other.missing_since.compare_exchange_strong(since, now)) WakeProcess(other);
    return Life::kMissing;
  }
  return now - since > kGraceNs ? Life::kDead : Life::kMissing;
}

void Registry::Wake(uint32_t slot) {
  if (process(slot).want_wake.load() != 0) WakeProcess(process(slot));
}

void Registry::RetakeLock() {
  std::unique_lock guard(FabricMutex(), std::try_to_lock);
  if (!guard || !IsMember()) return;
  if (lock_->Hold(slot_)) process(slot_).missing_since.store(0);
}

bool Registry::IsMember() const {
  const ProcessSlot& mine = process(slot_);
  return mine.in_use.load() != 0 && mine.generation.load() == generation_;
}

// Does for a dead process what it would have done when leaving; for its own slot, when leaving.
void Registry::Reclaim(uint32_t slot) {
  const uint32_t owner = MakeOwner(slot, process(slot).generation.load());
  for (auto& block : layout_->owners) {
    uint32_t expected = owner;
    if (block.load(std::memory_order_relaxed) == owner) block.compare_exchange_strong(expected, 0);
  }
  for (RingEntry& ring : layout_->rings) {
    const uint32_t entry = ring.load();
    if (entry == 0) continue;
    if (RingSender(entry) == slot) {
      // Killed before it announced the ring: the receiver will never close it.
      const auto index = static_cast<uint32_t>(&ring - layout_->rings);
      const bool announced = process(RingReceiver(entry)).inbound[slot].load() == index + 1;
      ring.fetch_or(announced ? kSenderClosed : kSenderClosed | kReceiverClosed);
    }
    if (RingReceiver(entry) == slot) ring.fetch_or(kReceiverClosed);
  }
  process(slot).in_use.store(0);
}

void Registry::Leave() {
  std::lock_guard guard(FabricMutex());
  if (generation_ == 0) return;
  if (!lock_->WaitLock(kLeaveLockMilliseconds)) {  // the next process that joins cleans up
    lock_->Release(slot_);
    generation_ = 0;
    lock_.reset();
    return;
  }
  if (IsMember()) Reclaim(slot_);
  lock_->Release(slot_);
  FreeClosedRings();
  if (lock_->IsCurrent() && !lock_->AnybodyLives() && !SomebodyMayReturn()) {
    RawUnlink(path_);
    RawUnlink(path_ + ".lock");
  }
  lock_->Unlock();
  generation_ = 0;
  lock_.reset();
}

Registry::~Registry() {
  // In a child that never abandoned its parent's membership this must not end it.
  if (generation_ != 0 && pid_ == Pid()) {
    Leave();
  } else if (generation_ != 0) {
    Abandon();
  }
  Drop();
}

void Registry::Abandon() {
  std::lock_guard guard(FabricMutex());
  generation_ = 0;
  Drop();
}

void Registry::Drop() {
  lock_.reset();
  file_.reset();
  if (layout_ != nullptr) munmap(layout_, sizeof *layout_);
  layout_ = nullptr;
}

int Registry::Remove(const std::string& directory, const std::string& name) {
  const std::string path = FabricPath(directory, name);
  std::lock_guard guard(FabricMutex());
  FileStatus status;
  const bool file = RawStatus(path, &status) == 0;
  const bool lock_file = RawStatus(path + ".lock", &status) == 0;
  if (!file && !lock_file) return ENOENT;
  std::shared_ptr<LockFile> lock;
  std::string error;
  const int result = LockFile::Open(path + ".lock", &lock, &error);
  if (result != 0) return result;
  if (!lock->TryLock()) return EBUSY;
  const bool removable = lock->IsCurrent() && !lock->AnybodyLives();
  if (removable) {
    RawUnlink(path);
    RawUnlink(path + ".lock");
  }
  lock->Unlock();
  return removable ? 0 : EBUSY;
}

}  // namespace simhca
