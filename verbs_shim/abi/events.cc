#include "verbs_shim/abi/export.h"
#include "verbs_shim/driver/driver.h"

// Completion and asynchronous events: man ibv_create_comp_channel, ibv_get_cq_event,
// ibv_get_async_event.  Two of these block: no object with a destructor lives across the calls, so
// that a thread can be cancelled in them.

namespace simhca::abi {
namespace {

// The object that `event` is about; null if that is a port or the device itself.
const void* AffectedObject(const ibv_async_event& event) {
  switch (event.event_type) {
    case IBV_EVENT_CQ_ERR:
      return event.element.cq;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return event.element.qp;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      return event.element.srq;
    case IBV_EVENT_WQ_FATAL:
      return event.element.wq;
    default:
      return nullptr;
  }
}

}  // namespace

SIMHCA_EXPORT ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  SIMHCA_REAL_VERB(ibv_create_comp_channel, "IBVERBS_1.0");
  if (driver::Owns(context)) return driver::CreateCompChannel(context);
  if (auto* call = real.For(context)) return call(context);
  return Null(Foreign(__func__, context));
}

SIMHCA_EXPORT int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  SIMHCA_REAL_VERB(ibv_destroy_comp_channel, "IBVERBS_1.0");
  if (driver::Owns(channel)) return driver::DestroyCompChannel(channel);
  if (auto* call = real.For(channel)) return call(channel);
  return Foreign(__func__, channel);
}

SIMHCA_EXPORT int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
  SIMHCA_REAL_VERB(ibv_get_cq_event, "IBVERBS_1.1");
  if (driver::Owns(channel)) return driver::GetCqEvent(channel, cq, cq_context);
  if (auto* call = real.For(channel)) return call(channel, cq, cq_context);
  return MinusOne(Foreign(__func__, channel));
}

SIMHCA_EXPORT void ibv_ack_cq_events(ibv_cq* cq, unsigned int nevents) {
  SIMHCA_REAL_VERB(ibv_ack_cq_events, "IBVERBS_1.1");
  if (driver::Owns(cq)) return driver::AckCqEvents(cq, nevents);
  if (auto* call = real.For(cq)) return call(cq, nevents);
  Foreign(__func__, cq);
}

SIMHCA_EXPORT int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  SIMHCA_REAL_VERB(ibv_get_async_event, "IBVERBS_1.1");
  if (driver::Owns(context)) return driver::GetAsyncEvent(context, event);
  if (auto* call = real.For(context)) return call(context, event);
  return MinusOne(Foreign(__func__, context));
}

SIMHCA_EXPORT void ibv_ack_async_event(ibv_async_event* event) {
  SIMHCA_REAL_VERB(ibv_ack_async_event, "IBVERBS_1.1");
  if (event == nullptr) return;
  const void* object = AffectedObject(*event);
  if (object == nullptr) return;  // events of a port or a device need none
  if (driver::Owns(object)) return driver::AckAsyncEvent(event);
  if (auto* call = real.For(object)) return call(event);
  Foreign(__func__, object);
}

}  // namespace simhca::abi
