#ifndef SIMHCA_SIM_DEVICE_OBJECT_TABLE_H_
#define SIMHCA_SIM_DEVICE_OBJECT_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

namespace simhca {

// Objects of one kind by number, in order of creation.  Commands use it, packets do not.
template <typename T>
class ObjectTable {
 public:
  explicit ObjectTable(uint32_t first_number = 1) : next_(first_number) {}

  // A number that was not used before (numbers wrap after 2^24).
  uint32_t NextNumber() {
    while (objects_.count(next_) != 0 || next_ == 0) next_ = (next_ + 1) & 0xffffff;
    return std::exchange(next_, (next_ + 1) & 0xffffff);
  }

  T* Insert(uint32_t number, std::unique_ptr<T> object) {
    return (objects_[number] = std::move(object)).get();
  }

  T* Find(uint32_t number) const {
    const auto found = objects_.find(number);
    return found != objects_.end() ? found->second.get() : nullptr;
  }

  void Erase(uint32_t number) { objects_.erase(number); }
  size_t size() const { return objects_.size(); }

  // Calls `action(number, object)` for each.  It may not insert or erase.
  template <typename Action>
  void ForEach(Action action) const {
    for (const auto& [number, object] : objects_) action(number, *object);
  }

  // Erases every object for which `matches(object)`, calling `before(number, object)` first.
  template <typename Matches, typename Before>
  void EraseIf(Matches matches, Before before) {
    for (auto at = objects_.begin(); at != objects_.end();) {
      if (matches(*at->second)) {
        before(at->first, *at->second);
        at = objects_.erase(at);
      } else {
        ++at;
      }
    }
  }

 private:
  uint32_t next_;
  std::map<uint32_t, std::unique_ptr<T>> objects_;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_DEVICE_OBJECT_TABLE_H_
