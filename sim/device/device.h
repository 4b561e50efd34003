#ifndef SIMHCA_SIM_DEVICE_DEVICE_H_
#define SIMHCA_SIM_DEVICE_DEVICE_H_

#include <cstddef>
#include <cstdint>

#include "sim/profiles/profile.h"
#include "sim/queues/interrupt_handler.h"
#include "sim/timing/time.h"
#include "sim/transport/attributes.h"

namespace simhca {

// A queue pair's doorbell register.  Which object is behind it is the device's own matter.
class Doorbell;

// ---- Commands ----
// Rings are memory of the process in the layouts of sim/queues/mlx5/layout.h; doorbell records
// are Be32 words there.  Numbers are what the device knows an object by.

struct OpenContextCommand {
  InterruptHandler* handler;
  std::byte* event_ring;   // Eqe[event_entries], owner bytes initialised to 1
  uint32_t event_entries;  // a power of two
};

struct RegisterRegionCommand {
  uint32_t pd;
  std::byte* address;
  uint64_t length;
  uint64_t iova;    // address by which remote and local work requests name the first byte
  uint32_t access;  // kLocalWrite ...
};

struct CreateCqCommand {
  uint32_t context;
  std::byte* ring;             // Cqe[entries], every opcode_owner initialised to 0xf0
  uint32_t entries;            // a power of two
  std::byte* doorbell_record;  // 2 words
  bool timestamps;             // completions carry the device clock
};

struct CreateSrqCommand {
  uint32_t context;
  uint32_t pd;
  std::byte* ring;   // entries of `stride` bytes, chained 0 -> 1 -> ... through next_wqe_index
  uint32_t entries;  // a power of two
  uint32_t stride;   // bytes, a power of two >= 32
  std::byte* doorbell_record;  // 1 word
  uint32_t max_limit;          // largest limit that modify accepts
};

struct ModifySrqCommand {
  uint32_t srq;
  bool set_limit = false;
  uint32_t limit = 0;  // 0 disarms
  bool resize = false;
  // With resize: the ring to use from now on (the old one may be passed again); entries up to the
  // old count have been copied by the driver, indices keep their meaning.
  std::byte* ring = nullptr;
  uint32_t entries = 0;
  uint32_t max_limit = 0;
  uint32_t capacity = 0;  // refused with EINVAL if below the WQEs posted, or the limit then armed
};

struct CreateQpCommand {
  uint32_t context;
  uint32_t pd;
  QpType type;
  uint32_t send_cq;
  uint32_t receive_cq;
  uint32_t srq;              // 0: the QP's own receive queue
  std::byte* send_ring;      // blocks of kSendBlockBytes
  uint32_t send_blocks;      // a power of two, or 0 for no send queue
  std::byte* receive_ring;   // entries of `receive_stride` bytes of data segments
  uint32_t receive_entries;  // a power of two, or 0
  uint32_t receive_stride;
  std::byte* doorbell_record;  // 2 words
};

struct CreateQpReply {
  uint32_t qpn;
  Doorbell* doorbell;
};

struct ModifyQpCommand {
  uint32_t qpn;
  uint32_t mask;  // qp_mask
  QpAttributes attributes;
};

// What the driver must give back to an SRQ's free list when a queue pair goes to RESET or is
// destroyed: an entry that it had claimed for a message that will never complete.
struct ReleasedWqe {
  bool any = false;
  uint16_t index = 0;
};

// A simulated HCA as its driver sees it.  Commands return 0 or a positive errno and change nothing
// when they fail; each takes the engine's lock.  Thread safe.
//
// After a fatal error (IBV_EVENT_DEVICE_FATAL) commands give EIO, as the mlx5 kernel driver answers
// in its internal-error state, but for those that take down: destroy, deregister, close, and modify
// to RESET or ERR.  Opening works again when every context has been closed.
class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceProfile& profile() const = 0;
  virtual uint16_t port_index() const = 0;  // the fabric's number of this device's port
  virtual bool virtual_time() const = 0;

  virtual int QueryPort(bool* up) = 0;
  // A fatal error has happened.
  virtual bool failed() const = 0;

  virtual int OpenContext(const OpenContextCommand& command, uint32_t* context) = 0;
  // Destroys whatever the context still owns, as the kernel does when its file is closed.
  virtual void CloseContext(uint32_t context) = 0;

  // ENOMEM beyond the profile's limits; EBUSY while something uses the object.
  virtual int AllocPd(uint32_t context, uint32_t* pd) = 0;
  virtual int DeallocPd(uint32_t pd) = 0;

  // The key serves as lkey and rkey.  EINVAL for remote write or atomic without local write.
  virtual int RegisterRegion(const RegisterRegionCommand& command, uint32_t* key) = 0;
  virtual int DeregisterRegion(uint32_t key) = 0;

  virtual int CreateCq(const CreateCqCommand& command, uint32_t* cqn) = 0;
  // Moves the entries not yet consumed to `ring` (initialised as at creation), keeping their
  // indices modulo its size.  EINVAL if they do not fit.
  virtual int ResizeCq(uint32_t cqn, std::byte* ring, uint32_t entries) = 0;
  virtual int DestroyCq(uint32_t cqn) = 0;

  virtual int CreateSrq(const CreateSrqCommand& command, uint32_t* srqn) = 0;
  virtual int ModifySrq(const ModifySrqCommand& command) = 0;
  virtual int QuerySrqLimit(uint32_t srqn, uint32_t* limit) = 0;
  virtual int DestroySrq(uint32_t srqn) = 0;

  virtual int CreateQp(const CreateQpCommand& command, CreateQpReply* reply) = 0;
  // Checks as man ibv_modify_qp and the InfiniBand state tables say.  At a move to RESET the
  // driver resets its indices and doorbell records and sweeps its CQs afterwards.
  virtual int ModifyQp(const ModifyQpCommand& command, ReleasedWqe* released) = 0;
  virtual int QueryQp(uint32_t qpn, QpAttributes* attributes) = 0;
  virtual int DestroyQp(uint32_t qpn, ReleasedWqe* released) = 0;

  // ---- Data path ----

  // The send doorbell record of the queue pair has changed.  Runs the work inline if the engine
  // is free, otherwise leaves it to whoever holds it.
  virtual void RingSendDoorbell(Doorbell* doorbell) = 0;

  // Arms a CQ: `word` as mlx5::kArmRecord defines it.  One completion event for the next
  // completion that is written after this call and qualifies.
  virtual void ArmCq(uint32_t cqn, uint32_t word) = 0;

  // An idle verbs call: a poll that found nothing, an event call that would block.  Makes the
  // engine progress; under virtual time also lets time advance (at most to the next completion
  // or event).
  virtual void Poll() = 0;

  // Under virtual time, told of verbs calls that got work done without the device: the idle streak
  // starts anew, and the call takes the CPU time that the profile gives it.
  enum class Call : uint8_t { kPostReceive, kPoll };
  virtual void NoteProductive(Call call) = 0;

  // About to sleep on a file descriptor until an event comes: from now on the background thread
  // serves the device and peers wake it.
  virtual void PrepareToSleep() = 0;

  // Device clock.
  virtual Time Now() = 0;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_DEVICE_DEVICE_H_
