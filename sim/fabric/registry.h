#ifndef SIMHCA_SIM_FABRIC_REGISTRY_H_
#define SIMHCA_SIM_FABRIC_REGISTRY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "sim/fabric/layout.h"
#include "sim/fabric/lock_file.h"
#include "sim/fabric/raw_file.h"

namespace simhca {

// Paths of the files of fabric `name` (not empty) in `directory`.
std::string FabricPath(const std::string& directory, const std::string& name);
std::string FabricLockPath(const std::string& directory, const std::string& name);

// Letters, digits, '-', '_', '.'; at most 64; not the name of a lock file.
bool IsFabricName(const std::string& name);

int64_t MonotonicNanoseconds();

// Whether an open file is a fabric of this user and this version.  Returns 0, or EPERM or EPROTO
// with an explanation.
int CheckFabricFile(const std::string& path, int descriptor, std::string* error);

// Wakes the sleeper of a process and turns its wish to be woken off.
void WakeProcess(ProcessSlot& process);

// A process's place in the shared file of a fabric: who is a member, who lives, which rings
// there are.  Everything here is rare; packets never pass through it.
class Registry {
 public:
  enum class Life : uint8_t {
    kLives,
    kMissing,  // its lock is not there; it may be taking it again
    kDead,     // and has not been for kGraceNs
  };
  // A process that closes all its descriptors loses its lock until its next step.
  static constexpr int64_t kGraceNs = 250'000'000;

  // Errors as Fabric::Join.
  static int Join(const std::string& directory, const std::string& name, bool exclusive,
                  std::unique_ptr<Registry>* registry, std::string* error);

  // Removes the files of a fabric on which nobody lives.  Returns 0, EBUSY somebody does, ENOENT.
  static int Remove(const std::string& directory, const std::string& name);

  ~Registry();  // leaves, unless abandoned

  // In a forked child.
  void Abandon();

  FabricLayout& layout() const { return *layout_; }
  ProcessSlot& process(uint32_t slot) const { return layout_->slots[slot]; }
  uint32_t slot() const { return slot_; }
  // As in the owners of number blocks.
  uint32_t owner() const { return MakeOwner(slot_, generation_); }

  Life LifeOf(uint32_t slot);

  // A new ring from this process to `receiver`.  Returns 0 or a positive errno: EAGAIN somebody
  // else changes the membership right now, ESRCH the receiver is gone, ENOSPC, ENFILE no ring is
  // free, ENOMEM.
  int OpenRing(uint32_t receiver, uint32_t* ring, std::byte** memory);
  // Null without memory.
  std::byte* MapRing(uint32_t ring);
  static void UnmapRing(std::byte* memory);
  // `ends`: kSenderClosed, kReceiverClosed or both, when the other one is dead; 0 if the ring
  // turned out to be somebody else's.
  void CloseRing(uint32_t ring, uint32_t ends);

  // Gives the slot back; the last one out removes the fabric.  What is mapped stays mapped until
  // destruction.  Under the engine's lock.
  void Leave();

  // False once others have taken this process for dead: its slot may be somebody else's.
  bool IsMember() const;
  // Wakes the sleeper of the process in `slot`, if it sleeps.
  void Wake(uint32_t slot);

  // Takes a lost lock again.  Any thread.
  void RetakeLock();
  // Frees rings that are closed at both ends, if this process closed any.
  void GiveBackRings();

 private:
  Registry() = default;
  int Attach(const std::string& directory, const std::string& name, bool exclusive,
             std::string* error);
  int Create(const std::string& path, bool exclusive, std::string* error);
  int Map(const std::string& path, int descriptor, std::string* error);
  int TakeSlot(std::string* error);
  Life LifeOfLocked(uint32_t slot);
  bool SomebodyMayReturn();
  void Reclaim(uint32_t slot);
  void FreeClosedRings();
  void FreeRing(uint32_t ring);
  int AllocateRing(uint32_t receiver_slot, uint32_t* ring, std::byte** memory);
  void Drop();

  std::string path_;
  std::shared_ptr<LockFile> lock_;
  std::unique_ptr<KeptDescriptor> file_;
  FabricLayout* layout_ = nullptr;
  uint32_t slot_ = 0;
  uint32_t generation_ = 0;  // 0: not a member
  uint32_t pid_ = 0;
  uint64_t pid_namespace_ = 0;
  bool rings_to_free_ = false;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_FABRIC_REGISTRY_H_
