#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>

#include "sim/device/engine.h"
#include "sim/profiles/profile_loader.h"

namespace simhca {
namespace {

// Belongs to the process; the handler below gives it up in a child, as the driver's does.
Engine* process_engine = nullptr;

void RegisterHandler() {
  pthread_atfork(nullptr, nullptr, [] {
    if (process_engine != nullptr) process_engine->Abandon();
  });
}

std::unique_ptr<Engine> StartEngine(const std::string& fabric) {
  EngineOptions options;
  options.fabric = fabric;
  options.devices.push_back(*FindProfile("generic").profile);
  std::unique_ptr<Engine> engine;
  std::string error;
  EXPECT_EQ(Engine::Start(options, &engine, &error), 0) << error;
  return engine;
}

// The status of `child`, which is killed if it has not ended after 20 s.
int Await(pid_t child) {
  int status = 0;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) kill(child, SIGKILL);
    usleep(1000);
  }
  return status;
}

TEST(EngineFork, ChildAbandonsItsParentsEngineAndStartsItsOwn) {
  const std::string fabric = "fork-" + std::to_string(getpid());
  RegisterHandler();  // as in a program: before the first engine
  std::unique_ptr<Engine> engine = StartEngine(fabric);
  ASSERT_NE(engine, nullptr);
  process_engine = engine.get();

  const pid_t child = fork();
  if (child == 0) {
    [[maybe_unused]] Engine* const left_alone = engine.release();
    std::unique_ptr<Engine> own = StartEngine(fabric);
    uint32_t pd;
    uint32_t context;
    const bool works = own != nullptr && own->device(0).OpenContext({}, &context) == 0 &&
                       own->device(0).AllocPd(context, &pd) == 0;
    _exit(works ? 0 : 1);
  }
  process_engine = nullptr;
  ASSERT_GT(child, 0);
  const int status = Await(child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;

  uint32_t context;
  EXPECT_EQ(engine->device(0).OpenContext({}, &context), 0) << "the parent goes on";
}

}  // namespace
}  // namespace simhca
