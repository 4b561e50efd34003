#include <cerrno>
#include <memory>

#include "verbs_shim/driver/acknowledged.h"
#include "verbs_shim/driver/channel.h"
#include "verbs_shim/driver/context.h"
#include "verbs_shim/driver/cq.h"
#include "verbs_shim/driver/driver.h"
#include "verbs_shim/driver/log.h"
#include "verbs_shim/driver/qp.h"
#include "verbs_shim/driver/result.h"
#include "verbs_shim/driver/srq.h"

// man ibv_create_comp_channel, ibv_get_cq_event, ibv_get_async_event.

namespace simhca::driver {

namespace {

using mlx5::EventType;
using mlx5::PortChange;

ibv_event_type PortEventType(PortChange change) {
  switch (change) {
    case PortChange::kActive:
      return IBV_EVENT_PORT_ACTIVE;
    case PortChange::kLid:
      return IBV_EVENT_LID_CHANGE;
    case PortChange::kPkey:
      return IBV_EVENT_PKEY_CHANGE;
    case PortChange::kGuid:
      return IBV_EVENT_GID_CHANGE;
    case PortChange::kReregister:
      return IBV_EVENT_CLIENT_REREGISTER;
    case PortChange::kSubnetManager:
      return IBV_EVENT_SM_CHANGE;
    case PortChange::kDown:
    case PortChange::kInitialised:
      break;
  }
  return IBV_EVENT_PORT_ERR;
}

ibv_event_type AsyncTypeOf(const Event& event) {
  switch (event.type) {
    case EventType::kPathMigrated:
      return IBV_EVENT_PATH_MIG;
    case EventType::kPathMigrationFailed:
      return IBV_EVENT_PATH_MIG_ERR;
    case EventType::kCommunicationEstablished:
      return IBV_EVENT_COMM_EST;
    case EventType::kSendQueueDrained:
      return IBV_EVENT_SQ_DRAINED;
    case EventType::kCqError:
      return IBV_EVENT_CQ_ERR;
    case EventType::kWorkQueueCatastrophic:
      return IBV_EVENT_QP_FATAL;
    case EventType::kPortChange:
      return PortEventType(static_cast<PortChange>(event.sub_type));
    case EventType::kInvalidRequest:
      return IBV_EVENT_QP_REQ_ERR;
    case EventType::kAccessViolation:
      return IBV_EVENT_QP_ACCESS_ERR;
    case EventType::kSrqCatastrophic:
      return IBV_EVENT_SRQ_ERR;
    case EventType::kSrqLastWqe:
      return IBV_EVENT_QP_LAST_WQE_REACHED;
    case EventType::kSrqLimit:
      return IBV_EVENT_SRQ_LIMIT_REACHED;
    case EventType::kCompletion:
    case EventType::kInternalError:
      break;
  }
  return IBV_EVENT_DEVICE_FATAL;
}

}  // namespace

int CheckChannel(const Channel* channel) {
  if (channel == nullptr || !Objects().IsLive(channel, Kind::kChannel)) return EINVAL;
  return channel->verbs.context == channel->context->Public() ? 0 : ENOENT;
}

ibv_comp_channel* CreateCompChannel(ibv_context* public_context) {
  Context* context;
  if (const int error = FindContext(public_context, &context)) {
    return Null(Refuse(error, "ibv_create_comp_channel", public_context, "not an open context"));
  }
  auto channel = std::make_unique<Channel>(context);
  if (const int error = channel->events.Open()) {
    return Null(Refuse(error, "ibv_create_comp_channel", public_context, "no file descriptor"));
  }
  channel->verbs.context = public_context;
  channel->verbs.fd = channel->events.fd();
  Objects().Add(channel.get(), Kind::kChannel, &channel->header, context);
  return &channel.release()->verbs;
}

int DestroyCompChannel(ibv_comp_channel* public_channel) {
  Channel* channel = FromVerbs(public_channel);
  if (const int error = CheckChannel(channel)) {
    return Refuse(error, "ibv_destroy_comp_channel", public_channel, "not a channel");
  }
  if (channel->cqs.load() != 0) {
    return Refuse(EBUSY, "ibv_destroy_comp_channel", public_channel, "{} CQs report here",
                  channel->cqs.load());
  }
  channel->events.Close();
  Retire(channel);
  return 0;
}

int GetCqEvent(ibv_comp_channel* public_channel, ibv_cq** public_cq, void** cq_context) {
  Channel* channel = FromVerbs(public_channel);
  if (const int error = CheckChannel(channel)) {
    return MinusOne(Refuse(error, "ibv_get_cq_event", public_channel, "not a channel"));
  }
  Event event;
  if (channel->events.Take(&event) != 0) return -1;
  Cq* cq = static_cast<Cq*>(event.object);
  cq->arm_sequence.fetch_add(1, std::memory_order_relaxed);
  *public_cq = ibv_cq_ex_to_cq(&cq->verbs);
  *cq_context = cq->verbs.cq_context;
  return 0;
}

void AckCqEvents(ibv_cq* public_cq, unsigned int count) {
  Cq* cq = FromVerbs(public_cq);
  if (!Objects().IsLive(cq, Kind::kCq)) {
    Refuse(EINVAL, "ibv_ack_cq_events", public_cq, "not a completion queue");
    return;
  }
  if (count != 0) Acknowledge(&cq->verbs, cq->verbs.comp_events_completed, count);
}

int GetAsyncEvent(ibv_context* public_context, ibv_async_event* async) {
  Context* context;
  if (const int error = FindContext(public_context, &context)) {
    return MinusOne(Refuse(error, "ibv_get_async_event", public_context, "not an open context"));
  }
  Event event;
  if (context->async_events.Take(&event) != 0) return -1;
  async->event_type = AsyncTypeOf(event);
  switch (async->event_type) {
    case IBV_EVENT_CQ_ERR:
      async->element.cq = ibv_cq_ex_to_cq(&static_cast<Cq*>(event.object)->verbs);
      break;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      async->element.srq = &static_cast<Srq*>(event.object)->verbs;
      break;
    default:
      if (event.object != nullptr) {
        async->element.qp = &static_cast<Qp*>(event.object)->verbs.qp_base;
      } else {
        async->element.cq = nullptr;
        async->element.port_num = event.port;
      }
      break;
  }
  return 0;
}

void AckAsyncEvent(ibv_async_event* event) {
  switch (event->event_type) {
    case IBV_EVENT_CQ_ERR: {
      Cq* cq = FromVerbs(event->element.cq);
      if (!Objects().IsLive(cq, Kind::kCq)) break;
      Acknowledge(&cq->verbs, cq->verbs.async_events_completed, 1);
      return;
    }
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED: {
      Srq* srq = FromVerbs(event->element.srq);
      if (!Objects().IsLive(srq, Kind::kSrq)) break;
      Acknowledge(&srq->verbs, srq->verbs.events_completed, 1);
      return;
    }
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED: {
      Qp* qp = FromVerbs(event->element.qp);
      if (!Objects().IsLive(qp, Kind::kQp)) break;
      Acknowledge(&qp->verbs.qp_base, qp->verbs.qp_base.events_completed, 1);
      return;
    }
    default:
      return;  // a port or the device: nothing waits for it
  }
  Refuse(EINVAL, "ibv_ack_async_event", event, "the object of the event is gone");
}

}  // namespace simhca::driver
