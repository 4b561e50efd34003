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
// of 0 to 1 as fractions or with a percent sign, the delay with ns, us or ms, more than 0 and at
// most 1000ms.  Each may be given once, but `lose` several times.  Returns what is wrong with the
// text, which then changes nothing, or an empty string.
std::string ParseFaultPlan(std::string_view text, FaultPlan* plan);

// Reads the seed of everything random: 0 to 2^64 - 1, decimal or 0x.... Returns as above.
std::string ParseSeed(std::string_view text, uint64_t* seed);

}  // namespace simhca

#endif  // SIMHCA_SIM_FABRIC_FAULT_PLAN_H_
