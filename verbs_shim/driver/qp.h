#ifndef SIMHCA_VERBS_SHIM_DRIVER_QP_H_
#define SIMHCA_VERBS_SHIM_DRIVER_QP_H_

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>

#include "sim/device/device.h"
#include "verbs_shim/driver/context.h"
#include "verbs_shim/driver/cq.h"
#include "verbs_shim/driver/objects.h"
#include "verbs_shim/driver/pd.h"
#include "verbs_shim/driver/spin_lock.h"
#include "verbs_shim/driver/srq.h"
#include "verbs_shim/driver/work_queues.h"
#include "verbs_shim/driver/wqe_writer.h"

namespace simhca::driver {

// A queue pair.  The public structure of every one is an ibv_qp_ex, which begins with its ibv_qp.
struct Qp {
  static constexpr Kind kKind = Kind::kQp;

  explicit Qp(Context* owner) : context(owner) {}
  const ibv_qp* Public() const { return &verbs.qp_base; }

  // IBV_QPS_RTS, SQD, SQE and ERR take send work requests (facts of the state table).
  bool AcceptsSends() const { return state.load(std::memory_order_relaxed) >= IBV_QPS_RTS; }
  bool AcceptsReceives() const { return state.load(std::memory_order_relaxed) != IBV_QPS_RESET; }

  // Empty queues are full: a thread that is about to post finds no room.
  void FreeRings() {
    if (send_lock.try_lock_for_a_while()) {
      sq.Free();
      send_lock.unlock();
    }
    if (receive_lock.try_lock_for_a_while()) {
      rq.Free();
      receive_lock.unlock();
    }
  }

  ibv_qp_ex verbs{};
  ObjectHeader header;
  Context* const context;
  Pd* pd = nullptr;
  Cq* send_cq = nullptr;
  Cq* receive_cq = nullptr;
  Srq* srq = nullptr;
  uint32_t number = 0;
  ibv_qp_type type = IBV_QPT_RC;
  bool signal_all = false;
  bool has_wr_functions = false;  // made with send_ops_flags: ibv_qp_to_qp_ex answers
  uint64_t send_ops = 0;          // IBV_QP_EX_WITH_*
  ibv_qp_cap cap{};               // as granted
  // As the application last moved it; the device may have gone on to the error state.
  std::atomic<uint8_t> state{IBV_QPS_RESET};
  Doorbell* doorbell = nullptr;
  DoorbellRecordMemory record;

  SpinLock send_lock;
  SendQueue sq;
  SpinLock receive_lock;
  ReceiveQueue rq;

  // What happens between ibv_wr_start and ibv_wr_complete, under send_lock.
  struct Batch {
    uint32_t first_block = 0;  // send queue as it was at the start
    uint32_t first_wr = 0;
    int error = 0;  // the first one; nothing of the batch will be posted
    // The WQE that has been begun and not ended.
    bool open = false;
    bool has_data = false;  // its setter has been called
    bool atomic = false;
    uint8_t flags = 0;
    mlx5::WqeOpcode opcode{};
    uint32_t immediate = 0;
    uint64_t wr_id = 0;
    mlx5::ControlSegment* control = nullptr;
    WqeWriter writer;
  } batch;

  std::atomic<uint32_t> events_taken{0};
};

inline Qp* FromVerbs(ibv_qp* qp) { return reinterpret_cast<Qp*>(qp); }
inline Qp* FromVerbs(ibv_qp_ex* qp) { return reinterpret_cast<Qp*>(qp); }

// ---- Steps of posting that ibv_post_send and the wr_* functions share, under send_lock ----

// fm_ce_se of a WQE for IBV_SEND_* flags.
inline uint8_t ControlFlags(const Qp& qp, unsigned int send_flags) {
  uint8_t flags = 0;
  if (qp.signal_all || (send_flags & IBV_SEND_SIGNALED) != 0) flags |= mlx5::kCompletionOnSuccess;
  if ((send_flags & IBV_SEND_SOLICITED) != 0) flags |= mlx5::kSolicited;
  if ((send_flags & IBV_SEND_FENCE) != 0) flags |= mlx5::kFence;
  return flags;
}

// The WQE at the next block is complete.
inline void CommitWqe(SendQueue* sq, uint32_t blocks, uint64_t wr_id) {
  sq->SlotOf(sq->next_block) = {wr_id, sq->posted};
  sq->next_block += blocks;
  ++sq->posted;
}

// Tells the device by the doorbell record; the doorbell itself is rung afterwards, without the
// lock: whoever answers it reads the newest record.
inline void PublishSends(Qp* qp) {
  qp->record.Store(mlx5::kSendRecord, qp->sq.next_block & 0xffff);
}

// ---- Inline verbs ----

int PostSend(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr);
int PostRecv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr);

// Sets the wr_* functions of ibv_qp_ex.
void FillWrFunctions(Qp* qp);

// ---- Verbs that verbs_context points to ----

ibv_qp* CreateQpEx(ibv_context* context, ibv_qp_init_attr_ex* attr);

}  // namespace simhca::driver

#endif  // SIMHCA_VERBS_SHIM_DRIVER_QP_H_
