#ifndef SIMHCA_SIM_TRANSPORT_SERVICES_H_
#define SIMHCA_SIM_TRANSPORT_SERVICES_H_

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/fabric/counters.h"
#include "sim/fabric/fabric.h"
#include "sim/fabric/link.h"
#include "sim/timing/event_queue.h"
#include "sim/timing/time.h"
#include "sim/timing/trace_writer.h"

namespace simhca {

class QueuePair;

// Queue pairs that have something to do.  A queue pair knows whether it is on the list.
class ActiveList {
 public:
  void Add(QueuePair& qp);
  void Remove(QueuePair& qp);
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  QueuePair* PopFirst();
  // Puts all of `others` in front, in their order, and leaves it empty.
  void Prepend(ActiveList& others);

 private:
  size_t size_ = 0;
  QueuePair* first_ = nullptr;
  QueuePair* last_ = nullptr;
};

// What the queue pairs ask of the engine they run in.  All under the engine's lock.
class Services {
 public:
  Services(Fabric& fabric, Link& link) : fabric(fabric), link(link) {}
  virtual ~Services() = default;

  virtual Time Now() const = 0;
  // May lag by a few milliseconds of wall time; exact under a model.  For timers that are checked
  // again when they fire.
  virtual Time CoarseNow() const = 0;

  // How late a deadline computed from CoarseNow may have to be taken.
  virtual Duration coarseness() const = 0;

  Fabric& fabric;
  Link& link;
  EventQueue timers;
  // Completions and asynchronous events that the program can now see, ever.
  uint64_t visible = 0;
  // Ports of devices whose completions have become visible, each once until somebody clears the
  // list and tells the device's model: for simulations of many devices.
  std::vector<uint16_t> delivered;
  // Ports of the fabric that are down: their packets are neither sent nor accepted.
  std::bitset<kMaxFabricPorts> ports_down;
  ActiveList active;
  CounterSet counters;
  // Where the device models write what they do, if it is open.
  TraceWriter trace;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_TRANSPORT_SERVICES_H_
