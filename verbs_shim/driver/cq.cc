#include "verbs_shim/driver/cq.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <mutex>

#include "verbs_shim/driver/acknowledged.h"
#include "verbs_shim/driver/channel.h"
#include "verbs_shim/driver/driver.h"
#include "verbs_shim/driver/log.h"
#include "verbs_shim/driver/result.h"

// man ibv_create_cq, ibv_create_cq_ex, ibv_resize_cq, ibv_destroy_cq.

namespace simhca::driver {

namespace {

constexpr uint64_t kClockWcFlags =
    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
constexpr uint64_t kSupportedWcFlags = uint64_t{IBV_WC_STANDARD_FLAGS} | kClockWcFlags;
constexpr uint32_t kSupportedFlags =
    IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;

// Sizes that a request for `cqe` entries leads to.
struct Size {
  uint32_t entries;  // of the ring
  int cqe;           // what the application is told
};

Size SizeFor(const DeviceProfile& profile, uint32_t cqe) {
  if (profile.features.rounding == Rounding::kMlx5) {
    const auto entries = static_cast<uint32_t>(std::bit_ceil(uint64_t{cqe} + 1));
    return {entries, static_cast<int>(entries - 1)};
  }
  return {static_cast<uint32_t>(std::bit_ceil(cqe)), static_cast<int>(cqe)};
}

// A ring whose entries all belong to the device.
RingMemory MakeRing(uint32_t entries) {
  RingMemory memory(size_t{entries} * sizeof(mlx5::Cqe));
  if (memory.data() == nullptr) return memory;
  auto* ring = reinterpret_cast<mlx5::Cqe*>(memory.data());
  for (uint32_t i = 0; i < entries; ++i) {
    ring[i].opcode_owner = mlx5::Cqe::OpcodeOwner(mlx5::CqeOpcode::kInvalid, false, 0);
  }
  return memory;
}

struct Request {
  const char* verb;
  uint32_t cqe;
  uint32_t comp_vector;
  ibv_comp_channel* channel;
  void* cq_context;
  uint64_t wc_flags = 0;
  uint32_t flags = 0;
};

int CheckRequest(const Context& context, const Request& request) {
  const DeviceProfile::Limits& limits = context.profile.limits;
  const void* object = &context.verbs.context;
  if (request.cqe < 1 || request.cqe > limits.max_cqe) {
    return Refuse(EINVAL, request.verb, object, "cqe {} is not in 1..{}", int(request.cqe),
                  limits.max_cqe);
  }
  if (request.comp_vector >= limits.num_comp_vectors) {
    return Refuse(EINVAL, request.verb, object, "comp_vector {} is not below {}",
                  int(request.comp_vector), limits.num_comp_vectors);
  }
  if (request.channel == nullptr) return 0;
  const Channel* channel = FromVerbs(request.channel);
  if (const int error = CheckChannel(channel)) {
    return Refuse(error, request.verb, object, "channel {} is not one",
                  static_cast<const void*>(channel));
  }
  if (channel->context != &context) {
    return Refuse(ENOENT, request.verb, object, "channel {} is of another context",
                  static_cast<const void*>(channel));
  }
  return 0;
}

// Makes the queue; returns 0 or a positive errno.
int Create(Context* context, const Request& request, Cq** created) {
  if (const int error = CheckRequest(*context, request)) return error;
  const Size size = SizeFor(context->profile, request.cqe);
  auto cq = std::make_unique<Cq>(context);
  cq->memory = MakeRing(size.entries);
  if (cq->memory.data() == nullptr || cq->record.data() == nullptr) return ENOMEM;
  cq->ring = reinterpret_cast<mlx5::Cqe*>(cq->memory.data());
  cq->entries = size.entries;
  cq->wc_flags = request.wc_flags;
  cq->single_threaded = (request.flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) != 0;

  const CreateCqCommand command{.context = context->number,
                                .ring = cq->memory.data(),
                                .entries = size.entries,
                                .doorbell_record = cq->record.data(),
                                .timestamps = (request.wc_flags & kClockWcFlags) != 0};
  if (const int error = context->device->CreateCq(command, &cq->number)) {
    return Refuse(error, request.verb, context->Public(), "the device refused");
  }
  if (!context->cqs.Set(cq->number, cq.get())) {
    context->device->DestroyCq(cq->number);
    return ENOMEM;
  }
  cq->header.handle = cq->number;
  ibv_cq_ex& verbs = cq->verbs;
  verbs.context = context->Public();
  verbs.channel = request.channel;
  verbs.cq_context = request.cq_context;
  verbs.handle = cq->header.handle;
  verbs.cqe = size.cqe;
  InitAcknowledgements(&verbs);
  if (request.channel != nullptr) {
    cq->channel = FromVerbs(request.channel);
    cq->channel->verbs.refcnt = cq->channel->cqs.fetch_add(1) + 1;
  }
  FillPollFunctions(cq.get());
  Objects().Add(cq.get(), Kind::kCq, &cq->header, context);
  *created = cq.release();
  return 0;
}

uint32_t CountUnpolled(const Cq& cq) {
  const uint32_t first = cq.consumer.load(std::memory_order_relaxed);
  uint32_t count = 0;
  for (; count < cq.entries; ++count) {
    const uint32_t index = first + count;
    const uint8_t owner =
        __atomic_load_n(&cq.ring[index & (cq.entries - 1)].opcode_owner, __ATOMIC_ACQUIRE);
    if (owner >> 4 == static_cast<uint8_t>(mlx5::CqeOpcode::kInvalid) ||
        (owner & 1) != mlx5::Cqe::OwnerBit(index, cq.entries)) {
      break;
    }
  }
  return count;
}

}  // namespace

ibv_cq* CreateCq(ibv_context* public_context, int cqe, void* cq_context, ibv_comp_channel* channel,
                 int comp_vector) {
  Context* context;
  if (const int error = FindContext(public_context, &context)) {
    return Null(Refuse(error, "ibv_create_cq", public_context, "not an open context"));
  }
  const Request request{.verb = "ibv_create_cq",
                        .cqe = cqe < 1 ? 0 : static_cast<uint32_t>(cqe),
                        .comp_vector = static_cast<uint32_t>(comp_vector),
                        .channel = channel,
                        .cq_context = cq_context};
  Cq* cq;
  if (const int error = Create(context, request, &cq)) return Null(error);
  return ibv_cq_ex_to_cq(&cq->verbs);
}

ibv_cq_ex* CreateCqEx(ibv_context* public_context, ibv_cq_init_attr_ex* attr) {
  constexpr const char* kVerb = "ibv_create_cq_ex";
  Context* context;
  if (const int error = FindContext(public_context, &context)) {
    return Null(Refuse(error, kVerb, public_context, "not an open context"));
  }
  if (attr == nullptr) return Null(Refuse(EINVAL, kVerb, public_context, "no attributes"));
  if ((attr->comp_mask & ~uint32_t{IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD}) != 0) {
    return Null(Refuse(EINVAL, kVerb, public_context, "unknown comp_mask {:#x}", attr->comp_mask));
  }
  if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0) {
    return Null(Refuse(EOPNOTSUPP, kVerb, public_context, "parent domains are not supported"));
  }
  const uint32_t flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;
  if ((flags & ~kSupportedFlags) != 0) {
    return Null(Refuse(EINVAL, kVerb, public_context, "unknown flags {:#x}", flags));
  }
  if ((attr->wc_flags & ~kSupportedWcFlags) != 0) {
    return Null(Refuse(EOPNOTSUPP, kVerb, public_context, "wc_flags {:#x} are not supported",
                       attr->wc_flags & ~kSupportedWcFlags));
  }
  const Request request{.verb = kVerb,
                        .cqe = attr->cqe,
                        .comp_vector = attr->comp_vector,
                        .channel = attr->channel,
                        .cq_context = attr->cq_context,
                        .wc_flags = attr->wc_flags,
                        .flags = flags};
  Cq* cq;
  if (const int error = Create(context, request, &cq)) return Null(error);
  return &cq->verbs;
}

