#include "verbs_shim/driver/qp.h"

#include <cerrno>
#include <memory>

#include "verbs_shim/driver/acknowledged.h"
#include "verbs_shim/driver/driver.h"
#include "verbs_shim/driver/log.h"
#include "verbs_shim/driver/process.h"
#include "verbs_shim/driver/qp_attributes.h"
#include "verbs_shim/driver/qp_sizes.h"
#include "verbs_shim/driver/result.h"

// man ibv_create_qp, ibv_create_qp_ex, ibv_modify_qp, ibv_query_qp, ibv_destroy_qp.

namespace simhca::driver {

namespace {

bool IsKnownType(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_RC:
    case IBV_QPT_UC:
    case IBV_QPT_UD:
    case IBV_QPT_RAW_PACKET:
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV:
    case IBV_QPT_DRIVER:
      return true;
  }
  return false;
}

// Objects that a queue pair is made of.
struct Parts {
  Pd* pd;
  Cq* send_cq;
  Cq* receive_cq;
  Srq* srq;  // or null
};

template <typename Object>
int CheckPart(const char* verb, const Context* context, const char* name, const Object* object) {
  if (const int error = CheckObject(object)) {
    return Refuse(error, verb, &context->verbs.context, "{} {} is not one", name,
                  static_cast<const void*>(object));
  }
  if (object->context != context) {
    return Refuse(ENOENT, verb, &context->verbs.context, "{} {} is of another context", name,
                  static_cast<const void*>(object));
  }
  return 0;
}

int CheckParts(const char* verb, const Context* context, const Parts& parts) {
  if (const int error = CheckPart(verb, context, "pd", parts.pd)) return error;
  if (const int error = CheckPart(verb, context, "send_cq", parts.send_cq)) return error;
  if (const int error = CheckPart(verb, context, "recv_cq", parts.receive_cq)) return error;
  return parts.srq == nullptr ? 0 : CheckPart(verb, context, "srq", parts.srq);
}

// Memory of the queues; false if there is none.
bool AllocateQueues(Qp* qp, const QpSizes& sizes) {
  SendQueue& sq = qp->sq;
  sq.blocks = sizes.send_blocks;
  sq.max_wr = sizes.granted.max_send_wr;
  sq.max_sge = sizes.granted.max_send_sge;
  sq.max_inline = sizes.granted.max_inline_data;
  if (sq.blocks != 0) {
    sq.memory = RingMemory(size_t{sq.blocks} * mlx5::kSendBlockBytes);
    sq.slots = std::make_unique<SendQueue::Slot[]>(sq.blocks);
    if (sq.memory.data() == nullptr) return false;
  }
  ReceiveQueue& rq = qp->rq;
  rq.entries = sizes.receive_entries;
  rq.stride = sizes.receive_stride;
  rq.max_wr = sizes.granted.max_recv_wr;
  rq.max_sge = sizes.granted.max_recv_sge;
  if (rq.entries != 0) {
    rq.memory = RingMemory(size_t{rq.entries} * rq.stride);
    rq.wr_ids = std::make_unique<uint64_t[]>(rq.entries);
    if (rq.memory.data() == nullptr) return false;
  }
  return qp->record.data() != nullptr;
}

int CreateOnDevice(Qp* qp) {
  const CreateQpCommand command{.context = qp->context->number,
                                .pd = qp->pd->number,
                                .type = static_cast<QpType>(qp->type),
                                .send_cq = qp->send_cq->number,
                                .receive_cq = qp->receive_cq->number,
                                .srq = qp->srq != nullptr ? qp->srq->number : 0,
                                .send_ring = qp->sq.memory.data(),
                                .send_blocks = qp->sq.blocks,
                                .receive_ring = qp->rq.memory.data(),
                                .receive_entries = qp->rq.entries,
                                .receive_stride = qp->rq.stride,
                                .doorbell_record = qp->record.data()};
  CreateQpReply reply{};
  if (const int error = qp->context->device->CreateQp(command, &reply)) return error;
  qp->number = reply.qpn;
  qp->doorbell = reply.doorbell;
  if (!qp->context->qps.Set(qp->number, qp)) {
    ReleasedWqe released;
    qp->context->device->DestroyQp(qp->number, &released);
    return ENOMEM;
  }
  return 0;
}

void FillPublic(Qp* qp, const ibv_qp_init_attr_ex& attr) {
  ibv_qp& verbs = qp->verbs.qp_base;
  qp->header.handle = qp->number;
  verbs.context = qp->context->Public();
  verbs.qp_context = attr.qp_context;
  verbs.pd = attr.pd;
  verbs.send_cq = attr.send_cq;
  verbs.recv_cq = attr.recv_cq;
  verbs.srq = attr.srq;
  verbs.handle = qp->header.handle;
  verbs.qp_num = qp->number;
  verbs.state = IBV_QPS_RESET;
  verbs.qp_type = attr.qp_type;
  InitAcknowledgements(&verbs);
  if (qp->has_wr_functions) FillWrFunctions(qp);
}

// `attr` is complete, pd included; send_ops_flags are 0 if not given.
ibv_qp* Create(const char* verb, Context* context, ibv_qp_init_attr_ex* attr, bool wr_functions) {
  const Parts parts{FromVerbs(attr->pd), FromVerbs(attr->send_cq), FromVerbs(attr->recv_cq),
                    FromVerbs(attr->srq)};
  if (!IsKnownType(attr->qp_type)) {
    return Null(Refuse(EINVAL, verb, context->Public(), "unknown type {}", int(attr->qp_type)));
  }
  if (attr->qp_type != IBV_QPT_RC && attr->qp_type != IBV_QPT_UC) {
    return Null(Refuse(EOPNOTSUPP, verb, context->Public(), "type {} is not supported",
                       int(attr->qp_type)));
  }
  if (const int error = CheckParts(verb, context, parts)) return Null(error);
  QpSizes sizes;
  if (const char* broken = ComputeQpSizes(context->profile, attr->qp_type, parts.srq != nullptr,
                                          attr->send_ops_flags, attr->cap, &sizes)) {
    return Null(Refuse(EINVAL, verb, context->Public(), "{}", broken));
  }
  auto qp = std::make_unique<Qp>(context);
  qp->pd = parts.pd;
  qp->send_cq = parts.send_cq;
  qp->receive_cq = parts.receive_cq;
  qp->srq = parts.srq;
  qp->type = attr->qp_type;
  qp->signal_all = attr->sq_sig_all != 0;
  qp->has_wr_functions = wr_functions;
  qp->send_ops = attr->send_ops_flags;
  qp->cap = sizes.granted;
  if (!AllocateQueues(qp.get(), sizes)) return Null(ENOMEM);
  if (const int error = CreateOnDevice(qp.get())) {
    return Null(
        Refuse(error, verb, context->Public(), "the device refused type {}", int(attr->qp_type)));
  }
  FillPublic(qp.get(), *attr);
  attr->cap = sizes.granted;
  Objects().Add(qp.get(), Kind::kQp, &qp->header, context);
  return &qp.release()->verbs.qp_base;
}

// After the device has let go of the queue pair, at destruction and reset: an entry of the SRQ that
// it had claimed goes back, and so do those of completions that will not be polled.
void TakeBack(Qp* qp, const ReleasedWqe& released) {
  if (released.any && qp->srq != nullptr) qp->srq->Complete(released.index);
  Sweep(qp->send_cq, qp);
  if (qp->receive_cq != qp->send_cq) Sweep(qp->receive_cq, qp);
}

void ResetQueues(Qp* qp) {
  std::scoped_lock guard(qp->send_lock, qp->receive_lock);
  qp->sq.Reset();
  qp->rq.Reset();
  qp->record.Store(mlx5::kSendRecord, 0);
  qp->record.Store(mlx5::kReceiveRecord, 0);
}

// Code 0 is the longest wait of all, and what a program gets that leaves the field alone: its
// senders stall at every message that comes before a receive is posted.
void WarnOfLongestRnrTimer(const ibv_qp* qp, const ibv_qp_attr& attr, int mask) {
  const bool chosen = (mask & IBV_QP_MIN_RNR_TIMER) != 0 && attr.min_rnr_timer == 0 &&
                      (mask & IBV_QP_STATE) != 0 && attr.qp_state == IBV_QPS_RTR;
  if (!chosen || !LogEnabled(LogLevel::kWarn) || !Process::Get().FirstToWarnOfRnrTimer()) return;
  Log(LogLevel::kWarn,
      "ibv_modify_qp({}): min_rnr_timer 0 means 655 ms: so long does a sender stall at every "
      "message that finds no receive",
      static_cast<const void*>(qp));
}

constexpr uint32_t kSupportedMask =
    IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;

// Operations that the wr_* functions of a type can build.
uint64_t SupportedOps(ibv_qp_type type, AtomicCap atomics) {
  uint64_t ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
  if (type == IBV_QPT_RC || type == IBV_QPT_UC) {
    ops |= IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
  }
  if (type == IBV_QPT_RC) {
    ops |= IBV_QP_EX_WITH_RDMA_READ;
    if (atomics != AtomicCap::kNone) {
      ops |= IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
    }
  }
  return ops;
}

}  // namespace

