#ifndef SIMHCA_SIM_FABRIC_FABRIC_H_
#define SIMHCA_SIM_FABRIC_FABRIC_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/fabric/control.h"
#include "sim/fabric/fault_plan.h"
#include "sim/fabric/link.h"
#include "sim/timing/time.h"

namespace simhca {

// The fabric of a user who names none.
inline constexpr char kDefaultFabric[] = "default";

// A process's membership of a fabric: the named place in shared memory where the engines of one
// user's processes meet.  Queue pair numbers belong to the fabric, not to a device.
//
// Used under the engine's lock, but for WantWake, wake_wanted, Sleep, Wake and control_bell.
class Fabric {
 public:
  struct Options {
    std::string name;        // letters, digits, '-', '_', '.'; empty: the default of this user
    bool exclusive = false;  // virtual time: one process holds all devices, a second is refused
    // Exclusive only: the wire behind each source port.  The last one serves all further ports;
    // with none, packets arrive when they are ready.
    std::vector<LinkModel> wires;
    std::string directory = "/dev/shm";  // where the fabric's files are; a tmpfs
    // What befalls the packets that arrive here, and what the draws of it start from.
    FaultPlan faults = {};
    uint64_t seed = 1;
  };

  // What went wrong on this process's side, for `stats` and for explanations.
  struct Trouble {
    uint64_t corrupt_rings = 0;  // a peer broke the rules of its ring, which was dropped
    uint64_t failed_rings = 0;   // no memory or no place for a ring towards a peer
    std::string_view last;       // text of the last one; valid until the next call
  };

  // State of the process that owns a number, for the transport's retry rules.
  struct Peer {
    enum class State : uint8_t { kAlive, kDead, kUnknown } state = State::kUnknown;
    // What we committed towards it, ever, and what of it has been consumed, in units of the link.
    uint64_t committed = 0;
    uint64_t consumed = 0;
    bool drained() const { return consumed == committed; }
    bool elsewhere = false;  // another process, which may be stopped without our knowing
    uint64_t heartbeat = 0;  // its Beats; one that stands still does not run
  };

  // Joins, creating the fabric if nobody lives on it.  Returns 0 or a positive errno with an
  // explanation in `error`: EINVAL bad name, EPERM/EACCES another user's, EBUSY virtual fabric
  // in use or a shared one asked for exclusively, ENOSPC /dev/shm too small, EPROTO layout of
  // another version, EMFILE no slot, ETIMEDOUT a stopped process holds the fabric's lock.
  static int Join(const Options& options, std::unique_ptr<Fabric>* fabric, std::string* error);

  virtual ~Fabric() = default;  // leaves; the last one out removes the fabric

  // At the end of the process: takes leave as the destructor does, but the object stays usable.
  // From then on packets go nowhere.  Under the engine's lock.
  virtual void Leave() = 0;

  // In a forked child: forgets the parent's membership without touching what is shared.  After
  // that the object may only be destroyed; the child may join anew.
  virtual void Abandon() = 0;

  virtual Link& link() = 0;

  // CLOCK_MONOTONIC nanoseconds at the fabric's creation: time zero of its devices' clocks.
  virtual int64_t epoch_ns() const = 0;

  // A number no other live object of the fabric has, 24 bits, never 0 or 1, not soon reused.
  // Returns 0 when none is left.  Packets for it come to this process until it is released.
  virtual uint32_t AllocateNumber() = 0;
  virtual void ReleaseNumber(uint32_t number) = 0;

  // Costs a system call: for timers only.  Wakes a sleeping process elsewhere, so that it shows
  // that it can run.
  virtual Peer PeerOf(uint32_t number) = 0;

  // Tells peers that this process runs.
  virtual void Beat() = 0;

  // ---- Sleeping and waking; see sim/device/progress.h ----

  // While wanted, a sender that finds this flag set clears it and wakes our sleeper.  Turning it
  // on is a full fence: what arrived before is seen by the next Poll.  Turning it off does not
  // wake a sleeper.
  virtual void WantWake(bool wanted) = 0;
  virtual bool wake_wanted() const = 0;
  // Sleeps until woken or `timeout` is over (kNever: no limit); returns at once if the flag is off,
  // which is how a wake that came first is seen.  May return early.
  virtual void Sleep(Duration timeout) = 0;
  // Wakes our own sleeper, and turns the flag off.
  virtual void Wake() = 0;

  // Periodic upkeep (each 100 ms is enough): keeps our lock, releases rings of the dead.
  // Under the engine's lock.
  virtual void Maintain() = 0;

  // ---- Control; see control.h ----

  // Changes when somebody asks something of this process or a port's state has changed.  Lies in a
  // cache line that the link's Poll reads anyway.
  virtual const std::atomic<uint32_t>& control_bell() const = 0;
  // Takes the request that waits; false if none does.  Each one that was taken is to be answered.
  virtual bool TakeControl(ControlRequest* request) = 0;
  virtual void AnswerControl(const ControlReply& reply) = 0;
  // Whether a port (< kMaxFabricPorts) has been taken down, for all processes of the fabric.
  virtual bool port_down(uint16_t port) const = 0;

  // Counters of this process that `stats` reads: written by this process only, relaxed.
  virtual std::span<std::atomic<uint64_t>> counters() = 0;

  virtual Trouble trouble() const = 0;
};

inline constexpr size_t kCountersPerProcess = 64;

}  // namespace simhca

#endif  // SIMHCA_SIM_FABRIC_FABRIC_H_
