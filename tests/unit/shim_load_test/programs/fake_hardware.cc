// Stands in for the machine's libibverbs with one device, `fake0`, so that routes to hardware can
// be tried where there is none.  It exports only what use_verbs.cc calls.

#include <infiniband/verbs.h>

#include <cstdio>
#include <cstring>

namespace {

ibv_device* Device() {
  static ibv_device device = [] {
    ibv_device fake{};
    std::strcpy(fake.name, "fake0");
    return fake;
  }();
  return &device;
}

ibv_context fake_context{};
ibv_pd fake_pd{};

}  // namespace

extern "C" {

ibv_device** ibv_get_device_list(int* count) {
  if (count != nullptr) *count = 1;
  return new ibv_device* [2] { Device(), nullptr };
}

void ibv_free_device_list(ibv_device** list) {
  std::puts("fake list freed");
  delete[] list;
}

const char* ibv_get_device_name(ibv_device* device) { return device->name; }

ibv_context* ibv_open_device(ibv_device* device) {
  fake_context.device = device;
  return &fake_context;
}

int ibv_close_device(ibv_context* context) { return context == &fake_context ? 0 : -1; }

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  fake_pd.context = context;
  return &fake_pd;
}

int ibv_dealloc_pd(ibv_pd* pd) { return pd == &fake_pd ? 0 : 1; }

}  // extern "C"