int ResizeCq(ibv_cq* public_cq, int cqe) {
  constexpr const char* kVerb = "ibv_resize_cq";
  Cq* cq = FromVerbs(public_cq);
  if (const int error = CheckObject(cq)) {
    return Refuse(error, kVerb, public_cq, "not a completion queue");
  }
  const uint32_t max_cqe = cq->context->profile.limits.max_cqe;
  if (cqe < 1 || static_cast<uint32_t>(cqe) > max_cqe) {
    return Refuse(EINVAL, kVerb, public_cq, "cqe {} is not in 1..{}", cqe, max_cqe);
  }
  const Size size = SizeFor(cq->context->profile, static_cast<uint32_t>(cqe));
  RingMemory memory = MakeRing(size.entries);
  if (memory.data() == nullptr) return ENOMEM;

  std::lock_guard guard(cq->lock);
  const uint32_t unpolled = CountUnpolled(*cq);
  if (unpolled > static_cast<uint32_t>(size.cqe)) {
    return Refuse(EINVAL, kVerb, public_cq, "{} completions are waiting", unpolled);
  }
  if (const int error = cq->context->device->ResizeCq(cq->number, memory.data(), size.entries)) {
    return Refuse(error, kVerb, public_cq, "the device refused");
  }
  cq->memory = std::move(memory);
  cq->ring = reinterpret_cast<mlx5::Cqe*>(cq->memory.data());
  cq->entries = size.entries;
  cq->verbs.cqe = size.cqe;
  return 0;
}

int ModifyCq(ibv_cq* public_cq, ibv_modify_cq_attr*) {
  return Refuse(EOPNOTSUPP, "ibv_modify_cq", public_cq, "moderation is not supported");
}

int DestroyCq(ibv_cq* public_cq) {
  Cq* cq = FromVerbs(public_cq);
  if (const int error = CheckObject(cq)) {
    return Refuse(error, "ibv_destroy_cq", public_cq, "not a completion queue");
  }
  Context* context = cq->context;
  if (const int error = context->device->DestroyCq(cq->number)) {
    return Refuse(error, "ibv_destroy_cq", public_cq, "still in use");
  }
  context->cqs.Set(cq->number, nullptr);
  if (cq->channel != nullptr) cq->channel->events.Drop(cq);
  context->async_events.Drop(cq);
  AwaitAcknowledgements(&cq->verbs, cq->verbs.comp_events_completed, cq->completion_events_taken);
  AwaitAcknowledgements(&cq->verbs, cq->verbs.async_events_completed, cq->async_events_taken);
  if (cq->channel != nullptr) cq->channel->verbs.refcnt = cq->channel->cqs.fetch_sub(1) - 1;
  Retire(cq);
  return 0;
}

}  // namespace simhca::driver
