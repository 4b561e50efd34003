// Ends as pthread_exit(3) allows: the main thread first, another one later.  The process ends with
// the last of its threads, whatever a library has started.

#include <infiniband/verbs.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdio>

int main() {
  ibv_device** list = ibv_get_device_list(nullptr);
  if (list == nullptr || list[0] == nullptr || ibv_open_device(list[0]) == nullptr) return 1;
  ibv_free_device_list(list);
  pthread_t worker;
  const auto work = [](void*) -> void* {
    usleep(100'000);
    std::puts("worker done");
    std::fflush(stdout);
    return nullptr;
  };
  if (pthread_create(&worker, nullptr, work, nullptr) != 0) return 1;
  pthread_detach(worker);
  pthread_exit(nullptr);
}
