#include <bit>
#include <mutex>

#include "verbs_shim/driver/log.h"
#include "verbs_shim/driver/qp.h"

// The functions of ibv_qp_ex (man ibv_wr_post): a batch begins with wr_start and is posted by
// wr_complete or forgotten by wr_abort.  A work request is a builder (wr_send, wr_rdma_write, ...)
// and then a setter of its data.  Builders and setters return nothing: the first error is kept for
// wr_complete, which then posts nothing.

namespace simhca::driver {

namespace {

using mlx5::WqeOpcode;

void Fail(Qp* qp, int error, const char* rule) {
  if (qp->batch.error == 0) {
    qp->batch.error = Refuse(error, "ibv_wr_complete", qp->Public(), "{}", rule);
  }
}

// Ends the WQE that has been begun, if any.
void EndWqe(Qp* qp) {
  Qp::Batch& batch = qp->batch;
  if (!batch.open) return;
  batch.open = false;
  if (batch.error != 0) return;
  batch.control->Set(batch.opcode, static_cast<uint16_t>(qp->sq.next_block), qp->number,
                     batch.writer.units(), batch.flags);
  batch.control->immediate = batch.immediate;
  CommitWqe(&qp->sq, batch.writer.blocks(), batch.wr_id);
}

// Begins a WQE; false if the batch has failed.
bool BeginWqe(Qp* qp, uint64_t op, WqeOpcode opcode, uint32_t immediate) {
  EndWqe(qp);
  Qp::Batch& batch = qp->batch;
  if (batch.error != 0) return false;
  if ((qp->send_ops & op) == 0) {
    Fail(qp, EINVAL, "the operation is not among send_ops_flags");
    return false;
  }
  if (qp->sq.Full()) {
    Fail(qp, ENOMEM, "the send queue is full");
    return false;
  }
  batch.open = true;
  batch.has_data = false;
  batch.atomic = false;
  batch.opcode = opcode;
  batch.immediate = immediate;
  batch.wr_id = qp->verbs.wr_id;
  batch.flags = ControlFlags(*qp, qp->verbs.wr_flags);
  batch.writer = WqeWriter(qp->sq);
  batch.control = &batch.writer.Append<mlx5::ControlSegment>();
  return true;
}

void AppendRemoteAddress(Qp* qp, uint32_t rkey, uint64_t address) {
  auto& segment = qp->batch.writer.Append<mlx5::RemoteAddressSegment>();
  segment.address = address;
  segment.rkey = rkey;
  segment.reserved = 0;
}

void WrSend(ibv_qp_ex* qp) { BeginWqe(FromVerbs(qp), IBV_QP_EX_WITH_SEND, WqeOpcode::kSend, 0); }

void WrSendImm(ibv_qp_ex* qp, __be32 immediate) {
  BeginWqe(FromVerbs(qp), IBV_QP_EX_WITH_SEND_WITH_IMM, WqeOpcode::kSendImmediate, immediate);
}

void WrSendInv(ibv_qp_ex* qp, uint32_t rkey) {
  BeginWqe(FromVerbs(qp), IBV_QP_EX_WITH_SEND_WITH_INV, WqeOpcode::kSendInvalidate,
           std::bit_cast<uint32_t>(Be32{rkey}));
}

void WrRdmaWrite(ibv_qp_ex* public_qp, uint32_t rkey, uint64_t address) {
  Qp* qp = FromVerbs(public_qp);
  if (BeginWqe(qp, IBV_QP_EX_WITH_RDMA_WRITE, WqeOpcode::kRdmaWrite, 0)) {
    AppendRemoteAddress(qp, rkey, address);
  }
}

void WrRdmaWriteImm(ibv_qp_ex* public_qp, uint32_t rkey, uint64_t address, __be32 immediate) {
  Qp* qp = FromVerbs(public_qp);
  if (BeginWqe(qp, IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, WqeOpcode::kRdmaWriteImmediate, immediate)) {
    AppendRemoteAddress(qp, rkey, address);
  }
}

void WrRdmaRead(ibv_qp_ex* public_qp, uint32_t rkey, uint64_t address) {
  Qp* qp = FromVerbs(public_qp);
  if (BeginWqe(qp, IBV_QP_EX_WITH_RDMA_READ, WqeOpcode::kRdmaRead, 0)) {
    AppendRemoteAddress(qp, rkey, address);
  }
}

void BeginAtomic(Qp* qp, uint64_t op, WqeOpcode opcode, uint32_t rkey, uint64_t address,
                 uint64_t swap_add, uint64_t compare) {
  if (!BeginWqe(qp, op, opcode, 0)) return;
  if (qp->context->profile.features.atomic_cap == AtomicCap::kNone) {
    return Fail(qp, EOPNOTSUPP, "the device has no atomics");
  }
  if (address % 8 != 0) return Fail(qp, EINVAL, "an atomic's address is not a multiple of 8");
  qp->batch.atomic = true;
  AppendRemoteAddress(qp, rkey, address);
  auto& segment = qp->batch.writer.Append<mlx5::AtomicSegment>();
  segment.swap_add = swap_add;
  segment.compare = compare;
}

void WrAtomicCompareSwap(ibv_qp_ex* qp, uint32_t rkey, uint64_t address, uint64_t compare,
                         uint64_t swap) {
  BeginAtomic(FromVerbs(qp), IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, WqeOpcode::kAtomicCompareSwap, rkey,
              address, swap, compare);
}

void WrAtomicFetchAdd(ibv_qp_ex* qp, uint32_t rkey, uint64_t address, uint64_t add) {
  BeginAtomic(FromVerbs(qp), IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, WqeOpcode::kAtomicFetchAdd, rkey,
              address, add, 0);
}

// ---- Setters ----

// Whether data may be added to the work request that has been begun.
bool TakesData(Qp* qp) {
  Qp::Batch& batch = qp->batch;
  if (batch.error != 0) return false;
  if (!batch.open || batch.has_data) {
    Fail(qp, EINVAL, "a setter without a work request that still needs data");
    return false;
  }
  batch.has_data = true;
  return true;
}

void AppendSge(Qp* qp, uint32_t lkey, uint64_t address, uint32_t length) {
  constexpr uint32_t kAtomicBytes = 8;
  if (qp->batch.atomic) {
    if (length < kAtomicBytes) return Fail(qp, EINVAL, "an atomic's SGE is below 8 bytes");
    length = kAtomicBytes;
  }
  if (length != 0) qp->batch.writer.AppendData(address, length, lkey);
}

void WrSetSge(ibv_qp_ex* public_qp, uint32_t lkey, uint64_t address, uint32_t length) {
  Qp* qp = FromVerbs(public_qp);
  if (!TakesData(qp)) return;
  if (qp->sq.max_sge == 0) return Fail(qp, EINVAL, "more SGEs than max_send_sge");
  AppendSge(qp, lkey, address, length);
}

void WrSetSgeList(ibv_qp_ex* public_qp, size_t count, const ibv_sge* list) {
  Qp* qp = FromVerbs(public_qp);
  if (!TakesData(qp)) return;
  if (count > qp->sq.max_sge || (qp->batch.atomic && count != 1)) {
    return Fail(qp, EINVAL, "more SGEs than max_send_sge, or than the one of an atomic");
  }
  for (size_t i = 0; i < count; ++i) AppendSge(qp, list[i].lkey, list[i].addr, list[i].length);
}

void WrSetInlineDataList(ibv_qp_ex* public_qp, size_t count, const ibv_data_buf* buffers) {
  Qp* qp = FromVerbs(public_qp);
  if (!TakesData(qp)) return;
  Qp::Batch& batch = qp->batch;
  if (batch.atomic || batch.opcode == WqeOpcode::kRdmaRead) {
    return Fail(qp, EINVAL, "inline data with a READ or an atomic");
  }
  size_t total = 0;
  for (size_t i = 0; i < count; ++i) total += buffers[i].length;
  if (total > qp->sq.max_inline) return Fail(qp, EINVAL, "more inline bytes than max_inline_data");
  if (total == 0) return;
  batch.writer.BeginInline(static_cast<uint32_t>(total));
  for (size_t i = 0; i < count; ++i) {
    batch.writer.AppendInline(buffers[i].addr, buffers[i].length);
  }
  batch.writer.EndInline();
}

void WrSetInlineData(ibv_qp_ex* qp, void* address, size_t length) {
  const ibv_data_buf buffer{address, length};
  WrSetInlineDataList(qp, 1, &buffer);
}

// ---- What the simulated queue pairs do not have ----

void FailUnsupported(ibv_qp_ex* qp) {
  Fail(FromVerbs(qp), EOPNOTSUPP, "the operation is not supported");
}
void WrBindMw(ibv_qp_ex* qp, ibv_mw*, uint32_t, const ibv_mw_bind_info*) { FailUnsupported(qp); }
void WrLocalInv(ibv_qp_ex* qp, uint32_t) { FailUnsupported(qp); }
void WrSendTso(ibv_qp_ex* qp, void*, uint16_t, uint16_t) { FailUnsupported(qp); }
void WrSetUdAddr(ibv_qp_ex* qp, ibv_ah*, uint32_t, uint32_t) { FailUnsupported(qp); }
void WrSetXrcSrqn(ibv_qp_ex* qp, uint32_t) { FailUnsupported(qp); }
void WrAtomicWrite(ibv_qp_ex* qp, uint32_t, uint64_t, const void*) { FailUnsupported(qp); }

// ---- The batch ----

void WrStart(ibv_qp_ex* public_qp) {
  Qp* qp = FromVerbs(public_qp);
  qp->send_lock.lock();
  Qp::Batch& batch = qp->batch;
  batch.first_block = qp->sq.next_block;
  batch.first_wr = qp->sq.posted;
  batch.open = false;
  batch.error = 0;
  if (!qp->header.usable(public_qp->qp_base.handle)) {
    Fail(qp, EINVAL, "not a queue pair, or destroyed");
  } else if (!qp->AcceptsSends()) {
    Fail(qp, EINVAL, "the state of the queue pair takes no sends");
  }
}

void Undo(Qp* qp) {
  qp->sq.next_block = qp->batch.first_block;
  qp->sq.posted = qp->batch.first_wr;
}

int WrComplete(ibv_qp_ex* public_qp) {
  Qp* qp = FromVerbs(public_qp);
  EndWqe(qp);
  const int error = qp->batch.error;
  if (error != 0) Undo(qp);
  const bool posted = qp->sq.next_block != qp->batch.first_block;
  if (posted) PublishSends(qp);
  qp->send_lock.unlock();
  if (posted) qp->context->device->RingSendDoorbell(qp->doorbell);
  return error;
}

void WrAbort(ibv_qp_ex* public_qp) {
  Qp* qp = FromVerbs(public_qp);
  Undo(qp);
  qp->send_lock.unlock();
}

}  // namespace

void FillWrFunctions(Qp* qp) {
  ibv_qp_ex& verbs = qp->verbs;
  verbs.wr_atomic_cmp_swp = WrAtomicCompareSwap;
  verbs.wr_atomic_fetch_add = WrAtomicFetchAdd;
  verbs.wr_bind_mw = WrBindMw;
  verbs.wr_local_inv = WrLocalInv;
  verbs.wr_rdma_read = WrRdmaRead;
  verbs.wr_rdma_write = WrRdmaWrite;
  verbs.wr_rdma_write_imm = WrRdmaWriteImm;
  verbs.wr_send = WrSend;
  verbs.wr_send_imm = WrSendImm;
  verbs.wr_send_inv = WrSendInv;
  verbs.wr_send_tso = WrSendTso;
  verbs.wr_set_ud_addr = WrSetUdAddr;
  verbs.wr_set_xrc_srqn = WrSetXrcSrqn;
  verbs.wr_set_inline_data = WrSetInlineData;
  verbs.wr_set_inline_data_list = WrSetInlineDataList;
  verbs.wr_set_sge = WrSetSge;
  verbs.wr_set_sge_list = WrSetSgeList;
  verbs.wr_start = WrStart;
  verbs.wr_complete = WrComplete;
  verbs.wr_abort = WrAbort;
  verbs.wr_atomic_write = WrAtomicWrite;
}

}  // namespace simhca::driver
