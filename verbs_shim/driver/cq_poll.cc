#include <bit>
#include <mutex>

#include "verbs_shim/driver/cq.h"
#include "verbs_shim/driver/log.h"
#include "verbs_shim/driver/qp.h"
#include "verbs_shim/driver/srq.h"

// From completion entries to work completions: ibv_poll_cq and the ibv_start_poll family.

namespace simhca::driver {

namespace {

using mlx5::Cqe;
using mlx5::CqeOpcode;
using mlx5::ErrorCqe;
using mlx5::Syndrome;
using mlx5::WqeOpcode;

ibv_wc_status StatusOf(Syndrome syndrome) {
  switch (syndrome) {
    case Syndrome::kLocalLength:
      return IBV_WC_LOC_LEN_ERR;
    case Syndrome::kLocalQpOperation:
      return IBV_WC_LOC_QP_OP_ERR;
    case Syndrome::kLocalProtection:
      return IBV_WC_LOC_PROT_ERR;
    case Syndrome::kFlushed:
      return IBV_WC_WR_FLUSH_ERR;
    case Syndrome::kMwBind:
      return IBV_WC_MW_BIND_ERR;
    case Syndrome::kBadResponse:
      return IBV_WC_BAD_RESP_ERR;
    case Syndrome::kLocalAccess:
      return IBV_WC_LOC_ACCESS_ERR;
    case Syndrome::kRemoteInvalidRequest:
      return IBV_WC_REM_INV_REQ_ERR;
    case Syndrome::kRemoteAccess:
      return IBV_WC_REM_ACCESS_ERR;
    case Syndrome::kRemoteOperation:
      return IBV_WC_REM_OP_ERR;
    case Syndrome::kRetryExceeded:
      return IBV_WC_RETRY_EXC_ERR;
    case Syndrome::kRnrRetryExceeded:
      return IBV_WC_RNR_RETRY_EXC_ERR;
    case Syndrome::kRemoteAborted:
      return IBV_WC_REM_ABORT_ERR;
  }
  return IBV_WC_GENERAL_ERR;
}

bool IsError(CqeOpcode opcode) {
  return opcode == CqeOpcode::kRequesterError || opcode == CqeOpcode::kResponderError;
}
bool IsRequester(CqeOpcode opcode) {
  return opcode == CqeOpcode::kRequester || opcode == CqeOpcode::kRequesterError;
}
const ErrorCqe& AsError(const Cqe& cqe) { return reinterpret_cast<const ErrorCqe&>(cqe); }

ibv_wc_opcode SendOpcodeOf(WqeOpcode opcode) {
  switch (opcode) {
    case WqeOpcode::kRdmaWrite:
    case WqeOpcode::kRdmaWriteImmediate:
      return IBV_WC_RDMA_WRITE;
    case WqeOpcode::kRdmaRead:
      return IBV_WC_RDMA_READ;
    case WqeOpcode::kAtomicCompareSwap:
      return IBV_WC_COMP_SWAP;
    case WqeOpcode::kAtomicFetchAdd:
      return IBV_WC_FETCH_ADD;
    default:
      return IBV_WC_SEND;
  }
}

ibv_wc_opcode OpcodeOf(const Cqe& cqe) {
  const CqeOpcode opcode = cqe.opcode();
  if (IsRequester(opcode)) return SendOpcodeOf(cqe.send_opcode());
  return opcode == CqeOpcode::kResponderWriteImmediate ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
}

uint32_t ByteLengthOf(const Cqe& cqe) {
  if (!IsRequester(cqe.opcode())) return cqe.byte_count;
  switch (cqe.send_opcode()) {
    case WqeOpcode::kRdmaRead:
      return cqe.byte_count;
    case WqeOpcode::kAtomicCompareSwap:
    case WqeOpcode::kAtomicFetchAdd:
      return 8;
    default:
      return 0;
  }
}

unsigned int FlagsOf(const Cqe& cqe) {
  unsigned int flags = (cqe.flags_rqpn >> 28 & 3) != 0 ? IBV_WC_GRH : 0;
  switch (cqe.opcode()) {
    case CqeOpcode::kResponderWriteImmediate:
    case CqeOpcode::kResponderSendImmediate:
      return flags | IBV_WC_WITH_IMM;
    case CqeOpcode::kResponderSendInvalidate:
      return flags | IBV_WC_WITH_INV;
    default:
      return flags;
  }
}

// Immediate data as received (network order), or the invalidated key in host order.
uint32_t ImmediateOf(const Cqe& cqe) {
  if (cqe.opcode() != CqeOpcode::kResponderSendInvalidate) return cqe.immediate;
  return std::bit_cast<Be32>(cqe.immediate);
}

uint32_t SourceQpOf(const Cqe& cqe) { return cqe.flags_rqpn & 0xffffff; }
uint8_t ServiceLevelOf(const Cqe& cqe) { return cqe.flags_rqpn >> 24 & 0xf; }
uint8_t PathBitsOf(const Cqe& cqe) { return cqe.ml_path & 0x7f; }

// Gives the work request of a completion back to its queue.  Returns false if nobody knows the
// queue pair any more; the completion is then not shown.  Under the CQ's lock.
bool Complete(Cq* cq, const Cqe& cqe, uint64_t* wr_id) {
  const uint32_t number = cqe.qpn();
  Qp* qp = cq->last_qp;
  if (qp == nullptr || qp->number != number) {
    qp = cq->context->qps.Find(number);
    cq->last_qp = qp;
  }
  if (IsRequester(cqe.opcode())) {
    if (qp == nullptr || qp->sq.blocks == 0) return false;
    *wr_id = qp->sq.Complete(cqe.wqe_counter);
    return true;
  }
  const uint32_t srqn = cqe.srqn & 0xffffff;
  if (srqn != 0) {
    Srq* srq = qp != nullptr && qp->srq != nullptr && qp->srq->number == srqn
                   ? qp->srq
                   : cq->context->srqs.Find(srqn);
    if (srq == nullptr) return false;
    *wr_id = srq->Complete(cqe.wqe_counter);
    return true;
  }
  if (qp == nullptr || qp->rq.entries == 0) return false;
  *wr_id = qp->rq.Complete(cqe.wqe_counter);
  return true;
}

void FillError(const Cqe& cqe, ibv_wc* wc) {
  const ErrorCqe& error = AsError(cqe);
  wc->status = StatusOf(error.syndrome);
  wc->vendor_err = error.vendor_syndrome;
  wc->opcode = OpcodeOf(cqe);
  wc->qp_num = cqe.qpn();
  wc->byte_len = 0;
  wc->wc_flags = 0;
}

void FillSuccess(const Cqe& cqe, ibv_wc* wc) {
  wc->status = IBV_WC_SUCCESS;
  wc->opcode = OpcodeOf(cqe);
  wc->vendor_err = 0;
  wc->byte_len = ByteLengthOf(cqe);
  wc->imm_data = ImmediateOf(cqe);
  wc->qp_num = cqe.qpn();
  wc->src_qp = SourceQpOf(cqe);
  wc->wc_flags = FlagsOf(cqe);
  wc->pkey_index = 0;
  wc->slid = cqe.slid;
  wc->sl = ServiceLevelOf(cqe);
  wc->dlid_path_bits = PathBitsOf(cqe);
}

int PollEntries(Cq* cq, int limit, ibv_wc* wc) {
  std::lock_guard guard(cq->lock);
  int polled = 0;
  const Cqe* cqe = cq->Peek();
  if (cqe == nullptr) return 0;
  while (cqe != nullptr && polled < limit) {
    if (Complete(cq, *cqe, &wc->wr_id)) {
      if (IsError(cqe->opcode())) [[unlikely]] {
        FillError(*cqe, wc);
      } else {
        FillSuccess(*cqe, wc);
      }
      ++wc;
      ++polled;
    }
    cq->Advance();
    cqe = cq->Peek();
  }
  cq->PublishConsumer();
  return polled;
}

// Takes the next entry that can be shown for the extended interface; false if there is none.
bool NextEntry(Cq* cq) {
  for (const Cqe* cqe = cq->Peek(); cqe != nullptr; cqe = cq->Peek()) {
    cq->Advance();
    if (!Complete(cq, *cqe, &cq->verbs.wr_id)) continue;
    cq->verbs.status = IsError(cqe->opcode()) ? StatusOf(AsError(*cqe).syndrome) : IBV_WC_SUCCESS;
    cq->current = cqe;
    return true;
  }
  return false;
}

void Lock(Cq* cq) {
  if (!cq->single_threaded) cq->lock.lock();
}
void Unlock(Cq* cq) {
  if (!cq->single_threaded) cq->lock.unlock();
}

int StartPoll(ibv_cq_ex* public_cq, ibv_poll_cq_attr* attr) {
  Cq* cq = FromVerbs(public_cq);
  if (!cq->header.usable(public_cq->handle)) return EINVAL;
  if (attr != nullptr && attr->comp_mask != 0) {
    return Refuse(EINVAL, "ibv_start_poll", public_cq, "unknown comp_mask {:#x}", attr->comp_mask);
  }
  Lock(cq);
  if (!NextEntry(cq)) {
    Unlock(cq);
    cq->context->device->Poll();
    Lock(cq);
    if (!NextEntry(cq)) {
      cq->PublishConsumer();
      Unlock(cq);
      return ENOENT;
    }
  }
  if (cq->context->virtual_time) cq->context->device->NoteProductive(Device::Call::kPoll);
  return 0;
}

int NextPoll(ibv_cq_ex* public_cq) { return NextEntry(FromVerbs(public_cq)) ? 0 : ENOENT; }

void EndPoll(ibv_cq_ex* public_cq) {
  Cq* cq = FromVerbs(public_cq);
  cq->current = nullptr;
  cq->PublishConsumer();
  Unlock(cq);
}

const Cqe& Current(ibv_cq_ex* cq) { return *FromVerbs(cq)->current; }

ibv_wc_opcode ReadOpcode(ibv_cq_ex* cq) { return OpcodeOf(Current(cq)); }
uint32_t ReadVendorError(ibv_cq_ex* cq) {
  return IsError(Current(cq).opcode()) ? AsError(Current(cq)).vendor_syndrome : 0;
}
uint32_t ReadByteLength(ibv_cq_ex* cq) { return ByteLengthOf(Current(cq)); }
__be32 ReadImmediate(ibv_cq_ex* cq) { return ImmediateOf(Current(cq)); }
uint32_t ReadQpNumber(ibv_cq_ex* cq) { return Current(cq).qpn(); }
uint32_t ReadSourceQp(ibv_cq_ex* cq) { return SourceQpOf(Current(cq)); }
unsigned int ReadFlags(ibv_cq_ex* cq) { return FlagsOf(Current(cq)); }
uint32_t ReadSourceLid(ibv_cq_ex* cq) { return Current(cq).slid; }
uint8_t ReadServiceLevel(ibv_cq_ex* cq) { return ServiceLevelOf(Current(cq)); }
uint8_t ReadPathBits(ibv_cq_ex* cq) { return PathBitsOf(Current(cq)); }
uint64_t ReadTimestamp(ibv_cq_ex* cq) { return Current(cq).timestamp; }
uint64_t ReadWallclock(ibv_cq_ex* cq) {
  return WallclockOf(*FromVerbs(cq)->context, Current(cq).timestamp);
}

}  // namespace

int PollCq(ibv_cq* public_cq, int num_entries, ibv_wc* wc) {
  Cq* cq = FromVerbs(public_cq);
  if (!cq->header.usable(public_cq->handle)) [[unlikely]] {
    return -Refuse(EINVAL, "ibv_poll_cq", public_cq, "not a completion queue, or destroyed");
  }
  if (num_entries <= 0) return 0;
  int polled = PollEntries(cq, num_entries, wc);
  if (polled == 0) {
    cq->context->device->Poll();
    polled = PollEntries(cq, num_entries, wc);
  }
  if (cq->context->virtual_time && polled > 0)
    cq->context->device->NoteProductive(Device::Call::kPoll);
  return polled;
}

int ReqNotifyCq(ibv_cq* public_cq, int solicited_only) {
  Cq* cq = FromVerbs(public_cq);
  if (!cq->header.usable(public_cq->handle)) [[unlikely]] {
    return Refuse(EINVAL, "ibv_req_notify_cq", public_cq, "not a completion queue, or destroyed");
  }
  const uint32_t sequence = cq->arm_sequence.load(std::memory_order_relaxed) & 3;
  const uint32_t word = sequence << mlx5::kArmSequenceShift |
                        (solicited_only != 0 ? mlx5::kArmSolicitedOnly : 0) |
                        (cq->consumer.load(std::memory_order_relaxed) & 0xffffff);
  cq->record.Store(mlx5::kArmRecord, word);
  cq->context->device->ArmCq(cq->number, word);
  return 0;
}

void FillPollFunctions(Cq* cq) {
  ibv_cq_ex& verbs = cq->verbs;
  const auto asked = [cq](uint64_t flag) { return (cq->wc_flags & flag) != 0; };
  verbs.start_poll = StartPoll;
  verbs.next_poll = NextPoll;
  verbs.end_poll = EndPoll;
  verbs.read_opcode = ReadOpcode;
  verbs.read_vendor_err = ReadVendorError;
  verbs.read_wc_flags = ReadFlags;
  if (asked(IBV_WC_EX_WITH_BYTE_LEN)) verbs.read_byte_len = ReadByteLength;
  if (asked(IBV_WC_EX_WITH_IMM)) verbs.read_imm_data = ReadImmediate;
  if (asked(IBV_WC_EX_WITH_QP_NUM)) verbs.read_qp_num = ReadQpNumber;
  if (asked(IBV_WC_EX_WITH_SRC_QP)) verbs.read_src_qp = ReadSourceQp;
  if (asked(IBV_WC_EX_WITH_SLID)) verbs.read_slid = ReadSourceLid;
  if (asked(IBV_WC_EX_WITH_SL)) verbs.read_sl = ReadServiceLevel;
  if (asked(IBV_WC_EX_WITH_DLID_PATH_BITS)) verbs.read_dlid_path_bits = ReadPathBits;
  if (asked(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)) verbs.read_completion_ts = ReadTimestamp;
  if (asked(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)) {
    verbs.read_completion_wallclock_ns = ReadWallclock;
  }
}

// From the newest entry backwards, those that stay move up over those that go; each takes the owner
// bit of the place it moves to.  Then the consumer index skips what has become free at the bottom.
void Sweep(Cq* cq, const Qp* qp) {
  std::lock_guard guard(cq->lock);
  if (cq->last_qp == qp) cq->last_qp = nullptr;
  const uint32_t first = cq->consumer.load(std::memory_order_relaxed);
  const auto entry = [cq](uint32_t index) -> Cqe& { return cq->ring[index & (cq->entries - 1)]; };
  uint32_t end = first;
  while (end - first < cq->entries) {
    const uint8_t owner = __atomic_load_n(&entry(end).opcode_owner, __ATOMIC_ACQUIRE);
    if (owner >> 4 == static_cast<uint8_t>(CqeOpcode::kInvalid) ||
        (owner & 1) != Cqe::OwnerBit(end, cq->entries)) {
      break;
    }
    ++end;
  }
  uint32_t dropped = 0;
  for (uint32_t index = end; index-- != first;) {
    Cqe& cqe = entry(index);
    if (cqe.qpn() == qp->number) {
      const uint32_t srqn = cqe.srqn & 0xffffff;
      if (!IsRequester(cqe.opcode()) && qp->srq != nullptr && srqn == qp->srq->number) {
        qp->srq->Complete(cqe.wqe_counter);
      }
      ++dropped;
    } else if (dropped != 0) {
      const uint32_t place = index + dropped;
      Cqe& target = entry(place);
      target = cqe;
      target.opcode_owner =
          static_cast<uint8_t>((cqe.opcode_owner & ~1u) | Cqe::OwnerBit(place, cq->entries));
    }
  }
  if (dropped == 0) return;
  cq->consumer.store(first + dropped, std::memory_order_relaxed);
  cq->PublishConsumer();
}

}  // namespace simhca::driver
