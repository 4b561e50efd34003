#ifndef SIMHCA_SIM_QUEUES_RECEIVE_WQE_H_
#define SIMHCA_SIM_QUEUES_RECEIVE_WQE_H_

#include <cstdint>

#include "sim/queues/scatter_cursor.h"

namespace simhca {

// A receive WQE that a message has taken.
struct ReceiveWqe {
  uint16_t index = 0;  // what the CQE reports
  // Lies right behind the one that was taken before it.
  bool follows_neighbour = true;
  ScatterCursor buffers;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_QUEUES_RECEIVE_WQE_H_
