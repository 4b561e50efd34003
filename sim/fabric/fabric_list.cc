#include "sim/fabric/fabric_list.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <mutex>
#include <set>

#include "sim/fabric/lock_file.h"
#include "sim/fabric/registry.h"

namespace simhca {
namespace {

constexpr std::string_view kLockSuffix = ".lock";

// Of every fabric that has a file or only a lock file.
std::set<std::string> NamesOfFabrics(const std::string& directory) {
  std::set<std::string> names;
  DIR* const folder = opendir(directory.c_str());
  if (folder == nullptr) return names;
  const std::string prefix = FabricPath("", "").substr(1);
  while (const dirent* entry = readdir(folder)) {
    std::string name = entry->d_name;
    if (!name.starts_with(prefix)) continue;
    name.erase(0, prefix.size());
    if (name.ends_with(kLockSuffix)) name.resize(name.size() - kLockSuffix.size());
    if (IsFabricName(name)) names.insert(name);
  }
  closedir(folder);
  return names;
}

void Describe(const FabricLayout& layout, LockFile& lock, FabricInfo* info) {
  info->exclusive = layout.header.exclusive != 0;
  info->epoch_ns = layout.header.epoch_ns;
  for (uint16_t port = 0; port < kMaxFabricPorts; ++port) {
    info->ports_down[port] = IsPortDown(layout.header, port);
  }
  info->rings =
      static_cast<uint32_t>(std::count_if(std::begin(layout.rings), std::end(layout.rings),
                                          [](const RingEntry& ring) { return ring.load() != 0; }));
  info->memory_bytes = sizeof layout + info->rings * kRingStride;
  for (uint32_t slot = 0; slot < kMaxProcesses; ++slot) {
    const ProcessSlot& process = layout.slots[slot];
    if (process.in_use.load() == 0 || !lock.Lives(slot)) continue;
    FabricProcess& found = info->processes.emplace_back();
    found.slot = slot;
    found.pid = process.pid;
    found.name.assign(process.name, strnlen(process.name, sizeof process.name));
    for (size_t i = 0; i < found.counters.size(); ++i) {
      found.counters[i] = process.counters[i].load(std::memory_order_relaxed);
    }
  }
}

FabricInfo Inspect(const std::string& directory, const std::string& name) {
  FabricInfo info;
  info.name = name;
  const std::string path = FabricPath(directory, name);
  std::lock_guard guard(FabricMutex());
  std::shared_ptr<LockFile> lock;
  FileStatus status;
  if (RawStatus(path + std::string(kLockSuffix), &status) != 0) {
    info.problem = "has no lock file";
    return info;
  }
  if (LockFile::Open(path + std::string(kLockSuffix), &lock, &info.problem) != 0) return info;
  const int descriptor = RawOpen(path, O_RDONLY, 0);
  if (descriptor < 0) {
    info.problem = std::string("cannot be opened: ") + strerror(-descriptor);
    return info;
  }
  void* memory = MAP_FAILED;
  if (RawStatus(descriptor, &status) == 0 && IsPrivateFile(status) &&
      status.bytes == kFabricFileBytes) {
    memory = mmap(nullptr, sizeof(FabricLayout), PROT_READ, MAP_SHARED, descriptor, 0);
  }
  RawClose(descriptor);
  const auto* const layout = static_cast<const FabricLayout*>(memory);
  if (memory == MAP_FAILED || layout->header.magic != kFabricMagic ||
      layout->header.layout != LayoutHash()) {
    info.problem = "is of another version of simhca";
  } else {
    Describe(*layout, *lock, &info);
  }
  if (memory != MAP_FAILED) munmap(memory, sizeof(FabricLayout));
  return info;
}

}  // namespace

std::vector<FabricInfo> ListFabrics(const std::string& directory) {
  std::vector<FabricInfo> fabrics;
  for (const std::string& name : NamesOfFabrics(directory)) {
    fabrics.push_back(Inspect(directory, name));
  }
  return fabrics;
}

std::vector<std::string> RemoveDeadFabrics(const std::string& directory) {
  std::vector<std::string> removed;
  for (const std::string& name : NamesOfFabrics(directory)) {
    if (Registry::Remove(directory, name) == 0) removed.push_back(name);
  }
  return removed;
}

}  // namespace simhca
