#ifndef SIMHCA_TESTS_UNIT_DRIVER_FIXTURE_H_
#define SIMHCA_TESTS_UNIT_DRIVER_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/unit/driver/fake_device.h"
#include "verbs_shim/driver/driver.h"

namespace simhca::driver {

// The process has simhca0 with the generic profile (exact sizes) and simhca1 with connectx5 (sizes
// of the mlx5 driver), both of them fake devices.
enum Simulated : size_t { kGeneric, kConnectX };

// An open device with a PD.  What a test makes on it goes away when the device is closed.
class DriverTest : public testing::Test {
 protected:
  explicit DriverTest(Simulated which = kGeneric);
  ~DriverTest() override;

  ibv_cq* MakeCq(int cqe = 64, ibv_comp_channel* channel = nullptr);
  ibv_srq* MakeSrq(uint32_t max_wr, uint32_t max_sge = 1);
  struct QpRequest {
    ibv_qp_cap cap{.max_send_wr = 8,
                   .max_recv_wr = 8,
                   .max_send_sge = 2,
                   .max_recv_sge = 2,
                   .max_inline_data = 64};
    bool signal_all = false;
  };
  // In state RTS.
  ibv_qp* MakeQp(ibv_cq* cq, ibv_srq* srq = nullptr);
  ibv_qp* MakeQp(ibv_cq* cq, ibv_srq* srq, const QpRequest& request);
  static void Move(ibv_qp* qp, ibv_qp_state state);

  // Posts a receive of one SGE; returns ibv_post_srq_recv's answer.
  int PostReceive(ibv_srq* srq, uint64_t wr_id);

  // Completions as the device writes them.
  static mlx5::Cqe ReceiveCqe(const ibv_qp* qp, const ibv_srq* srq, uint16_t index,
                              uint32_t bytes = 0);
  static mlx5::Cqe SendCqe(const ibv_qp* qp, uint16_t block,
                           mlx5::WqeOpcode opcode = mlx5::WqeOpcode::kSend);

  // Everything that one ibv_poll_cq of up to 64 entries returns.
  static std::vector<ibv_wc> Poll(ibv_cq* cq);

  FakeDevice& device() { return *device_; }

  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  char buffer_[4096] = {};
  ibv_sge sge_;

 private:
  FakeDevice* device_ = nullptr;
};

class ConnectXDriverTest : public DriverTest {
 protected:
  ConnectXDriverTest() : DriverTest(kConnectX) {}
};

}  // namespace simhca::driver

#endif  // SIMHCA_TESTS_UNIT_DRIVER_FIXTURE_H_
