#include "sim/fabric/fault_plan.h"
#include "sim/tools/commands.h"

namespace simhca {

int RefuseUsage(const std::string& command, const std::string& problem, std::ostream& errors) {
  errors << "simhca: " << command << ": " << problem << " (see ./simhca " << command
         << " --help)\n";
  return kWrongUsage;
}

int CheckSettings(const char* faults, const char* seed, std::ostream& errors) {
  const auto given = [](const char* value) { return value != nullptr && *value != '\0'; };
  FaultPlan plan;
  std::string error = given(faults) ? ParseFaultPlan(faults, &plan) : "";
  if (!error.empty()) return RefuseUsage("run", "--faults: " + error, errors);
  uint64_t number = 0;
  error = given(seed) ? ParseSeed(seed, &number) : "";
  if (!error.empty()) return RefuseUsage("run", "--seed: " + error, errors);
  return kDone;
}

}  // namespace simhca
