// Carries its own C++ runtime and uses it, in two threads, around verbs calls: the runtime inside
// the shim must not get in its way.

#include <infiniband/verbs.h>

#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

void Throw(int depth) {
  const std::string text = "depth " + std::to_string(depth);
  if (depth == 0) throw std::runtime_error(text);
  Throw(depth - 1);
}

int CountCaught() {
  int caught = 0;
  for (int i = 0; i < 100; ++i) {
    int count = 0;
    ibv_device** list = ibv_get_device_list(&count);
    try {
      Throw(i % 10);
    } catch (const std::exception& error) {
      caught += error.what() == std::string("depth 0");
    }
    ibv_free_device_list(list);
  }
  return caught;
}

}  // namespace

int main() {
  int in_thread = 0;
  std::thread thread([&in_thread] { in_thread = CountCaught(); });
  const int here = CountCaught();
  thread.join();
  std::printf("caught %d and %d\n", here, in_thread);
  return 0;
}
