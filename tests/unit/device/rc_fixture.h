#ifndef SIMHCA_TESTS_UNIT_DEVICE_RC_FIXTURE_H_
#define SIMHCA_TESTS_UNIT_DEVICE_RC_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>

#include "sim/wire/headers.h"
#include "tests/unit/device/rig.h"

// RC over a link that delivers at once, or loses what the test chooses.

namespace simhca {

using mlx5::CqeOpcode;
using mlx5::EventType;
using mlx5::Syndrome;
using mlx5::WqeOpcode;

inline constexpr uint32_t kTarget = 512 * 1024;  // offset in the arena that messages go to

class RcTest : public ::testing::Test {
 protected:
  explicit RcTest(const DeviceProfile& profile = Rig::GenericProfile()) : rig(profile) {}

  Rig rig;
  std::unique_ptr<Rig::Cq> send_cq = rig.MakeCq();
  std::unique_ptr<Rig::Cq> receive_cq = rig.MakeCq();
  int losses = 0;

  Rig::Send Bytes(WqeOpcode opcode, uint32_t length) {
    Rig::Send send;
    send.opcode = opcode;
    send.address = rig.address(0);
    send.length = length;
    send.lkey = rig.key;
    send.remote_address = rig.address(kTarget);
    send.rkey = rig.key;
    return send;
  }

  void ExpectSent(WqeOpcode opcode) {
    const auto cqe = rig.Poll(*send_cq);
    ASSERT_TRUE(cqe) << "no completion at the sender";
    ASSERT_EQ(cqe->opcode(), CqeOpcode::kRequester);
    EXPECT_EQ(cqe->send_opcode(), opcode);
  }
  void ExpectFailed(Syndrome syndrome) {
    const auto cqe = rig.Poll(*send_cq, 60 * kSecond);
    ASSERT_TRUE(cqe) << "no completion at the sender";
    ASSERT_EQ(cqe->opcode(), CqeOpcode::kRequesterError);
    EXPECT_EQ(SyndromeOf(*cqe), syndrome);
  }
  // Loses the first packet with this operation, once.
  void LoseFirst(Operation operation) {
    rig.fabric->lose = [this, operation, lost = false](size_t, const std::byte* bytes) mutable {
      if (lost || OperationOf(Bth::Parse(bytes).opcode) != operation) return false;
      lost = true;
      ++losses;
      return true;
    };
  }
};

class RcPair : public RcTest {
 protected:
  RcPair() {
    a = rig.MakeQp(*send_cq, nullptr);
    b = rig.MakeQp(*receive_cq, nullptr);
  }
  std::unique_ptr<Rig::Qp> a, b;
};

}  // namespace simhca

#endif  // SIMHCA_TESTS_UNIT_DEVICE_RC_FIXTURE_H_
