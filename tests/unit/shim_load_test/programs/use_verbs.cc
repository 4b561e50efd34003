// A plain verbs program: lists the devices, opens each and allocates a protection domain; with the
// argument `null-handles` it then passes null handles, which the real library does not survive.
// Prints one line per finding for the test that runs it.

#include <dlfcn.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace {

void PrintOrigin() {
  Dl_info info;
  if (dladdr(dlsym(RTLD_DEFAULT, "ibv_get_device_list"), &info) == 0) return;
  const char* slash = std::strrchr(info.dli_fname, '/');
  std::printf("verbs come from %s\n", slash == nullptr ? info.dli_fname : slash + 1);
}

void UseDevice(ibv_device* device) {
  const char* name = ibv_get_device_name(device);
  std::printf("device %s\n", name);
  ibv_context* context = ibv_open_device(device);
  if (context == nullptr) {
    std::printf("cannot open %s: %s\n", name, std::strerror(errno));
    return;
  }
  ibv_pd* pd = ibv_alloc_pd(context);
  std::printf("%s alloc_pd %s\n", name, pd != nullptr ? "ok" : std::strerror(errno));
  if (pd != nullptr) std::printf("%s dealloc_pd %d\n", name, ibv_dealloc_pd(pd));
  std::printf("%s close_device %d\n", name, ibv_close_device(context));
}

void PassNullHandles() {
  errno = 0;
  const bool no_pd = ibv_alloc_pd(nullptr) == nullptr && errno == EINVAL;
  errno = 0;
  const bool no_gid = ibv_query_gid(nullptr, 1, 0, nullptr) == -1 && errno == EINVAL;
  const bool no_qp = ibv_destroy_qp(nullptr) == EINVAL;
  const bool no_srq = ibv_modify_srq(nullptr, nullptr, 0) == EINVAL;
  ibv_ack_cq_events(nullptr, 1);
  ibv_ack_async_event(nullptr);
  ibv_free_device_list(nullptr);
  std::printf("null handles %s\n", no_pd && no_gid && no_qp && no_srq ? "refused" : "ACCEPTED");
}

}  // namespace

int main(int argc, char** argv) {
  PrintOrigin();
  int count = -1;
  errno = 0;
  ibv_device** list = ibv_get_device_list(&count);
  if (list == nullptr) {
    std::printf("no list: errno %d, count %d\n", errno, count);
  } else {
    std::printf("count %d, terminator %s\n", count, list[count] == nullptr ? "null" : "MISSING");
    for (int i = 0; i < count; ++i) UseDevice(list[i]);
    ibv_free_device_list(list);
  }
  if (argc > 1 && std::strcmp(argv[1], "null-handles") == 0) PassNullHandles();
  return 0;
}
