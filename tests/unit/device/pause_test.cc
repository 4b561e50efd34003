// A process that was stopped for longer than its own timers run.

#include <gtest/gtest.h>

#include "tests/unit/device/rig.h"

namespace simhca {
namespace {

TEST(Pause, OwnPauseIsNotTakenForTheSilenceOfThePeer) {
  Rig rig(std::make_unique<LoopbackFabric>(), Rig::GenericProfile(), ClockMode::kWall);
  const auto send_cq = rig.MakeCq(), receive_cq = rig.MakeCq();
  const auto a = rig.MakeQp(*send_cq, nullptr), b = rig.MakeQp(*receive_cq, nullptr);
  Rig::QpOptions options;
  options.timeout = 8;  // 1 ms
  options.retry_count = 2;
  rig.Connect(*a, *b, options);
  rig.fabric->lose = [](size_t index, const std::byte*) { return index == 0; };
  rig.PostReceive(*b, rig.address(512 * 1024), 4096, rig.key);
  rig.PostSend(*a, {.address = rig.address(0), .length = 64, .lkey = rig.key});
  // Nothing runs for many times what all retries take.
  const Time end = rig.hca.Now() + 300 * kMillisecond;
  while (rig.hca.Now() < end) {
  }
  const auto cqe = rig.Poll(*send_cq, 20 * kSecond);
  ASSERT_TRUE(cqe);
  EXPECT_EQ(cqe->opcode(), mlx5::CqeOpcode::kRequester);
}

}  // namespace
}  // namespace simhca
