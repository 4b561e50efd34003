#include <cerrno>
#include <functional>

#include "tests/conformance/fixture.h"

namespace simhca::conformance {
namespace {

// Null, stale and forged objects.  The program leaves these tests out on hardware, where the
// library would follow the bad pointer.
class SimulatorOnlyHandles : public SrqTest {
 protected:
  SimulatorOnlyHandles() {
    CreateSrq(8);
    link_ = MakeLink({}, srq_.get());
    other_ = ibv_open_device(device_.context()->device);
    Require(other_ != nullptr, "ibv_open_device");
  }
  ~SimulatorOnlyHandles() override { EXPECT_EQ(0, ibv_close_device(other_)); }

  // With the field changed, `call` gives one of the two errors; afterwards the field is restored.
  template <typename Field, typename Value>
  void WithChanged(Field& field, Value value, const std::function<int()>& call) {
    const Field kept = field;
    field = value;
    const int result = call();
    EXPECT_TRUE(result == ENOENT || result == EINVAL) << result;
    field = kept;
  }

  int QueryQp() {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    return ibv_query_qp(link_.requester.get(), &attr, IBV_QP_STATE, &init);
  }
  int QuerySrq() {
    ibv_srq_attr attr{};
    return ibv_query_srq(srq_.get(), &attr);
  }
  // Everything that the tests abuse is still whole.
  void ExpectAllWell() {
    ASSERT_EQ(0, P(1));
    SendAndReceive(link_, 1);
    EXPECT_EQ(0, QueryQp());
    EXPECT_EQ(0, QuerySrq());
  }

