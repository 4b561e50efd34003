#include "verbs_shim/driver/objects.h"

#include <mutex>

namespace simhca::driver {

void ObjectRegistry::Add(const void* object, Kind kind, ObjectHeader* header, Context* context) {
  std::lock_guard guard(lock_);
  objects_[object] = Entry{kind, true, header, context};
}

void ObjectRegistry::Retire(const void* object, void* memory, void (*destroy)(void*)) {
  Retired oldest{};
  {
    std::lock_guard guard(lock_);
    auto found = objects_.find(object);
    if (found == objects_.end() || !found->second.live) return;
    found->second.live = false;
    if (found->second.header != nullptr) found->second.header->mark = ObjectHeader::kDead;
    quarantine_.push_back({object, memory, destroy});
    if (quarantine_.size() > kQuarantined) {
      oldest = quarantine_.front();
      quarantine_.pop_front();
      objects_.erase(oldest.object);
    }
  }
  if (oldest.object != nullptr) oldest.destroy(oldest.memory);
}

bool ObjectRegistry::Owns(const void* object) const {
  if (object == nullptr) return false;
  std::lock_guard guard(lock_);
  return objects_.contains(object);
}

bool ObjectRegistry::IsLive(const void* object, Kind kind) const {
  std::lock_guard guard(lock_);
  auto found = objects_.find(object);
  return found != objects_.end() && found->second.live && found->second.kind == kind;
}

std::vector<ObjectRegistry::Found> ObjectRegistry::ObjectsOf(const Context* context) const {
  std::vector<Found> found;
  std::lock_guard guard(lock_);
  for (const auto& [object, entry] : objects_) {
    if (entry.live && entry.context == context && entry.kind != Kind::kContext) {
      found.push_back({const_cast<void*>(object), entry.kind});
    }
  }
  return found;
}

void ObjectRegistry::BuryAllAfterFork() {
  for (auto& [object, entry] : objects_) {
    if (entry.kind == Kind::kDevice || !entry.live) continue;
    entry.live = false;
    if (entry.header != nullptr) entry.header->mark = ObjectHeader::kDead;
  }
  lock_.unlock();
}

ObjectRegistry& Objects() {
  static ObjectRegistry* const registry = new ObjectRegistry;
  return *registry;
}

}  // namespace simhca::driver
