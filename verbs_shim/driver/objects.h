#ifndef SIMHCA_VERBS_SHIM_DRIVER_OBJECTS_H_
#define SIMHCA_VERBS_SHIM_DRIVER_OBJECTS_H_

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "verbs_shim/driver/spin_lock.h"

namespace simhca::driver {

struct Context;

enum class Kind : uint8_t { kDevice, kContext, kPd, kMr, kCq, kChannel, kSrq, kQp };

// Behind the public structure of every object that an application holds.
struct ObjectHeader {
  static constexpr uint32_t kAlive = 0x51ca11fe;
  static constexpr uint32_t kDead = 0xdeadbeef;

  std::atomic<uint32_t> mark{kAlive};  // a verb of another thread may be looking at it
  uint32_t handle = 0;                 // what the public structure's `handle` must still be

  // The whole check of the inline verbs, which dereference the object before we can.
  bool usable(uint32_t public_handle) const {
    return mark.load(std::memory_order_relaxed) == kAlive && public_handle == handle;
  }
};

// The objects of this process that an application has pointers to, by address.  Freed ones stay
// in quarantine, memory and all, until many others have been freed after them: a stale pointer is
// recognised instead of followed.
class ObjectRegistry {
 public:
  // `context` is null for a device.
  void Add(const void* object, Kind kind, ObjectHeader* header, Context* context);

  // Ends the object's life and puts it in quarantine; `destroy(memory)` runs when it leaves that.
  void Retire(const void* object, void* memory, void (*destroy)(void*));

  // True for live objects and those in quarantine.
  bool Owns(const void* object) const;
  bool IsLive(const void* object, Kind kind) const;

  // The live objects of a context, itself not among them.
  struct Found {
    void* object;
    Kind kind;
  };
  std::vector<Found> ObjectsOf(const Context* context) const;

  // Around a fork.  In the child, everything but the devices is dead from then on.
  void LockForFork() { lock_.lock(); }
  void UnlockAfterFork() { lock_.unlock(); }
  void BuryAllAfterFork();

 private:
  static constexpr size_t kQuarantined = 1024;

  struct Entry {
    Kind kind;
    bool live;
    ObjectHeader* header;
    Context* context;
  };
  struct Retired {
    const void* object;
    void* memory;
    void (*destroy)(void*);
  };

  mutable SpinLock lock_;
  std::unordered_map<const void*, Entry> objects_;
  std::deque<Retired> quarantine_;
};

// The process's registry.
ObjectRegistry& Objects();

// ---- Checks that the exported verbs make first ----

// 0, or EINVAL for an object that is null, freed or of another kind, or ENOENT for one whose
// handle or context the application has overwritten: what the kernel says to a number that it
// does not know.  `Object` has `kKind`, `header` and `context`, and Public() with the fields that
// the application sees.
template <typename Object>
int CheckObject(const Object* object) {
  if (object == nullptr || !Objects().IsLive(object, Object::kKind)) return EINVAL;
  if (object->Public()->handle != object->header.handle) return ENOENT;
  if (object->Public()->context != object->context->Public()) return ENOENT;
  return 0;
}

// Ends the life of an object made with `new`.  Only the object itself goes into quarantine: rings
// and tables, which may be large, are freed at once, unless a thread is at them; then they go with
// the object.
template <typename Object>
void Retire(Object* object) {
  Objects().Retire(object, object, [](void* memory) { delete static_cast<Object*>(memory); });
  if constexpr (requires { object->FreeRings(); }) object->FreeRings();
}

}  // namespace simhca::driver

#endif  // SIMHCA_VERBS_SHIM_DRIVER_OBJECTS_H_
