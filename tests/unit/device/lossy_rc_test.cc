// RC over a link that loses, repeats, reorders and corrupts packets: whatever happens on the way,
// each message arrives once, whole and in order, and each receive is used once.

#include <gtest/gtest.h>

#include <random>

#include "tests/unit/device/rig.h"

namespace simhca {
namespace {

using mlx5::CqeOpcode;
using mlx5::WqeOpcode;

struct Weather {
  const char* name;
  FaultPlan faults;
};

// How googletest names the parameter in its output.
std::ostream& operator<<(std::ostream& out, const Weather& weather) { return out << weather.name; }

constexpr int kRounds = 150;
constexpr uint32_t kBatch = 4;
constexpr uint32_t kSlotBytes = 16 * 1024;
constexpr uint32_t kFarSide = 512 * 1024;  // offset in the arena of what the responder owns
constexpr uint32_t kLongest = 9000;

class LossyRc : public ::testing::TestWithParam<std::tuple<Weather, uint64_t>> {
 protected:
  struct Operation {
    WqeOpcode opcode;
    uint32_t length;
    uint8_t pattern;
    bool takes_receive() const {
      return opcode == WqeOpcode::kSend || opcode == WqeOpcode::kRdmaWriteImmediate;
    }
  };

  Rig rig{std::get<0>(GetParam()).faults, std::get<1>(GetParam())};
  std::mt19937 random{static_cast<uint32_t>(std::get<1>(GetParam()))};
  std::unique_ptr<Rig::Cq> send_cq = rig.MakeCq();
  std::unique_ptr<Rig::Cq> receive_cq = rig.MakeCq();
  std::unique_ptr<Rig::Srq> srq = rig.MakeSrq();
  std::unique_ptr<Rig::Qp> a = rig.MakeQp(*send_cq, nullptr);
  std::unique_ptr<Rig::Qp> b = rig.MakeQp(*receive_cq, srq.get());
  uint64_t receives = 0;

  Operation Choose() {
    static constexpr WqeOpcode kOpcodes[] = {WqeOpcode::kSend, WqeOpcode::kRdmaWrite,
                                             WqeOpcode::kRdmaWriteImmediate, WqeOpcode::kRdmaRead};
    return {kOpcodes[random() % 4], static_cast<uint32_t>(random() % kLongest),
            static_cast<uint8_t>(random())};
  }

  void Post(const Operation& operation, uint32_t slot) {
    const uint32_t near = slot * kSlotBytes;
    const uint32_t far = kFarSide + near;
    const bool read = operation.opcode == WqeOpcode::kRdmaRead;
    rig.Fill(read ? far : near, operation.length, operation.pattern);
    rig.Fill(read ? near : far, operation.length, static_cast<uint8_t>(~operation.pattern));
    if (operation.takes_receive()) {
      rig.PostSrq(*srq, rig.address(far), kSlotBytes, rig.key);
      ++receives;
    }
    rig.PostSend(*a, {.opcode = operation.opcode,
                      .address = rig.address(near),
                      .length = operation.length,
                      .lkey = rig.key,
                      .remote_address = rig.address(far),
                      .rkey = rig.key});
  }

  void ExpectDone(const Operation& operation, uint32_t slot) {
    const auto sent = rig.Poll(*send_cq, 20 * kSecond);
    ASSERT_TRUE(sent);
    ASSERT_EQ(sent->opcode(), CqeOpcode::kRequester) << "syndrome " << int(SyndromeOf(*sent));
    EXPECT_EQ(sent->send_opcode(), operation.opcode);
    if (operation.takes_receive()) {
      const auto received = rig.Poll(*receive_cq);
      ASSERT_TRUE(received);
      EXPECT_EQ(uint32_t{received->byte_count}, operation.length);
    }
    const bool read = operation.opcode == WqeOpcode::kRdmaRead;
    EXPECT_TRUE(
        rig.Holds(slot * kSlotBytes + (read ? 0 : kFarSide), operation.length, operation.pattern));
  }
};

TEST_P(LossyRc, EveryMessageArrivesOnceWholeAndInOrder) {
  Rig::QpOptions options;
  options.timeout = 8;
  rig.Connect(*a, *b, options);
  for (int round = 0; round < kRounds && !HasFatalFailure(); ++round) {
    std::vector<Operation> operations;
    for (uint32_t slot = 0; slot < kBatch; ++slot) {
      operations.push_back(Choose());
      Post(operations.back(), slot);
    }
    for (uint32_t slot = 0; slot < kBatch && !HasFatalFailure(); ++slot) {
      ExpectDone(operations[slot], slot);
    }
  }
  EXPECT_FALSE(rig.Poll(*receive_cq, kMillisecond)) << "delivered twice";
  EXPECT_EQ(rig.progress.counters.Get(Counter::kSrqWqesClaimed), receives);
  EXPECT_EQ(rig.StateOf(*a), QpState::kRts);
  EXPECT_EQ(rig.StateOf(*b), QpState::kRts);
}

// Answers that come late complete READs that were asked for again, so that the requester sends new
// ones while the responder still has the repetitions to answer.
TEST_P(LossyRc, ReadsBeyondTheLimitWaitAndNoneIsRefused) {
  Rig::QpOptions options;
  options.timeout = 4;
  options.path_mtu = 1;
  rig.Connect(*a, *b, options);
  constexpr uint32_t kReads = 32;
  constexpr uint32_t kReadBytes = 1000;
  for (int round = 0; round < kRounds && !HasFatalFailure(); ++round) {
    for (uint32_t i = 0; i < kReads; ++i) {
      rig.Fill(kFarSide + i * kReadBytes, kReadBytes, static_cast<uint8_t>(round + i));
      rig.PostSend(*a, {.opcode = WqeOpcode::kRdmaRead,
                        .address = rig.address(i * kReadBytes),
                        .length = kReadBytes,
                        .lkey = rig.key,
                        .remote_address = rig.address(kFarSide + i * kReadBytes),
                        .rkey = rig.key});
    }
    for (uint32_t i = 0; i < kReads; ++i) {
      const auto cqe = rig.Poll(*send_cq, 20 * kSecond);
      ASSERT_TRUE(cqe);
      ASSERT_EQ(cqe->opcode(), CqeOpcode::kRequester) << "syndrome " << int(SyndromeOf(*cqe));
      ASSERT_TRUE(rig.Holds(i * kReadBytes, kReadBytes, static_cast<uint8_t>(round + i)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Weathers, LossyRc,
    ::testing::Combine(
        ::testing::Values(
            Weather{"clear", {}}, Weather{"losing", {.loss = 0.03}},
            Weather{"corrupting", {.corrupt = 0.03}}, Weather{"duplicating", {.duplicate = 0.1}},
            Weather{"reordering", {.reorder = 0.03}},
            Weather{"everything",
                    {.loss = 0.01, .corrupt = 0.01, .duplicate = 0.05, .reorder = 0.02}}),
        ::testing::Values(1, 2, 3)));

}  // namespace
}  // namespace simhca