ibv_qp* CreateQp(ibv_pd* public_pd, ibv_qp_init_attr* init_attr) {
  constexpr const char* kVerb = "ibv_create_qp";
  Pd* pd = FromVerbs(public_pd);
  if (const int error = CheckObject(pd)) {
    return Null(Refuse(error, kVerb, public_pd, "not a protection domain"));
  }
  if (init_attr == nullptr) return Null(Refuse(EINVAL, kVerb, public_pd, "no attributes"));
  ibv_qp_init_attr_ex attr{};
  attr.qp_context = init_attr->qp_context;
  attr.send_cq = init_attr->send_cq;
  attr.recv_cq = init_attr->recv_cq;
  attr.srq = init_attr->srq;
  attr.cap = init_attr->cap;
  attr.qp_type = init_attr->qp_type;
  attr.sq_sig_all = init_attr->sq_sig_all;
  attr.comp_mask = IBV_QP_INIT_ATTR_PD;
  attr.pd = public_pd;
  ibv_qp* qp = Create(kVerb, pd->context, &attr, false);
  if (qp != nullptr) init_attr->cap = attr.cap;
  return qp;
}

ibv_qp* CreateQpEx(ibv_context* public_context, ibv_qp_init_attr_ex* init_attr) {
  constexpr const char* kVerb = "ibv_create_qp_ex";
  Context* context;
  if (const int error = FindContext(public_context, &context)) {
    return Null(Refuse(error, kVerb, public_context, "not an open context"));
  }
  if (init_attr == nullptr) return Null(Refuse(EINVAL, kVerb, public_context, "no attributes"));
  const uint32_t mask = init_attr->comp_mask;
  if ((mask & IBV_QP_INIT_ATTR_PD) == 0 && init_attr->qp_type != IBV_QPT_XRC_RECV) {
    return Null(Refuse(EINVAL, kVerb, public_context, "comp_mask has no PD"));
  }
  if ((mask & ~kSupportedMask) != 0) {
    return Null(Refuse(EOPNOTSUPP, kVerb, public_context, "comp_mask {:#x} is not supported",
                       mask & ~kSupportedMask));
  }
  if ((mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 && init_attr->create_flags != 0) {
    return Null(
        Refuse(EINVAL, kVerb, public_context, "create_flags {:#x}", init_attr->create_flags));
  }
  const bool wr_functions = (mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
  ibv_qp_init_attr_ex attr = *init_attr;
  attr.send_ops_flags = wr_functions ? init_attr->send_ops_flags : 0;
  const uint64_t supported = SupportedOps(attr.qp_type, context->profile.features.atomic_cap);
  if ((attr.send_ops_flags & ~supported) != 0) {
    return Null(Refuse(EOPNOTSUPP, kVerb, public_context, "send_ops_flags {:#x} not supported",
                       attr.send_ops_flags & ~supported));
  }
  ibv_qp* qp = Create(kVerb, context, &attr, wr_functions);
  if (qp != nullptr) init_attr->cap = attr.cap;
  return qp;
}

ibv_qp_ex* QpToQpEx(ibv_qp* public_qp) {
  Qp* qp = FromVerbs(public_qp);
  if (CheckObject(qp) != 0 || !qp->has_wr_functions) return nullptr;
  return &qp->verbs;
}

int ModifyQp(ibv_qp* public_qp, ibv_qp_attr* attr, int mask) {
  constexpr const char* kVerb = "ibv_modify_qp";
  Qp* qp = FromVerbs(public_qp);
  if (CheckObject(qp) != 0) return Refuse(EINVAL, kVerb, public_qp, "not a queue pair");
  if (attr == nullptr) return Refuse(EINVAL, kVerb, public_qp, "no attributes");
  // Reported before a state that does not exist (Linux uverbs).
  constexpr int kStandardMask = (IBV_QP_DEST_QPN << 1) - 1;
  if ((mask & ~kStandardMask) != 0) {
    return Refuse(EOPNOTSUPP, kVerb, public_qp, "mask {:#x} has unknown bits", mask);
  }
  const bool moves = (mask & IBV_QP_STATE) != 0;
  if ((moves && attr->qp_state > IBV_QPS_ERR) ||
      ((mask & IBV_QP_CUR_STATE) != 0 && attr->cur_qp_state > IBV_QPS_ERR)) {
    return Refuse(EINVAL, kVerb, public_qp, "no such state");
  }
  const ModifyQpCommand command{
      .qpn = qp->number, .mask = static_cast<uint32_t>(mask), .attributes = ToDevice(*attr, mask)};
  ReleasedWqe released;
  if (const int error = qp->context->device->ModifyQp(command, &released)) {
    if (error == EIO) return Refuse(error, kVerb, public_qp, "the device has had a fatal error");
    return Refuse(error, kVerb, public_qp,
                  "mask {:#x} or a value does not fit a move from state {} to {}", mask,
                  int(qp->state.load()), moves ? int(attr->qp_state) : int(qp->state.load()));
  }
  if (!moves) return 0;
  WarnOfLongestRnrTimer(public_qp, *attr, mask);
  if (attr->qp_state == IBV_QPS_RESET) {
    TakeBack(qp, released);
    ResetQueues(qp);
  }
  qp->state.store(static_cast<uint8_t>(attr->qp_state), std::memory_order_relaxed);
  public_qp->state = attr->qp_state;
  return 0;
}

int QueryQp(ibv_qp* public_qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init_attr) {
  Qp* qp = FromVerbs(public_qp);
  if (CheckObject(qp) != 0) return Refuse(EINVAL, "ibv_query_qp", public_qp, "not a queue pair");
  if (attr == nullptr || init_attr == nullptr) return EINVAL;
  QpAttributes attributes;
  if (const int error = qp->context->device->QueryQp(qp->number, &attributes)) return error;
  *attr = {};
  FromDevice(attributes, attr);
  attr->cap = qp->cap;
  const ibv_qp& verbs = *qp->Public();
  *init_attr = {.qp_context = verbs.qp_context,
                .send_cq = verbs.send_cq,
                .recv_cq = verbs.recv_cq,
                .srq = verbs.srq,
                .cap = qp->cap,
                .qp_type = qp->type,
                .sq_sig_all = qp->signal_all ? 1 : 0};
  if ((mask & IBV_QP_STATE) != 0) public_qp->state = attr->qp_state;
  return 0;
}

int DestroyQp(ibv_qp* public_qp) {
  Qp* qp = FromVerbs(public_qp);
  if (const int error = CheckObject(qp)) {
    return Refuse(error, "ibv_destroy_qp", public_qp, "not a queue pair");
  }
  Context* context = qp->context;
  ReleasedWqe released;
  if (const int error = context->device->DestroyQp(qp->number, &released)) {
    return Refuse(error, "ibv_destroy_qp", public_qp, "still in use");
  }
  TakeBack(qp, released);
  context->qps.Set(qp->number, nullptr);
  context->async_events.Drop(qp);
  ibv_qp& verbs = qp->verbs.qp_base;
  AwaitAcknowledgements(&verbs, verbs.events_completed, qp->events_taken);
  Retire(qp);
  return 0;
}

int QueryQpDataInOrder(ibv_qp*, ibv_wr_opcode, uint32_t) { return 0; }

}  // namespace simhca::driver
