// How much of a stream's modelled rate is left when its link loses packets.

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/unit/device/rig.h"

namespace simhca {
namespace {

constexpr uint32_t kMessageBytes = 4096;
constexpr uint32_t kMessages = 20'000;
constexpr uint32_t kWindow = 32;  // messages under way

std::unique_ptr<Fabric> JoinVirtual(const DeviceProfile& profile, const FaultPlan& faults) {
  Fabric::Options options;
  options.name = "loss-recovery-" + std::to_string(getpid());
  options.exclusive = true;
  options.wires = {{.bits_per_second = profile.costs.wire_bits_per_second,
                    .propagation = profile.costs.wire_propagation,
                    .overhead_bytes = profile.costs.wire_overhead_bytes}};
  options.faults = faults;
  std::unique_ptr<Fabric> fabric;
  std::string error;
  EXPECT_EQ(Fabric::Join(options, &fabric, &error), 0) << error;
  return fabric;
}

// Bytes per second of device time of a stream of SENDs into an SRQ.
double StreamRate(const FaultPlan& faults, uint8_t timeout) {
  const DeviceProfile profile = Rig::GenericProfile();
  Rig rig(JoinVirtual(profile, faults), profile);
  const auto send_cq = rig.MakeCq(), receive_cq = rig.MakeCq();
  const auto srq = rig.MakeSrq();
  const auto a = rig.MakeQp(*send_cq, nullptr), b = rig.MakeQp(*receive_cq, srq.get());
  Rig::QpOptions options;
  options.path_mtu = 5;
  options.timeout = timeout;
  rig.Connect(*a, *b, options);
  for (uint32_t i = 0; i < kWindow; ++i) {
    rig.PostSrq(*srq, rig.address(512 * 1024), kMessageBytes, rig.key);
  }
  const Rig::Send send{
      .address = rig.address(0), .length = kMessageBytes, .lkey = rig.key, .rkey = rig.key};
  const Time start = rig.hca.Now();
  for (uint32_t posted = 0, done = 0; done < kMessages; ++done) {
    while (posted < kMessages && posted - done < kWindow) {
      rig.PostSend(*a, send);
      ++posted;
    }
    const auto cqe = rig.Poll(*receive_cq, 10 * kSecond);
    if (!cqe || cqe->opcode() != mlx5::CqeOpcode::kResponderSend) {
      ADD_FAILURE() << "message " << done << " did not arrive";
      break;
    }
    rig.PostSrq(*srq, rig.address(512 * 1024), kMessageBytes, rig.key);
    while (rig.Poll(*send_cq, 0)) {
    }
  }
  return double{kMessages} * kMessageBytes / static_cast<double>(rig.hca.Now() - start) * kSecond;
}

TEST(LossRecovery, AStreamKeepsMostOfItsRateWithOnePacketInAHundredLost) {
  const double lossless = StreamRate({}, 6);
  const double lossy = StreamRate({.loss = 0.01}, 6);
  RecordProperty("lossless_mb_per_s", static_cast<int>(lossless / 1e6));
  RecordProperty("lossy_mb_per_s", static_cast<int>(lossy / 1e6));
  EXPECT_GE(lossy / lossless, 0.6)
      << lossless / 1e6 << " MB/s without loss, " << lossy / 1e6 << " MB/s with";
  EXPECT_LT(lossy / lossless, 1) << "nothing was lost";
}

}  // namespace
}  // namespace simhca
