#include "verbs_shim/driver/context.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "sim/timing/time.h"
#include "verbs_shim/driver/channel.h"
#include "verbs_shim/driver/cq.h"
#include "verbs_shim/driver/device_query.h"
#include "verbs_shim/driver/driver.h"
#include "verbs_shim/driver/log.h"
#include "verbs_shim/driver/mr.h"
#include "verbs_shim/driver/pd.h"
#include "verbs_shim/driver/qp.h"
#include "verbs_shim/driver/result.h"
#include "verbs_shim/driver/srq.h"
#include "verbs_shim/driver/unsupported.h"

// man ibv_open_device, ibv_close_device, ibv_import_device.

namespace simhca::driver {

namespace {

// What the file behind cmd_fd holds: it names the context to whoever the descriptor is passed to.
struct CommandFile {
  char magic[16];
  int32_t process;
  uint32_t device;
  uint32_t context;
  char fabric[64];
};
constexpr char kMagic[16] = "simhca context";

int MakeCommandFile(const Context& context) {
  CommandFile file{};
  std::memcpy(file.magic, kMagic, sizeof(kMagic));
  file.process = getpid();
  file.device = static_cast<uint32_t>(context.listed.index);
  file.context = context.number;
  Process::Get().fabric().copy(file.fabric, sizeof(file.fabric) - 1);
  const int fd = static_cast<int>(syscall(SYS_memfd_create, "simhca-context", MFD_CLOEXEC));
  if (fd < 0) return -1;
  if (syscall(SYS_write, fd, &file, sizeof(file)) != sizeof(file)) {
    syscall(SYS_close, fd);
    return -1;
  }
  return fd;
}

int64_t RealtimeNanoseconds() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void FillOperations(verbs_context* verbs) {
  ibv_context_ops& ops = verbs->context.ops;
  ops._compat_query_device = QueryDevice;
  ops._compat_query_port = QueryPort;
  ops.alloc_mw = unsupported::AllocMw;
  ops.bind_mw = unsupported::BindMw;
  ops.dealloc_mw = unsupported::DeallocMw;
  ops.poll_cq = PollCq;
  ops.req_notify_cq = ReqNotifyCq;
  ops.post_srq_recv = PostSrqRecv;
  ops.post_send = PostSend;
  ops.post_recv = PostRecv;

  // What is left null answers EOPNOTSUPP in the header's inline functions.
  verbs->query_port = QueryPortEx;
  verbs->query_rt_values = QueryRtValues;
  verbs->create_cq_ex = CreateCqEx;
  verbs->modify_cq = ModifyCq;
  verbs->query_device_ex = QueryDeviceEx;
  verbs->create_qp_ex = CreateQpEx;
  verbs->get_srq_num = GetSrqNum;
  verbs->create_srq_ex = CreateSrqEx;
  verbs->post_srq_ops = unsupported::PostSrqOps;
  verbs->close_xrcd = unsupported::CloseXrcd;  // called without a test for null
  verbs->sz = sizeof(verbs_context);
  verbs->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
}

// Ends the life of what the application has left behind: the device has already freed it.  CQs go
// first: who polls one that is gone looks at no queue any more.
void BuryObjectsOf(Context* context) {
  std::vector<ObjectRegistry::Found> left = Objects().ObjectsOf(context);
  std::stable_partition(left.begin(), left.end(),
                        [](const ObjectRegistry::Found& found) { return found.kind == Kind::kCq; });
  for (const ObjectRegistry::Found& found : left) {
    switch (found.kind) {
      case Kind::kPd:
        Retire(static_cast<Pd*>(found.object));
        break;
      case Kind::kMr:
        Retire(static_cast<Mr*>(found.object));
        break;
      case Kind::kCq:
        Retire(static_cast<Cq*>(found.object));
        break;
      case Kind::kSrq:
        Retire(static_cast<Srq*>(found.object));
        break;
      case Kind::kQp:
        Retire(static_cast<Qp*>(found.object));
        break;
      case Kind::kChannel: {
        auto* channel = static_cast<Channel*>(found.object);
        channel->events.Close();
        Retire(channel);
        break;
      }
      case Kind::kDevice:
      case Kind::kContext:
        break;
    }
  }
}

}  // namespace

int FindContext(ibv_context* public_context, Context** context) {
  if (public_context == nullptr || !Objects().IsLive(public_context, Kind::kContext)) return EINVAL;
  *context = Context::From(public_context);
  return 0;
}

uint64_t ReadRawClock(const Context& context) {
  return ToTicks(context.device->Now(), context.profile.limits.hca_core_clock_khz);
}

uint64_t WallclockOf(const Context& context, uint64_t ticks) {
  const uint64_t khz = context.profile.limits.hca_core_clock_khz;
  const unsigned __int128 nanoseconds = static_cast<unsigned __int128>(ticks) * 1'000'000 / khz;
  return static_cast<uint64_t>(nanoseconds) + static_cast<uint64_t>(context.wallclock_epoch);
}

ibv_context* OpenDevice(ibv_device* public_device) {
  constexpr const char* kVerb = "ibv_open_device";
  if (public_device == nullptr || !Objects().IsLive(public_device, Kind::kDevice)) {
    return Null(Refuse(EINVAL, kVerb, public_device, "not a device"));
  }
  const auto& listed = *reinterpret_cast<ListedDevice*>(public_device);
  Device* device;
  if (const int error = Process::Get().Open(listed, &device)) return Null(error);

  auto context = std::make_unique<Context>(listed, device);
  if (context->interrupts.ring() == nullptr) return Null(ENOMEM);
  if (const int error = context->async_events.Open()) return Null(error);
  const OpenContextCommand command{.handler = &context->interrupts,
                                   .event_ring = context->interrupts.ring(),
                                   .event_entries = Interrupts::kEntries};
  if (const int error = device->OpenContext(command, &context->number)) {
    return Null(Refuse(error, kVerb, public_device, "the device refused"));
  }
  context->command_file = MakeCommandFile(*context);
  if (context->command_file < 0) {
    const int error = errno;
    device->CloseContext(context->number);
    return Null(Refuse(error, kVerb, public_device, "no file descriptor"));
  }
  if (!context->virtual_time) {
    context->wallclock_epoch = RealtimeNanoseconds() - ToNanoseconds(device->Now());
  }
  ibv_context& verbs = context->verbs.context;
  verbs.device = public_device;
  verbs.cmd_fd = context->command_file;
  verbs.async_fd = context->async_events.fd();
  verbs.num_comp_vectors = static_cast<int>(context->profile.limits.num_comp_vectors);
  pthread_mutex_init(&verbs.mutex, nullptr);
  FillOperations(&context->verbs);
  Objects().Add(&verbs, Kind::kContext, &context->header, context.get());
  return &context.release()->verbs.context;
}

int CloseDevice(ibv_context* public_context) {
  Context* context;
  if (const int error = FindContext(public_context, &context)) {
    return Refuse(error, "ibv_close_device", public_context, "not an open context");
  }
  context->device->CloseContext(context->number);
  BuryObjectsOf(context);
  context->async_events.Close();
  syscall(SYS_close, context->command_file);
  Objects().Retire(public_context, context,
                   [](void* memory) { delete static_cast<Context*>(memory); });
  return 0;
}

bool OwnsCommandFd(int cmd_fd) {
  CommandFile file;
  return syscall(SYS_pread64, cmd_fd, &file, sizeof(file), 0) == sizeof(file) &&
         std::memcmp(file.magic, kMagic, sizeof(kMagic)) == 0;
}

}  // namespace simhca::driver
