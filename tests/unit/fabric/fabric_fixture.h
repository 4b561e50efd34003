#ifndef SIMHCA_TESTS_UNIT_FABRIC_FABRIC_FIXTURE_H_
#define SIMHCA_TESTS_UNIT_FABRIC_FABRIC_FIXTURE_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <string>

#include "sim/fabric/fabric.h"
#include "sim/fabric/fabric_list.h"
#include "sim/fabric/registry.h"
#include "tests/unit/fabric/peer_process.h"
#include "tests/unit/fabric/recorder.h"

namespace simhca {

// Each test has a fabric of its own.
class FabricFixture : public testing::Test {
 protected:
  using Peer = Fabric::Peer;

  ~FabricFixture() override {
    Registry::Remove("/dev/shm", name);
    EXPECT_FALSE(FilesExist());
  }

  int Join(std::unique_ptr<Fabric>* fabric, bool exclusive = false) {
    Fabric::Options options;
    options.name = name;
    options.exclusive = exclusive;
    return Fabric::Join(options, fabric, &error);
  }

  std::unique_ptr<Fabric> MustJoin() {
    std::unique_ptr<Fabric> fabric;
    EXPECT_EQ(Join(&fabric), 0) << error;
    return fabric;
  }

  bool FilesExist() const {
    return access(FabricPath("/dev/shm", name).c_str(), F_OK) == 0 ||
           access(FabricLockPath("/dev/shm", name).c_str(), F_OK) == 0;
  }

  FabricInfo Info() const {
    for (const FabricInfo& info : ListFabrics()) {
      if (info.name == name) return info;
    }
    return {};
  }

  // Repeats `step` until it is true, for at most 10 seconds.
  template <typename Step>
  static bool Eventually(Step step) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!step()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      usleep(1000);
    }
    return true;
  }

  static Link::Status Send(Fabric& fabric, uint32_t destination, uint32_t length = 20) {
    const Link::Reservation room = fabric.link().Reserve(destination, length);
    if (room.status == Link::Status::kReady) {
      memset(room.bytes, 0x5a, length);
      fabric.link().Commit({}, 0);
      fabric.link().Flush();
    }
    return room.status;
  }

  static uint32_t ReadNumber(PeerProcess& peer) {
    return static_cast<uint32_t>(std::strtoul(peer.ReadLine().c_str(), nullptr, 10));
  }

  const std::string name = ("test-" + std::to_string(getpid()) + "-" +
                            testing::UnitTest::GetInstance()->current_test_info()->name())
                               .substr(0, 64);
  std::string error;
};

}  // namespace simhca

#endif  // SIMHCA_TESTS_UNIT_FABRIC_FABRIC_FIXTURE_H_
