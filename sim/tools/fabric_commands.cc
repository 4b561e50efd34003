#include <algorithm>

#include "sim/fabric/fabric_list.h"
#include "sim/tools/commands.h"
#include "sim/tools/table.h"
#include "sim/fabric/counters.h"

namespace simhca {
namespace {

void PrintProcess(const FabricProcess& process, std::ostream& out) {
  out << "  process " << process.pid << " (" << process.name << ")\n";
  Table table;
  for (size_t i = 0; i < kCounterNames.size(); ++i) {
    if (process.counters[i] == 0) continue;
    table.Add({"    " + std::string(kCounterNames[i]), std::to_string(process.counters[i])});
  }
  table.Print(out);
}

void PrintFabric(const FabricInfo& fabric, std::ostream& out) {
  out << "fabric " << fabric.name << ": ";
  if (!fabric.problem.empty()) {
    out << fabric.problem << '\n';
    return;
  }
  out << fabric.processes.size() << " process(es), " << fabric.rings << " ring(s), "
      << fabric.memory_bytes / 1024 << " KiB" << (fabric.exclusive ? ", virtual time" : "");
  if (fabric.processes.empty()) out << ", abandoned: clean removes it";
  out << '\n';
  for (const FabricProcess& process : fabric.processes) PrintProcess(process, out);
}

}  // namespace

int ShowStats(const std::string& fabric, const std::string& directory, std::ostream& out,
              std::ostream& errors) {
  std::vector<FabricInfo> fabrics = ListFabrics(directory);
  if (!fabric.empty()) {
    std::erase_if(fabrics, [&](const FabricInfo& info) { return info.name != fabric; });
    if (fabrics.empty()) {
      errors << "there is no fabric \"" << fabric << "\"\n";
      return 1;
    }
  }
  size_t abandoned = 0;
  for (const FabricInfo& info : fabrics) {
    if (fabric.empty() && info.problem.empty() && info.processes.empty()) {
      ++abandoned;
    } else {
      PrintFabric(info, out);
    }
  }
  if (abandoned == fabrics.size()) out << "no simulated device is open\n";
  if (abandoned != 0) out << abandoned << " abandoned fabric(s): clean removes them\n";
  return 0;
}

int CleanFabrics(const std::string& directory, std::ostream& out) {
  const std::vector<std::string> removed = RemoveDeadFabrics(directory);
  for (const std::string& name : removed) out << "removed fabric " << name << '\n';
  if (removed.empty()) out << "nothing to remove\n";
  return 0;
}

}  // namespace simhca
