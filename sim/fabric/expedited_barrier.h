#ifndef SIMHCA_SIM_FABRIC_EXPEDITED_BARRIER_H_
#define SIMHCA_SIM_FABRIC_EXPEDITED_BARRIER_H_

namespace simhca {

// Memory barriers that one process has all threads of other processes execute (man membarrier,
// MEMBARRIER_CMD_GLOBAL_EXPEDITED).  Where two sides must not both miss the other's store, the
// side that is about to sleep pays for both, and the side that sends needs no fence: that fence
// would wait until the packet has left the store buffer, a tenth of a small packet's latency.

// From now on threads of this process take part in others' barriers.  False: not possible here.
bool JoinExpeditedBarriers();

// A full barrier here and in every process that takes part.  False: not possible here.
bool ExpeditedBarrier();

}  // namespace simhca

#endif  // SIMHCA_SIM_FABRIC_EXPEDITED_BARRIER_H_
