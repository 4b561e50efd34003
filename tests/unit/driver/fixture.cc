#include "tests/unit/driver/fixture.h"

#include <cstdlib>

namespace simhca::driver {

namespace {

// The driver reads its settings once, at the first use.
[[maybe_unused]] const bool settings = [] {
  unsetenv("SIMHCA_PROFILE");
  unsetenv("SIMHCA_CLOCK");
  setenv("SIMHCA_DEVICES", "2", 1);
  setenv("SIMHCA_DEVICE", "simhca1=connectx5", 1);
  return true;
}();

}  // namespace

DriverTest::DriverTest(Simulated which) {
  std::vector<ibv_device*> devices;
  EXPECT_EQ(GetDevices(&devices), 0);
  context_ = OpenDevice(devices.at(which));
  device_ = FakeDevice::At(which);
  pd_ = AllocPd(context_);
  sge_ = {.addr = reinterpret_cast<uintptr_t>(buffer_), .length = 100, .lkey = 0x1234};
}

DriverTest::~DriverTest() {
  CloseDevice(context_);
  device_->on_poll = nullptr;
  device_->virtual_clock = false;
}

ibv_cq* DriverTest::MakeCq(int cqe, ibv_comp_channel* channel) {
  return CreateCq(context_, cqe, this, channel, 0);
}

ibv_srq* DriverTest::MakeSrq(uint32_t max_wr, uint32_t max_sge) {
  ibv_srq_init_attr attr{};
  attr.attr = {.max_wr = max_wr, .max_sge = max_sge, .srq_limit = 0};
  return CreateSrq(pd_, &attr);
}

ibv_qp* DriverTest::MakeQp(ibv_cq* cq, ibv_srq* srq) { return MakeQp(cq, srq, QpRequest{}); }

ibv_qp* DriverTest::MakeQp(ibv_cq* cq, ibv_srq* srq, const QpRequest& request) {
  ibv_qp_init_attr attr{};
  attr.send_cq = attr.recv_cq = cq;
  attr.srq = srq;
  attr.cap = request.cap;
  attr.qp_type = IBV_QPT_RC;
  attr.sq_sig_all = request.signal_all ? 1 : 0;
  ibv_qp* qp = CreateQp(pd_, &attr);
  if (qp != nullptr) Move(qp, IBV_QPS_RTS);
  return qp;
}

void DriverTest::Move(ibv_qp* qp, ibv_qp_state state) {
  ibv_qp_attr attr{};
  attr.qp_state = state;
  EXPECT_EQ(ModifyQp(qp, &attr, IBV_QP_STATE), 0);
}

int DriverTest::PostReceive(ibv_srq* srq, uint64_t wr_id) {
  ibv_recv_wr wr{.wr_id = wr_id, .next = nullptr, .sg_list = &sge_, .num_sge = 1};
  ibv_recv_wr* bad = nullptr;
  return ibv_post_srq_recv(srq, &wr, &bad);
}

mlx5::Cqe DriverTest::ReceiveCqe(const ibv_qp* qp, const ibv_srq* srq, uint16_t index,
                                 uint32_t bytes) {
  mlx5::Cqe cqe{};
  cqe.sop_qpn = qp->qp_num;
  cqe.srqn = srq != nullptr ? srq->handle : 0;
  cqe.wqe_counter = index;
  cqe.byte_count = bytes;
  return cqe;
}

mlx5::Cqe DriverTest::SendCqe(const ibv_qp* qp, uint16_t block, mlx5::WqeOpcode opcode) {
  mlx5::Cqe cqe{};
  cqe.sop_qpn = static_cast<uint32_t>(opcode) << 24 | qp->qp_num;
  cqe.wqe_counter = block;
  return cqe;
}

std::vector<ibv_wc> DriverTest::Poll(ibv_cq* cq) {
  std::vector<ibv_wc> completions(64);
  const int polled = ibv_poll_cq(cq, 64, completions.data());
  EXPECT_GE(polled, 0);
  completions.resize(polled > 0 ? polled : 0);
  return completions;
}

}  // namespace simhca::driver