  Link link_;
  ibv_context* other_ = nullptr;
};

TEST_F(SimulatorOnlyHandles, NullObjectsAreRefusedByTheCallsThatReturnAnError) {
  Rule("RET-08");
  ibv_device_attr device_attr{};
  ibv_qp_attr qp_attr{};
  ibv_qp_init_attr qp_init{};
  ibv_srq_attr srq_attr{};
  EXPECT_NE(0, ibv_query_device(nullptr, &device_attr));
  EXPECT_NE(0, ibv_dealloc_pd(nullptr));
  EXPECT_NE(0, ibv_dereg_mr(nullptr));
  EXPECT_NE(0, ibv_destroy_comp_channel(nullptr));
  EXPECT_NE(0, ibv_resize_cq(nullptr, 10));
  EXPECT_NE(0, ibv_destroy_cq(nullptr));
  EXPECT_NE(0, ibv_modify_srq(nullptr, &srq_attr, IBV_SRQ_LIMIT));
  EXPECT_NE(0, ibv_query_srq(nullptr, &srq_attr));
  EXPECT_NE(0, ibv_destroy_srq(nullptr));
  EXPECT_NE(0, ibv_query_qp(nullptr, &qp_attr, IBV_QP_STATE, &qp_init));
  EXPECT_NE(0, ibv_modify_qp(nullptr, &qp_attr, IBV_QP_STATE));
  EXPECT_NE(0, ibv_destroy_qp(nullptr));
  EXPECT_NE(0, ibv_destroy_ah(nullptr));
}

TEST_F(SimulatorOnlyHandles, NullObjectsAreRefusedByTheCallsThatCreate) {
  Rule("RET-08");
  ibv_srq_init_attr srq_init{};
  ibv_qp_init_attr qp_init{};
  ibv_ah_attr ah_attr{};
  EXPECT_EQ(nullptr, ibv_open_device(nullptr));
  EXPECT_EQ(nullptr, ibv_alloc_pd(nullptr));
  EXPECT_EQ(nullptr, ibv_reg_mr(nullptr, source_.data(), 64, IBV_ACCESS_LOCAL_WRITE));
  EXPECT_EQ(nullptr, ibv_create_comp_channel(nullptr));
  EXPECT_EQ(nullptr, ibv_create_cq(nullptr, 10, nullptr, nullptr, 0));
  EXPECT_EQ(nullptr, ibv_create_srq(nullptr, &srq_init));
  EXPECT_EQ(nullptr, ibv_create_qp(nullptr, &qp_init));
  EXPECT_EQ(nullptr, ibv_create_ah(nullptr, &ah_attr));
}

TEST_F(SimulatorOnlyHandles, NullObjectsAreRefusedByTheCallsThatReturnMinusOne) {
  Rule("RET-08");
  ibv_gid gid{};
  __be16 pkey = 0;
  ibv_async_event event{};
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  EXPECT_EQ(-1, ibv_query_gid(nullptr, 1, 0, &gid));
  EXPECT_EQ(-1, ibv_query_pkey(nullptr, 1, 0, &pkey));
  EXPECT_EQ(-1, ibv_get_async_event(nullptr, &event));
  EXPECT_EQ(-1, ibv_get_cq_event(nullptr, &cq, &context));
}

TEST_F(SimulatorOnlyHandles, QpWithoutCqsIsRefused) {
  Rule("QPC-04");
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_RC;
  init.cap = {1, 1, 1, 1, 0};
  init.recv_cq = responder_cq_.get();
  errno = 0;
  EXPECT_EQ(nullptr, ibv_create_qp(pd_.get(), &init));
  EXPECT_EQ(EINVAL, errno);
  init.send_cq = requester_cq_.get();
  init.recv_cq = nullptr;
  errno = 0;
  EXPECT_EQ(nullptr, ibv_create_qp(pd_.get(), &init));
  EXPECT_EQ(EINVAL, errno);
}

TEST_F(SimulatorOnlyHandles, OverwrittenHandlesAreNotFound) {
  Rule("LIFE-09");
  constexpr uint32_t kWrong = 0x7ffffff1;
  ibv_srq_attr srq_attr{};
  ibv_qp_attr qp_attr{};
  qp_attr.qp_state = IBV_QPS_ERR;
  WithChanged(srq_->handle, kWrong, [&] { return QuerySrq(); });
  WithChanged(srq_->handle, kWrong,
              [&] { return ibv_modify_srq(srq_.get(), &srq_attr, IBV_SRQ_LIMIT); });
  WithChanged(srq_->handle, kWrong, [&] { return ibv_destroy_srq(srq_.get()); });
  WithChanged(link_.requester->handle, kWrong, [&] { return QueryQp(); });
  WithChanged(link_.requester->handle, kWrong,
              [&] { return ibv_modify_qp(link_.requester.get(), &qp_attr, IBV_QP_STATE); });
  WithChanged(link_.requester->handle, kWrong,
              [&] { return ibv_destroy_qp(link_.requester.get()); });
  WithChanged(requester_cq_->handle, kWrong, [&] { return ibv_destroy_cq(requester_cq_.get()); });
  WithChanged(requester_cq_->handle, kWrong,
              [&] { return ibv_resize_cq(requester_cq_.get(), 600); });
  WithChanged(pd_->handle, kWrong, [&] { return ibv_dealloc_pd(pd_.get()); });
  WithChanged(source_.mr()->handle, kWrong, [&] { return ibv_dereg_mr(source_.mr()); });
  ExpectAllWell();
}

TEST_F(SimulatorOnlyHandles, ErrorsForOverwrittenHandlesAreThoseOfTheKernel) {
  Rule("LIFE-09");
  constexpr uint32_t kWrong = 0x7ffffff1;
  const uint32_t srq_handle = srq_->handle;
  srq_->handle = kWrong;
  EXPECT_EQ(ENOENT, ibv_destroy_srq(srq_.get()));
  srq_->handle = srq_handle;
  const uint32_t qp_handle = link_.requester->handle;
  link_.requester->handle = kWrong;
  EXPECT_EQ(EINVAL, QueryQp()) << "an older command";
  EXPECT_EQ(EINVAL, Move(link_.requester.get(), IBV_QPS_ERR)) << "an older command";
  EXPECT_EQ(ENOENT, ibv_destroy_qp(link_.requester.get()));
  link_.requester->handle = qp_handle;
  ExpectAllWell();
}

TEST_F(SimulatorOnlyHandles, ObjectsUsedWithAnotherContextAreNotFound) {
  Rule("LIFE-09");
  WithChanged(srq_->context, other_, [&] { return QuerySrq(); });
  WithChanged(srq_->context, other_, [&] { return ibv_destroy_srq(srq_.get()); });
  WithChanged(link_.requester->context, other_, [&] { return QueryQp(); });
  WithChanged(link_.requester->context, other_,
              [&] { return ibv_destroy_qp(link_.requester.get()); });
  WithChanged(requester_cq_->context, other_, [&] { return ibv_destroy_cq(requester_cq_.get()); });
  WithChanged(pd_->context, other_, [&] { return ibv_dealloc_pd(pd_.get()); });
  WithChanged(source_.mr()->context, other_, [&] { return ibv_dereg_mr(source_.mr()); });
  ExpectAllWell();
}

TEST_F(SimulatorOnlyHandles, ObjectsOfAnotherContextAreRefusedAtCreation) {
  Rule("QPC-10");
  ibv_cq* foreign_cq = ibv_create_cq(other_, 4, nullptr, nullptr, 0);
  ASSERT_NE(nullptr, foreign_cq);
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_RC;
  init.cap = {1, 1, 1, 1, 0};
  init.send_cq = foreign_cq;
  init.recv_cq = responder_cq_.get();
  EXPECT_EQ(nullptr, ibv_create_qp(pd_.get(), &init));
  EXPECT_EQ(0, ibv_destroy_cq(foreign_cq));
}

TEST_F(SimulatorOnlyHandles, DestroyingTwiceIsRefused) {
  Rule("LIFE-10");
  const auto refused = [](int result) {
    EXPECT_TRUE(result == ENOENT || result == EINVAL) << result;
  };
  ibv_pd* pd = ibv_alloc_pd(device_.context());
  ibv_mr* mr = ibv_reg_mr(pd, source_.data(), 64, IBV_ACCESS_LOCAL_WRITE);
  ibv_cq* cq = ibv_create_cq(device_.context(), 4, nullptr, nullptr, 0);
  ibv_comp_channel* channel = ibv_create_comp_channel(device_.context());
  ibv_srq* srq = MakeSrq(pd, 4).release();
  QpOptions options = RequesterOptions();
  options.srq = srq;
  ibv_qp* qp = MakeQp(device_, pd, options).release();
  EXPECT_EQ(0, ibv_destroy_qp(qp));
  refused(ibv_destroy_qp(qp));
  EXPECT_EQ(0, ibv_destroy_srq(srq));
  refused(ibv_destroy_srq(srq));
  EXPECT_EQ(0, ibv_destroy_comp_channel(channel));
  refused(ibv_destroy_comp_channel(channel));
  EXPECT_EQ(0, ibv_destroy_cq(cq));
  refused(ibv_destroy_cq(cq));
  EXPECT_EQ(0, ibv_dereg_mr(mr));
  refused(ibv_dereg_mr(mr));
  EXPECT_EQ(0, ibv_dealloc_pd(pd));
  refused(ibv_dealloc_pd(pd));
  ExpectAllWell();
}

TEST_F(SimulatorOnlyHandles, UseAfterDestroyIsRefused) {
  Rule("LIFE-10");
  ibv_srq* srq = MakeSrq(pd_.get(), 4).release();
  ibv_qp* qp = MakeQp(device_, pd_.get(), RequesterOptions()).release();
  ASSERT_EQ(0, ibv_destroy_srq(srq));
  ASSERT_EQ(0, ibv_destroy_qp(qp));
  ibv_srq_attr srq_attr{};
  ibv_qp_attr qp_attr{};
  qp_attr.qp_state = IBV_QPS_ERR;
  ibv_qp_init_attr init{};
  EXPECT_NE(0, ibv_query_srq(srq, &srq_attr));
  EXPECT_NE(0, ibv_modify_srq(srq, &srq_attr, IBV_SRQ_LIMIT));
  EXPECT_NE(0, ibv_query_qp(qp, &qp_attr, IBV_QP_STATE, &init));
  EXPECT_NE(0, ibv_modify_qp(qp, &qp_attr, IBV_QP_STATE));
  init.qp_type = IBV_QPT_RC;
  init.cap = {1, 1, 1, 1, 0};
  init.send_cq = requester_cq_.get();
  init.recv_cq = requester_cq_.get();
  init.srq = srq;
  EXPECT_EQ(nullptr, ibv_create_qp(pd_.get(), &init)) << "an SRQ that is gone";
  ExpectAllWell();
}

}  // namespace
}  // namespace simhca::conformance
