#include <mutex>

#include "verbs_shim/driver/log.h"
#include "verbs_shim/driver/qp.h"
#include "verbs_shim/driver/srq.h"

// man ibv_post_srq_recv, ibv_post_recv.

namespace simhca::driver {

namespace {

using mlx5::DataSegment;

void Write(DataSegment& segment, const ibv_sge& sge) {
  segment.byte_count = mlx5::SegmentLength(sge.length);
  segment.lkey = sge.lkey;
  segment.address = sge.addr;
}

void Terminate(DataSegment& segment) {
  segment.byte_count = 0;
  segment.lkey = mlx5::kTerminatorKey;
  segment.address = 0;
}

// Posts one work request; returns 0 or a positive errno.  Under the SRQ's lock.
int Post(Srq* srq, const ibv_recv_wr& wr) {
  if (wr.num_sge < 0 || static_cast<uint32_t>(wr.num_sge) > srq->max_sge) [[unlikely]] {
    return Refuse(EINVAL, "ibv_post_srq_recv", &srq->verbs, "num_sge {} is above max_sge {}",
                  wr.num_sge, srq->max_sge);
  }
  if (srq->in_use >= srq->capacity || !srq->free_list->HasNext()) [[unlikely]] {
    return Refuse(ENOMEM, "ibv_post_srq_recv", &srq->verbs,
                  "full: {} work requests without a polled completion", srq->in_use);
  }
  const uint32_t index = srq->free_list->Take();
  std::byte* entry = srq->ring.data() + size_t{index} * srq->stride;
  auto* segments = reinterpret_cast<DataSegment*>(entry + sizeof(mlx5::SrqNextSegment));
  const uint32_t room = srq->stride / sizeof(DataSegment) - 1;
  const uint32_t count = static_cast<uint32_t>(wr.num_sge);
  for (uint32_t i = 0; i < count; ++i) Write(segments[i], wr.sg_list[i]);
  if (count < room) Terminate(segments[count]);
  srq->wr_ids[index] = wr.wr_id;
  ++srq->in_use;
  ++srq->posted;
  return 0;
}

// The same for a queue pair's own receive queue, where empty SGEs are left out.
int Post(Qp* qp, const ibv_recv_wr& wr) {
  ReceiveQueue& rq = qp->rq;
  if (rq.Full()) [[unlikely]] {
    return Refuse(ENOMEM, "ibv_post_recv", qp->Public(),
                  "full: {} work requests without a polled completion", rq.max_wr);
  }
  if (wr.num_sge < 0 || static_cast<uint32_t>(wr.num_sge) > rq.max_sge) [[unlikely]] {
    return Refuse(EINVAL, "ibv_post_recv", qp->Public(), "num_sge {} is above max_recv_sge {}",
                  wr.num_sge, rq.max_sge);
  }
  auto* segments = reinterpret_cast<DataSegment*>(rq.Entry(rq.posted));
  const uint32_t room = rq.stride / sizeof(DataSegment);
  uint32_t count = 0;
  for (int i = 0; i < wr.num_sge; ++i) {
    if (wr.sg_list[i].length != 0) Write(segments[count++], wr.sg_list[i]);
  }
  if (count < room) Terminate(segments[count]);
  rq.wr_ids[rq.posted & (rq.entries - 1)] = wr.wr_id;
  ++rq.posted;
  return 0;
}

}  // namespace

int PostSrqRecv(ibv_srq* public_srq, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
  Srq* srq = FromVerbs(public_srq);
  if (!srq->header.usable(public_srq->handle)) [[unlikely]] {
    *bad_wr = wr;
    return Refuse(EINVAL, "ibv_post_srq_recv", public_srq, "not an SRQ, or destroyed");
  }
  if (srq->failed.load(std::memory_order_relaxed)) [[unlikely]] {
    *bad_wr = wr;
    return Refuse(EINVAL, "ibv_post_srq_recv", public_srq, "the SRQ has had a fatal error");
  }
  int error = 0;
  {
    std::lock_guard guard(srq->lock);
    const uint32_t posted_before = srq->posted;
    for (; wr != nullptr; wr = wr->next) {
      error = Post(srq, *wr);
      if (error != 0) {
        *bad_wr = wr;
        break;
      }
    }
    if (srq->posted != posted_before) srq->record.Store(0, srq->posted);
  }
  if (srq->context->virtual_time) srq->context->device->NoteProductive(Device::Call::kPostReceive);
  return error;
}

int PostRecv(ibv_qp* public_qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
  Qp* qp = FromVerbs(public_qp);
  const char* refusal = nullptr;
  if (!qp->header.usable(public_qp->handle)) {
    refusal = "not a queue pair, or destroyed";
  } else if (qp->srq != nullptr) {
    refusal = "receives of this queue pair come from its SRQ";
  } else if (!qp->AcceptsReceives()) {
    refusal = "the queue pair is in the RESET state";
  }
  if (refusal != nullptr) [[unlikely]] {
    *bad_wr = wr;
    return Refuse(EINVAL, "ibv_post_recv", public_qp, "{}", refusal);
  }
  int error = 0;
  {
    std::lock_guard guard(qp->receive_lock);
    const uint32_t posted_before = qp->rq.posted;
    for (; wr != nullptr; wr = wr->next) {
      error = Post(qp, *wr);
      if (error != 0) {
        *bad_wr = wr;
        break;
      }
    }
    if (qp->rq.posted != posted_before) {
      qp->record.Store(mlx5::kReceiveRecord, qp->rq.posted & 0xffff);
    }
  }
  if (qp->context->virtual_time) qp->context->device->NoteProductive(Device::Call::kPostReceive);
  return error;
}

}  // namespace simhca::driver
