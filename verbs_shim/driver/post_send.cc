#include <bit>
#include <mutex>

#include "verbs_shim/driver/log.h"
#include "verbs_shim/driver/qp.h"

// man ibv_post_send: from a list of work requests to WQEs, one doorbell per call.

namespace simhca::driver {

namespace {

using mlx5::WqeOpcode;

constexpr const char* kVerb = "ibv_post_send";

// How a work request of one opcode is laid out.
struct Operation {
  enum class Kind : uint8_t { kUnknown, kUnsupported, kSend, kRemote, kAtomic };
  Kind kind = Kind::kUnknown;
  WqeOpcode opcode{};
  bool immediate = false;
  bool needs_rc = false;  // READ and atomics: reliable connections only
};

constexpr Operation OperationOf(ibv_wr_opcode opcode) {
  using Kind = Operation::Kind;
  switch (opcode) {
    case IBV_WR_SEND:
      return {Kind::kSend, WqeOpcode::kSend};
    case IBV_WR_SEND_WITH_IMM:
      return {.kind = Kind::kSend, .opcode = WqeOpcode::kSendImmediate, .immediate = true};
    case IBV_WR_RDMA_WRITE:
      return {Kind::kRemote, WqeOpcode::kRdmaWrite};
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return {.kind = Kind::kRemote, .opcode = WqeOpcode::kRdmaWriteImmediate, .immediate = true};
    case IBV_WR_RDMA_READ:
      return {.kind = Kind::kRemote, .opcode = WqeOpcode::kRdmaRead, .needs_rc = true};
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return {.kind = Kind::kAtomic, .opcode = WqeOpcode::kAtomicCompareSwap, .needs_rc = true};
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return {.kind = Kind::kAtomic, .opcode = WqeOpcode::kAtomicFetchAdd, .needs_rc = true};
    // Without memory windows there is no key that a peer may invalidate.
    case IBV_WR_SEND_WITH_INV:
    case IBV_WR_LOCAL_INV:
    case IBV_WR_BIND_MW:
    case IBV_WR_TSO:
    case IBV_WR_ATOMIC_WRITE:
      return {.kind = Kind::kUnsupported};
    default:
      return {};
  }
}

// 0, or the errno for a work request that cannot be posted (before anything is written).
[[gnu::cold, gnu::noinline]] int WhyRefused(const Qp& qp, const ibv_send_wr& wr,
                                            const Operation& operation) {
  const void* object = qp.Public();
  switch (operation.kind) {
    case Operation::Kind::kUnknown:
      return Refuse(EINVAL, kVerb, object, "unknown opcode {}", int(wr.opcode));
    case Operation::Kind::kUnsupported:
      return Refuse(EOPNOTSUPP, kVerb, object, "opcode {} is not supported", int(wr.opcode));
    default:
      break;
  }
  if (operation.needs_rc && qp.type != IBV_QPT_RC) {
    return Refuse(EINVAL, kVerb, object, "opcode {} is for RC only", int(wr.opcode));
  }
  const bool sges_fit = wr.num_sge >= 0 && static_cast<uint32_t>(wr.num_sge) <= qp.sq.max_sge;
  // Another thread may have polled a completion since it was found full.
  if (qp.sq.Full() || sges_fit) {
    return Refuse(ENOMEM, kVerb, object, "full: {} work requests without a polled completion",
                  qp.sq.max_wr);
  }
  return Refuse(EINVAL, kVerb, object, "num_sge {} is above max_send_sge {}", wr.num_sge,
                qp.sq.max_sge);
}

uint64_t InlineLength(const ibv_send_wr& wr) {
  uint64_t length = 0;
  for (int i = 0; i < wr.num_sge; ++i) length += wr.sg_list[i].length;
  return length;
}

// The data of a SEND or WRITE that goes into the WQE itself.
int AppendInlineData(const Qp& qp, const ibv_send_wr& wr, WqeWriter* writer) {
  if (wr.opcode == IBV_WR_RDMA_READ) {
    return Refuse(EINVAL, kVerb, qp.Public(), "IBV_SEND_INLINE with a READ");
  }
  const uint64_t length = InlineLength(wr);
  if (length > qp.sq.max_inline) {
    return Refuse(EINVAL, kVerb, qp.Public(), "{} inline bytes, max_inline_data is {}", length,
                  qp.sq.max_inline);
  }
  if (length == 0) return 0;
  writer->BeginInline(static_cast<uint32_t>(length));
  for (int i = 0; i < wr.num_sge; ++i) {
    writer->AppendInline(reinterpret_cast<const void*>(wr.sg_list[i].addr), wr.sg_list[i].length);
  }
  writer->EndInline();
  return 0;
}

void AppendRemoteAddress(uint64_t address, uint32_t rkey, WqeWriter* writer) {
  auto& segment = writer->Append<mlx5::RemoteAddressSegment>();
  segment.address = address;
  segment.rkey = rkey;
  segment.reserved = 0;
}

int AppendAtomic(const Qp& qp, const ibv_send_wr& wr, WqeWriter* writer) {
  constexpr uint32_t kAtomicBytes = 8;
  if (qp.context->profile.features.atomic_cap == AtomicCap::kNone) {
    return Refuse(EOPNOTSUPP, kVerb, qp.Public(), "the device has no atomics");
  }
  if ((wr.send_flags & IBV_SEND_INLINE) != 0 || wr.num_sge != 1 ||
      wr.sg_list[0].length < kAtomicBytes) {
    return Refuse(EINVAL, kVerb, qp.Public(), "an atomic needs one SGE of 8 bytes, not inline");
  }
  if (wr.wr.atomic.remote_addr % kAtomicBytes != 0) {
    return Refuse(EINVAL, kVerb, qp.Public(), "remote address {:#x} is not a multiple of 8",
                  wr.wr.atomic.remote_addr);
  }
  AppendRemoteAddress(wr.wr.atomic.remote_addr, wr.wr.atomic.rkey, writer);
  auto& segment = writer->Append<mlx5::AtomicSegment>();
  const bool compare = wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
  segment.swap_add = compare ? wr.wr.atomic.swap : wr.wr.atomic.compare_add;
  segment.compare = compare ? wr.wr.atomic.compare_add : 0;
  writer->AppendData(wr.sg_list[0].addr, kAtomicBytes, wr.sg_list[0].lkey);
  return 0;
}

int AppendOperation(const Qp& qp, const ibv_send_wr& wr, const Operation& operation,
                    WqeWriter* writer) {
  if (operation.kind == Operation::Kind::kAtomic) return AppendAtomic(qp, wr, writer);
  if (operation.kind == Operation::Kind::kRemote) {
    AppendRemoteAddress(wr.wr.rdma.remote_addr, wr.wr.rdma.rkey, writer);
  }
  if ((wr.send_flags & IBV_SEND_INLINE) != 0) return AppendInlineData(qp, wr, writer);
  for (int i = 0; i < wr.num_sge; ++i) {
    const ibv_sge& sge = wr.sg_list[i];
    if (sge.length != 0) writer->AppendData(sge.addr, sge.length, sge.lkey);
  }
  return 0;
}

// Writes the WQE of one work request; returns 0 or a positive errno.  Under the send lock.
int Post(Qp* qp, const ibv_send_wr& wr) {
  SendQueue& sq = qp->sq;
  const Operation operation = OperationOf(wr.opcode);
  const bool refused = operation.kind <= Operation::Kind::kUnsupported ||
                       (operation.needs_rc && qp->type != IBV_QPT_RC) || sq.Full() ||
                       wr.num_sge < 0 || static_cast<uint32_t>(wr.num_sge) > sq.max_sge;
  if (refused) [[unlikely]]
    return WhyRefused(*qp, wr, operation);

  WqeWriter writer(sq);
  auto& control = writer.Append<mlx5::ControlSegment>();
  if (const int error = AppendOperation(*qp, wr, operation, &writer)) [[unlikely]]
    return error;
  control.Set(operation.opcode, static_cast<uint16_t>(sq.next_block), qp->number, writer.units(),
              ControlFlags(*qp, wr.send_flags));
  control.immediate = operation.immediate ? wr.imm_data : 0;
  CommitWqe(&sq, writer.blocks(), wr.wr_id);
  return 0;
}

}  // namespace

int PostSend(ibv_qp* public_qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) {
  Qp* qp = FromVerbs(public_qp);
  if (!qp->header.usable(public_qp->handle)) [[unlikely]] {
    *bad_wr = wr;
    return Refuse(EINVAL, kVerb, public_qp, "not a queue pair, or destroyed");
  }
  if (!qp->AcceptsSends()) [[unlikely]] {
    *bad_wr = wr;
    return Refuse(EINVAL, kVerb, public_qp, "state {} takes no sends", int(qp->state.load()));
  }
  int error = 0;
  bool posted;
  {
    std::lock_guard guard(qp->send_lock);
    const uint32_t first_block = qp->sq.next_block;
    for (; wr != nullptr; wr = wr->next) {
      error = Post(qp, *wr);
      if (error != 0) [[unlikely]] {
        *bad_wr = wr;
        break;
      }
    }
    posted = qp->sq.next_block != first_block;
    if (posted) PublishSends(qp);
  }
  if (posted) qp->context->device->RingSendDoorbell(qp->doorbell);
  return error;
}

}  // namespace simhca::driver
