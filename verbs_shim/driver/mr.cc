#include "verbs_shim/driver/mr.h"

#include <memory>

#include "sim/memory/access.h"
#include "verbs_shim/driver/driver.h"
#include "verbs_shim/driver/log.h"
#include "verbs_shim/driver/mapped_memory.h"
#include "verbs_shim/driver/result.h"

// man ibv_reg_mr, ibv_rereg_mr, ibv_dereg_mr.

namespace simhca::driver {

namespace {

constexpr uint64_t kPageMask = 4095;

constexpr uint32_t kKnownAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
    IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND |
    IBV_ACCESS_HUGETLB | uint32_t{IBV_ACCESS_OPTIONAL_RANGE};
// Hints without an effect here.
constexpr uint32_t kIgnoredAccess = IBV_ACCESS_HUGETLB | uint32_t{IBV_ACCESS_OPTIONAL_RANGE};

struct Range {
  void* address;
  size_t length;
  uint64_t iova;
};

int CheckAccess(const char* verb, const void* object, uint32_t access) {
  if ((access & ~kKnownAccess) != 0) {
    return Refuse(EINVAL, verb, object, "unknown access bits {:#x}", access & ~kKnownAccess);
  }
  if ((access & IBV_ACCESS_ON_DEMAND) != 0) {
    return Refuse(EOPNOTSUPP, verb, object, "on-demand paging is not supported");
  }
  const uint32_t remote_change = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  if ((access & remote_change) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0) {
    return Refuse(EINVAL, verb, object, "remote write or atomic without local write");
  }
  return 0;
}

int CheckRange(const char* verb, const void* object, const DeviceProfile& profile,
               const Range& range, uint32_t access) {
  const auto start = reinterpret_cast<uintptr_t>(range.address);
  if (range.length == 0 || start + range.length < start) {
    return Refuse(EINVAL, verb, object, "length {} from {}", range.length, range.address);
  }
  if (range.length > profile.limits.max_mr_size) {
    return Refuse(EINVAL, verb, object, "length {} is above max_mr_size {}", range.length,
                  profile.limits.max_mr_size);
  }
  if (!IsMapped(range.address, range.length, (access & IBV_ACCESS_LOCAL_WRITE) != 0)) {
    return Refuse(EFAULT, verb, object, "{} bytes from {} are not all mapped for this access",
                  range.length, range.address);
  }
  return 0;
}

int Register(const Context& context, const Pd& pd, const Range& range, uint32_t access,
             uint32_t* key) {
  const RegisterRegionCommand command{.pd = pd.number,
                                      .address = static_cast<std::byte*>(range.address),
                                      .length = range.length,
                                      .iova = range.iova,
                                      .access = access & ~kIgnoredAccess};
  return context.device->RegisterRegion(command, key);
}

void Take(Mr* mr, Pd* pd, const Range& range, uint32_t access, uint32_t key) {
  mr->pd = pd;
  mr->address = static_cast<std::byte*>(range.address);
  mr->length = range.length;
  mr->iova = range.iova;
  mr->access = access;
  mr->key = key;
  mr->header.handle = key;
  mr->verbs = {.context = mr->context->Public(),
               .pd = &pd->verbs,
               .addr = range.address,
               .length = range.length,
               .handle = key,
               .lkey = key,
               .rkey = key};
}

ibv_mr* Create(const char* verb, ibv_pd* public_pd, Range range, uint32_t access) {
  Pd* pd = FromVerbs(public_pd);
  if (const int error = CheckObject(pd)) {
    return Null(Refuse(error, verb, public_pd, "not a protection domain"));
  }
  Context* context = pd->context;
  if (const int error = CheckAccess(verb, public_pd, access)) return Null(error);
  if ((access & IBV_ACCESS_ZERO_BASED) != 0) {
    range.iova = 0;
  } else if (((reinterpret_cast<uintptr_t>(range.address) ^ range.iova) & kPageMask) != 0) {
    return Null(Refuse(EINVAL, verb, public_pd, "iova {:#x} and address {} differ in their page",
                       range.iova, range.address));
  }
  if (const int error = CheckRange(verb, public_pd, context->profile, range, access)) {
    return Null(error);
  }
  uint32_t key;
  if (const int error = Register(*context, *pd, range, access, &key)) {
    return Null(Refuse(error, verb, public_pd, "the device refused"));
  }
  auto* mr = new Mr(context);
  Take(mr, pd, range, access, key);
  Objects().Add(mr, Kind::kMr, &mr->header, context);
  return &mr->verbs;
}

}  // namespace

ibv_mr* RegMr(ibv_pd* pd, void* addr, size_t length, int access) {
  return Create("ibv_reg_mr", pd, {addr, length, reinterpret_cast<uintptr_t>(addr)},
                static_cast<uint32_t>(access));
}

ibv_mr* RegMrIova(ibv_pd* pd, void* addr, size_t length, uint64_t iova, int access) {
  return Create("ibv_reg_mr_iova", pd, {addr, length, iova}, static_cast<uint32_t>(access));
}

ibv_mr* RegMrIova2(ibv_pd* pd, void* addr, size_t length, uint64_t iova, unsigned int access) {
  return Create("ibv_reg_mr_iova2", pd, {addr, length, iova}, access);
}

ibv_mr* RegDmabufMr(ibv_pd* pd, uint64_t, size_t, uint64_t, int, int) {
  return Null(Refuse(EOPNOTSUPP, "ibv_reg_dmabuf_mr", pd, "dma-buf is not supported"));
}

int ReregMr(ibv_mr* public_mr, int flags, ibv_pd* public_pd, void* addr, size_t length,
            int access) {
  constexpr const char* kVerb = "ibv_rereg_mr";
  const auto refused = [](int error) {
    errno = error;
    return static_cast<int>(IBV_REREG_MR_ERR_INPUT);
  };
  // What libibverbs leaves to the kernel.  The region is as it was, but the code tells a program
  // that it may not be used.
  const auto failed = [](int error) {
    errno = error;
    return static_cast<int>(IBV_REREG_MR_ERR_CMD);
  };
  Mr* mr = FromVerbs(public_mr);
  if (const int error = CheckObject(mr)) {
    return refused(Refuse(error, kVerb, public_mr, "not a memory region"));
  }
  const auto has = [flags](int bit) { return (flags & bit) != 0; };
  if ((flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0) {
    return refused(Refuse(EINVAL, kVerb, public_mr, "flags {:#x}", flags));
  }
  if (has(IBV_REREG_MR_CHANGE_TRANSLATION) && (addr == nullptr || length == 0)) {
    return refused(Refuse(EINVAL, kVerb, public_mr, "new translation without a range"));
  }
  if (access != 0 && !has(IBV_REREG_MR_CHANGE_ACCESS)) {
    return refused(Refuse(EINVAL, kVerb, public_mr, "access given but not to be changed"));
  }
  if (flags == 0) return failed(Refuse(EINVAL, kVerb, public_mr, "nothing is to be changed"));
  Context* context = mr->context;
  Pd* pd = has(IBV_REREG_MR_CHANGE_PD) ? FromVerbs(public_pd) : mr->pd;
  if (const int error = CheckObject(pd)) {
    return refused(
        Refuse(error, kVerb, public_mr, "pd {} is not one", static_cast<const void*>(public_pd)));
  }
  if (pd->context != context) {
    return failed(Refuse(ENOENT, kVerb, public_mr, "the PD is of another context"));
  }
  const uint32_t new_access =
      has(IBV_REREG_MR_CHANGE_ACCESS) ? static_cast<uint32_t>(access) : mr->access;
  Range range{mr->address, mr->length, mr->iova};
  if (has(IBV_REREG_MR_CHANGE_TRANSLATION)) {
    range = {addr, length, reinterpret_cast<uintptr_t>(addr)};
    if ((new_access & IBV_ACCESS_ZERO_BASED) != 0) range.iova = 0;
  }
  if (const int error = CheckAccess(kVerb, public_mr, new_access)) return failed(error);
  if (const int error = CheckRange(kVerb, public_mr, context->profile, range, new_access)) {
    return failed(error);
  }
  // The new region first: a refusal leaves the old one as it was.
  uint32_t key;
  if (const int error = Register(*context, *pd, range, new_access, &key)) {
    return failed(Refuse(error, kVerb, public_mr, "the device refused"));
  }
  if (const int error = context->device->DeregisterRegion(mr->key)) {
    context->device->DeregisterRegion(key);
    return failed(Refuse(error, kVerb, public_mr, "the region is in use"));
  }
  Take(mr, pd, range, new_access, key);
  return 0;
}

int DeregMr(ibv_mr* public_mr) {
  Mr* mr = FromVerbs(public_mr);
  if (const int error = CheckObject(mr)) {
    return Refuse(error, "ibv_dereg_mr", public_mr, "not a memory region");
  }
  if (const int error = mr->context->device->DeregisterRegion(mr->key)) {
    return Refuse(error, "ibv_dereg_mr", public_mr, "still in use");
  }
  Retire(mr);
  return 0;
}

}  // namespace simhca::driver
