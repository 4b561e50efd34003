#ifndef SIMHCA_SIM_FABRIC_FABRIC_LIST_H_
#define SIMHCA_SIM_FABRIC_FABRIC_LIST_H_

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/fabric/fabric.h"

namespace simhca {

struct FabricProcess {
  uint32_t slot = 0;
  uint32_t pid = 0;  // as the process itself sees it
  std::string name;
  std::array<uint64_t, kCountersPerProcess> counters = {};
};

struct FabricInfo {
  std::string name;
  bool exclusive = false;
  int64_t epoch_ns = 0;
  uint32_t rings = 0;                    // in use
  uint64_t memory_bytes = 0;             // that its files take of the file system
  std::vector<FabricProcess> processes;  // those that live
  std::bitset<kMaxFabricPorts> ports_down;
  std::string problem;  // why the rest is unknown: another version, not readable; or empty
};

// The fabrics of this user, by name, with nobody living on it included.  Changes nothing.
std::vector<FabricInfo> ListFabrics(const std::string& directory = "/dev/shm");

// Removes the fabrics of this user on which nobody lives, and what is left of such; returns the
// names of those removed.
std::vector<std::string> RemoveDeadFabrics(const std::string& directory = "/dev/shm");

}  // namespace simhca

#endif  // SIMHCA_SIM_FABRIC_FABRIC_LIST_H_
