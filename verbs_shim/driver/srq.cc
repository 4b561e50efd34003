#include "verbs_shim/driver/srq.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>

#include "verbs_shim/driver/acknowledged.h"
#include "verbs_shim/driver/driver.h"
#include "verbs_shim/driver/log.h"
#include "verbs_shim/driver/result.h"
#include "verbs_shim/driver/srq_sizes.h"

// man ibv_create_srq, ibv_create_srq_ex, ibv_modify_srq, ibv_query_srq, ibv_destroy_srq.

namespace simhca::driver {

namespace {

constexpr const char* kHasFailed = "the SRQ has had a fatal error";

int CheckSize(const char* verb, const void* object, const DeviceProfile& profile, uint32_t max_wr,
              uint32_t max_sge) {
  const DeviceProfile::Limits& limits = profile.limits;
  if (!profile.features.srq || limits.max_srq == 0) {
    return Refuse(EOPNOTSUPP, verb, object, "the device has no SRQs");
  }
  if (max_wr > limits.max_srq_wr) {
    return Refuse(EINVAL, verb, object, "max_wr {} is above {}", max_wr, limits.max_srq_wr);
  }
  if (max_sge > limits.max_srq_sge) {
    return Refuse(EINVAL, verb, object, "max_sge {} is above {}", max_sge, limits.max_srq_sge);
  }
  return 0;
}

ibv_srq* Create(const char* verb, Pd* pd, void* srq_context, ibv_srq_attr* attr) {
  Context* context = pd->context;
  if (const int error =
          CheckSize(verb, &pd->verbs, context->profile, attr->max_wr, attr->max_sge)) {
    return Null(error);
  }
  const SrqSizes size = ComputeSrqSizes(context->profile, attr->max_wr, attr->max_sge);
  auto srq = std::make_unique<Srq>(pd);
  srq->ring = RingMemory(size_t{size.entries} * size.stride);
  if (srq->ring.data() == nullptr || srq->record.data() == nullptr) return Null(ENOMEM);
  srq->entries = size.entries;
  srq->stride = size.stride;
  srq->max_sge = size.max_sge;
  srq->capacity = size.capacity;
  srq->query_max_wr = size.query_max_wr;
  srq->free_list.emplace(context->profile.features.srq_list_order, srq->ring.data(), size.stride,
                         size.entries);
  srq->wr_ids.resize(size.entries);

  const CreateSrqCommand command{.context = context->number,
                                 .pd = pd->number,
                                 .ring = srq->ring.data(),
                                 .entries = size.entries,
                                 .stride = size.stride,
                                 .doorbell_record = srq->record.data(),
                                 .max_limit = size.max_limit};
  if (const int error = context->device->CreateSrq(command, &srq->number)) {
    return Null(Refuse(error, verb, &pd->verbs, "the device refused"));
  }
  if (!context->srqs.Set(srq->number, srq.get())) {
    context->device->DestroySrq(srq->number);
    return Null(ENOMEM);
  }
  srq->header.handle = srq->number;
  srq->verbs.context = context->Public();
  srq->verbs.srq_context = srq_context;
  srq->verbs.pd = &pd->verbs;
  srq->verbs.handle = srq->header.handle;
  InitAcknowledgements(&srq->verbs);
  attr->max_wr = size.capacity;
  attr->max_sge = size.max_sge;
  Objects().Add(srq.get(), Kind::kSrq, &srq->header, context);
  return &srq.release()->verbs;
}

// 0 or why a PD of the application cannot be used.
int CheckPd(const char* verb, const void* object, ibv_pd* public_pd, const Context* context) {
  Pd* pd = FromVerbs(public_pd);
  if (const int error = CheckObject(pd)) {
    return Refuse(error, verb, object, "pd {} is not one", static_cast<const void*>(public_pd));
  }
  if (context != nullptr && pd->context != context) {
    return Refuse(ENOENT, verb, object, "pd {} is of another context",
                  static_cast<const void*>(public_pd));
  }
  return 0;
}

// A larger ring with the present entries at their places.
RingMemory GrowRing(const Srq& srq, uint32_t entries) {
  RingMemory ring(size_t{entries} * srq.stride);
  if (ring.data() != nullptr) {
    std::memcpy(ring.data(), srq.ring.data(), size_t{srq.entries} * srq.stride);
  }
  return ring;
}

int Modify(Srq* srq, const ibv_srq_attr& attr, int mask) {
  constexpr const char* kVerb = "ibv_modify_srq";
  Context* context = srq->context;
  ModifySrqCommand command{};
  command.srq = srq->number;
  if ((mask & IBV_SRQ_LIMIT) != 0) {
    command.set_limit = true;
    command.limit = attr.srq_limit;
  }
  if ((mask & IBV_SRQ_MAX_WR) == 0) {
    const int error = context->device->ModifySrq(command);
    return error == 0
               ? 0
               : Refuse(error, kVerb, &srq->verbs, "limit {} is out of range", attr.srq_limit);
  }
  if (attr.max_wr == 0 || attr.max_wr > context->profile.limits.max_srq_wr) {
    return Refuse(EINVAL, kVerb, &srq->verbs, "max_wr {} is not in 1..{}", attr.max_wr,
                  context->profile.limits.max_srq_wr);
  }
  const SrqSizes size = ComputeSrqSizes(context->profile, attr.max_wr, srq->max_sge);
  // Nobody may post or poll while entries move.
  std::lock_guard guard(srq->lock);
  if (!srq->free_list) return Refuse(EINVAL, kVerb, &srq->verbs, "destroyed meanwhile");
  const uint32_t entries = std::max(size.entries, srq->entries);
  RingMemory larger;
  if (entries > srq->entries) {
    larger = GrowRing(*srq, entries);
    if (larger.data() == nullptr) return ENOMEM;
  }
  command.resize = true;
  command.ring = larger.data() != nullptr ? larger.data() : srq->ring.data();
  command.entries = entries;
  command.max_limit = size.max_limit;
  command.capacity = size.capacity;
  if (const int error = context->device->ModifySrq(command)) {
    return Refuse(error, kVerb, &srq->verbs,
                  "max_wr {} is below what is posted or the limit, or limit {} is above max_wr",
                  attr.max_wr, attr.srq_limit);
  }
  if (larger.data() != nullptr) {
    srq->ring = std::move(larger);
    srq->wr_ids.resize(entries);
    srq->free_list->Grow(srq->ring.data(), entries);
    srq->entries = entries;
  }
  srq->capacity = size.capacity;
  srq->query_max_wr = size.query_max_wr;
  return 0;
}

}  // namespace

ibv_srq* CreateSrq(ibv_pd* pd, ibv_srq_init_attr* init_attr) {
  constexpr const char* kVerb = "ibv_create_srq";
  if (const int error = CheckPd(kVerb, pd, pd, nullptr)) return Null(error);
  if (init_attr == nullptr) return Null(Refuse(EINVAL, kVerb, pd, "no attributes"));
  return Create(kVerb, FromVerbs(pd), init_attr->srq_context, &init_attr->attr);
}

ibv_srq* CreateSrqEx(ibv_context* public_context, ibv_srq_init_attr_ex* attr) {
  constexpr const char* kVerb = "ibv_create_srq_ex";
  Context* context;
  if (const int error = FindContext(public_context, &context)) {
    return Null(Refuse(error, kVerb, public_context, "not an open context"));
  }
  if (attr == nullptr) return Null(Refuse(EINVAL, kVerb, public_context, "no attributes"));
  const uint32_t mask = attr->comp_mask;
  const auto has = [mask](uint32_t bits) { return (mask & bits) == bits; };
  if (mask >= IBV_SRQ_INIT_ATTR_RESERVED) {
    return Null(Refuse(EOPNOTSUPP, kVerb, public_context, "unknown comp_mask {:#x}", mask));
  }
  if (!has(IBV_SRQ_INIT_ATTR_PD)) {
    return Null(Refuse(EINVAL, kVerb, public_context, "comp_mask has no PD"));
  }
  const ibv_srq_type type = has(IBV_SRQ_INIT_ATTR_TYPE) ? attr->srq_type : IBV_SRQT_BASIC;
  switch (type) {
    case IBV_SRQT_BASIC:
      if (const int error = CheckPd(kVerb, public_context, attr->pd, context)) return Null(error);
      return Create(kVerb, FromVerbs(attr->pd), attr->srq_context, &attr->attr);
    case IBV_SRQT_XRC:
      if (!has(IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ)) {
        return Null(Refuse(EINVAL, kVerb, public_context, "an XRC SRQ needs an XRCD and a CQ"));
      }
      break;
    case IBV_SRQT_TM:
      if (!has(IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM) || attr->tm_cap.max_num_tags == 0) {
        return Null(Refuse(EINVAL, kVerb, public_context, "tag matching needs a CQ and tags"));
      }
      break;
    default:
      return Null(Refuse(EINVAL, kVerb, public_context, "unknown type {}", int(type)));
  }
  return Null(Refuse(EOPNOTSUPP, kVerb, public_context, "type {} is not supported", int(type)));
}

int ModifySrq(ibv_srq* public_srq, ibv_srq_attr* attr, int mask) {
  constexpr const char* kVerb = "ibv_modify_srq";
  Srq* srq = FromVerbs(public_srq);
  if (const int error = CheckObject(srq)) return Refuse(error, kVerb, public_srq, "not an SRQ");
  if ((mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) != 0) {
    return Refuse(EINVAL, kVerb, public_srq, "unknown mask {:#x}", mask);
  }
  if (mask == 0) return 0;
  if (srq->failed.load()) return Refuse(EINVAL, kVerb, public_srq, kHasFailed);
  if (attr == nullptr) return Refuse(EINVAL, kVerb, public_srq, "no attributes");
  if ((mask & IBV_SRQ_MAX_WR) != 0 && !srq->context->profile.features.srq_resize) {
    return Refuse(EINVAL, kVerb, public_srq, "the device cannot resize SRQs");
  }
  return Modify(srq, *attr, mask);
}

int QuerySrq(ibv_srq* public_srq, ibv_srq_attr* attr) {
  Srq* srq = FromVerbs(public_srq);
  if (const int error = CheckObject(srq)) {
    return Refuse(error, "ibv_query_srq", public_srq, "not an SRQ");
  }
  if (attr == nullptr) return Refuse(EINVAL, "ibv_query_srq", public_srq, "no attributes");
  if (srq->failed.load()) return Refuse(EINVAL, "ibv_query_srq", public_srq, kHasFailed);
  uint32_t limit;
  if (const int error = srq->context->device->QuerySrqLimit(srq->number, &limit)) return error;
  std::lock_guard guard(srq->lock);
  *attr = {.max_wr = srq->query_max_wr, .max_sge = srq->max_sge, .srq_limit = limit};
  return 0;
}

int DestroySrq(ibv_srq* public_srq) {
  Srq* srq = FromVerbs(public_srq);
  if (const int error = CheckObject(srq)) {
    return Refuse(error, "ibv_destroy_srq", public_srq, "not an SRQ");
  }
  Context* context = srq->context;
  if (const int error = context->device->DestroySrq(srq->number)) {
    return Refuse(error, "ibv_destroy_srq", public_srq, "a queue pair uses it");
  }
  context->srqs.Set(srq->number, nullptr);
  context->async_events.Drop(srq);
  AwaitAcknowledgements(&srq->verbs, srq->verbs.events_completed, srq->events_taken);
  Retire(srq);
  return 0;
}

int GetSrqNum(ibv_srq* public_srq, uint32_t* number) {
  Srq* srq = FromVerbs(public_srq);
  if (const int error = CheckObject(srq)) {
    return Refuse(error, "ibv_get_srq_num", public_srq, "not an SRQ");
  }
  *number = srq->number;
  return 0;
}

}  // namespace simhca::driver
