// How virtual time moves with a program that polls in vain, or that calls no verbs at all.

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/unit/device/rig.h"

namespace simhca {
namespace {

constexpr uint64_t kTarget = 512 * 1024;

class VirtualTime : public testing::Test {
 protected:
  void Write(uint32_t length) {
    rig.PostSend(*a, {.opcode = mlx5::WqeOpcode::kRdmaWrite,
                      .address = rig.address(0),
                      .length = length,
                      .lkey = rig.key,
                      .remote_address = rig.address(kTarget),
                      .rkey = rig.key});
  }

  Rig rig;
  std::unique_ptr<Rig::Cq> cq = rig.MakeCq();
  std::unique_ptr<Rig::Qp> a = rig.MakeQp(*cq, nullptr);
  std::unique_ptr<Rig::Qp> b = rig.MakeQp(*cq, nullptr);
};

// A second per idle poll used to bring the clock to the end of time within half a second.
TEST_F(VirtualTime, IsNotUsedUpByAProgramThatPollsInVain) {
  rig.Connect(*a, *b);
  for (int i = 0; i < 12'000'000; ++i) rig.hca.Poll();
  EXPECT_LT(rig.hca.Now(), 1000 * kSecond);
  Write(64);
  const auto cqe = rig.Poll(*cq);
  ASSERT_TRUE(cqe);
  EXPECT_EQ(cqe->opcode(), mlx5::CqeOpcode::kRequester);
}

TEST_F(VirtualTime, MovesOnByTheMillisecondForAProgramThatSleeps) {
  rig.Connect(*a, *b);
  rig.progress.StartThread();
  // 20 ms for the first thing that becomes visible; at that pace all of them would take 1.3 s.
  constexpr uint32_t kWrites = Rig::kSendBlocks - 1;
  for (uint32_t i = 0; i < kWrites; ++i) Write(64);
  usleep(700'000);
  const Time before = rig.hca.Now();
  for (uint32_t i = 0; i < kWrites; ++i) ASSERT_TRUE(rig.Poll(*cq)) << i;
  EXPECT_EQ(rig.hca.Now(), before) << "all were there already";
  rig.progress.StopThread();
}

}  // namespace
}  // namespace simhca
