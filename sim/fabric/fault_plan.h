#ifndef SIMHCA_SIM_FABRIC_FAULT_PLAN_H_
#define SIMHCA_SIM_FABRIC_FAULT_PLAN_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/timing/time.h"

namespace simhca {

// What a faulty wire does to the packets that arrive through it: probabilities of 0 to 1, drawn
// anew for every packet.
struct FaultPlan {
  double loss = 0;
  double corrupt = 0;                  // bits flip, and the ICRC no longer fits
  double duplicate = 0;                // a second copy arrives, later
  double reorder = 0;                  // the packet arrives later, behind others
  Duration delay = 20 * kMicrosecond;  // the most that "later" means
  std::vector<uint64_t> lose =
      {};  // single packets that are lost, in their order of arrival, from 1

  bool any() const { return loss + corrupt + duplicate + reorder > 0 || !lose.empty(); }
};

// Reads "loss=1%,reorder=0.02,delay=50us,lose=17": the members of FaultPlan by name, probabilities
// as fractions or with a percent sign, the delay with ns, us or ms.  `lose` may be given several
// times.  Returns what is wrong with the text, or an empty string.
std::string ParseFaultPlan(std::string_view text, FaultPlan* plan);

}  // namespace simhca

#endif  // SIMHCA_SIM_FABRIC_FAULT_PLAN_H_
