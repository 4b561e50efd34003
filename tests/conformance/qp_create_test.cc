#include <cerrno>

#include "tests/conformance/fixture.h"

namespace simhca::conformance {
namespace {

class QpCreate : public RcTest {
 protected:
  ibv_qp_init_attr Init() {
    ibv_qp_init_attr init{};
    init.qp_context = this;
    init.send_cq = requester_cq_.get();
    init.recv_cq = responder_cq_.get();
    init.cap = {10, 11, 2, 3, 16};
    init.qp_type = IBV_QPT_RC;
    return init;
  }
  void ExpectRefused(ibv_qp_init_attr init) {
    errno = 0;
    EXPECT_EQ(nullptr, ibv_create_qp(pd_.get(), &init));
    EXPECT_EQ(EINVAL, errno);
  }
};

TEST_F(QpCreate, FillsInWhatWasGivenAndWhatWasGranted) {
  Rule("QPC-08");
  ibv_qp_init_attr init = Init();
  const Qp qp(ibv_create_qp(pd_.get(), &init));
  ASSERT_NE(nullptr, qp);
  EXPECT_GE(init.cap.max_send_wr, 10u);
  EXPECT_GE(init.cap.max_recv_wr, 11u);
  EXPECT_GE(init.cap.max_send_sge, 2u);
  EXPECT_GE(init.cap.max_recv_sge, 3u);
  EXPECT_GE(init.cap.max_inline_data, 16u);
  EXPECT_EQ(device_.context(), qp->context);
  EXPECT_EQ(pd_.get(), qp->pd);
  EXPECT_EQ(this, qp->qp_context);
  EXPECT_EQ(requester_cq_.get(), qp->send_cq);
  EXPECT_EQ(responder_cq_.get(), qp->recv_cq);
  EXPECT_EQ(nullptr, qp->srq);
  EXPECT_EQ(IBV_QPT_RC, qp->qp_type);
  EXPECT_EQ(IBV_QPS_RESET, qp->state);
  EXPECT_EQ(0u, qp->events_completed);
  EXPECT_GT(qp->qp_num, 1u) << "0 and 1 are the management queue pairs";
  EXPECT_LT(qp->qp_num, 1u << 24);
}

TEST_F(QpCreate, NumbersOfLiveQpsDiffer) {
  Rule("QPC-08");
  const Qp first = MakeQp(device_, pd_.get(), RequesterOptions());
  const Qp second = MakeQp(device_, pd_.get(), RequesterOptions());
  EXPECT_NE(first->qp_num, second->qp_num);
}

TEST_F(QpCreate, QueryShowsTheCreationAttributes) {
  Rule("QPC-08");
  ibv_qp_init_attr init = Init();
  init.sq_sig_all = 1;
  const Qp qp(ibv_create_qp(pd_.get(), &init));
  ASSERT_NE(nullptr, qp);
  ibv_qp_attr attr{};
  ibv_qp_init_attr queried{};
  ASSERT_EQ(0, ibv_query_qp(qp.get(), &attr, IBV_QP_STATE | IBV_QP_CAP, &queried));
  EXPECT_EQ(IBV_QPS_RESET, attr.qp_state);
  EXPECT_EQ(this, queried.qp_context);
  EXPECT_EQ(requester_cq_.get(), queried.send_cq);
  EXPECT_EQ(responder_cq_.get(), queried.recv_cq);
  EXPECT_EQ(nullptr, queried.srq);
  EXPECT_EQ(IBV_QPT_RC, queried.qp_type);
  EXPECT_NE(0, queried.sq_sig_all);
  EXPECT_EQ(init.cap.max_send_wr, queried.cap.max_send_wr);
  EXPECT_EQ(init.cap.max_recv_wr, queried.cap.max_recv_wr);
  EXPECT_EQ(init.cap.max_send_sge, queried.cap.max_send_sge);
  EXPECT_EQ(init.cap.max_recv_sge, queried.cap.max_recv_sge);
  EXPECT_EQ(init.cap.max_inline_data, queried.cap.max_inline_data);
}

TEST_F(QpCreate, CapabilitiesAboveTheDeviceLimitsAreRefused) {
  Rule("QPC-05");
  const uint32_t max_wr = static_cast<uint32_t>(device_.attributes().max_qp_wr) + 1;
  const uint32_t max_sge = static_cast<uint32_t>(device_.attributes().max_sge) + 1;
  ibv_qp_init_attr init = Init();
  init.cap.max_send_wr = max_wr;
  ExpectRefused(init);
  init = Init();
  init.cap.max_recv_wr = max_wr;
  ExpectRefused(init);
  init = Init();
  init.cap.max_send_sge = max_sge;
  ExpectRefused(init);
  init = Init();
  init.cap.max_recv_sge = max_sge;
  ExpectRefused(init);
  init = Init();
  init.cap.max_inline_data = 1u << 20;
  ExpectRefused(init);
  init = Init();
  init.cap.max_send_wr = UINT32_MAX;
  ExpectRefused(init);
  init = Init();
  init.cap.max_recv_sge = UINT32_MAX;
  ExpectRefused(init);
}

TEST_F(QpCreate, UnknownTypeIsRefused) {
  Rule("QPC-01");
  ibv_qp_init_attr init = Init();
  init.qp_type = static_cast<ibv_qp_type>(77);
  errno = 0;
  EXPECT_EQ(nullptr, ibv_create_qp(pd_.get(), &init));
  EXPECT_TRUE(errno == EINVAL || errno == EOPNOTSUPP) << errno;
}

TEST_F(QpCreate, ExtendedCreateWithoutAPdIsRefused) {
  Rule("QPC-03");
  ibv_qp_init_attr_ex init{};
  init.qp_type = IBV_QPT_RC;
  init.send_cq = requester_cq_.get();
  init.recv_cq = responder_cq_.get();
  init.cap = {1, 1, 1, 1, 0};
  errno = 0;
  EXPECT_EQ(nullptr, ibv_create_qp_ex(device_.context(), &init));
  EXPECT_EQ(EINVAL, errno);
}

TEST_F(QpCreate, UnknownMaskBitsAndFlagsAreRefused) {
  Rule("QPC-07");
  ibv_qp_init_attr_ex init{};
  init.qp_type = IBV_QPT_RC;
  init.send_cq = requester_cq_.get();
  init.recv_cq = responder_cq_.get();
  init.cap = {1, 1, 1, 1, 0};
  init.pd = pd_.get();
  init.comp_mask = IBV_QP_INIT_ATTR_PD | 1u << 20;
  EXPECT_EQ(nullptr, ibv_create_qp_ex(device_.context(), &init));
  init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
  init.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
  EXPECT_EQ(nullptr, ibv_create_qp_ex(device_.context(), &init)) << "no flag is for RC";
}

TEST_F(QpCreate, WhatAQpUsesCannotBeDestroyed) {
  Rule("DEV-11, LIFE-01, LIFE-02");
  Pd pd = MakePd(device_);
  Cq send_cq = MakeCq(device_, 4);
  Cq receive_cq = MakeCq(device_, 4);
  Srq srq = MakeSrq(pd.get(), 4);
  QpOptions options;
  options.send_cq = send_cq.get();
  options.receive_cq = receive_cq.get();
  options.srq = srq.get();
  options.cap = {4, 0, 1, 0, 0};
  Qp qp = MakeQp(device_, pd.get(), options);
  EXPECT_EQ(EBUSY, ibv_dealloc_pd(pd.get()));
  EXPECT_EQ(EBUSY, ibv_destroy_cq(send_cq.get()));
  EXPECT_EQ(EBUSY, ibv_destroy_cq(receive_cq.get()));
  EXPECT_EQ(EBUSY, ibv_destroy_srq(srq.get()));
  qp.reset();
  EXPECT_EQ(0, ibv_destroy_srq(srq.release()));
  EXPECT_EQ(0, ibv_destroy_cq(send_cq.release()));
  EXPECT_EQ(0, ibv_destroy_cq(receive_cq.release()));
  EXPECT_EQ(0, ibv_dealloc_pd(pd.release()));
}

TEST_F(QpCreate, DestroyTakesUnpolledCompletionsAway) {
  Rule("LIFE-06");
  {
    const Link link = MakeLink();
    ASSERT_EQ(0, PostReceive(link.responder.get(), 1, {sink_.Sge(0, 8)}));
    SendAndExpectSuccess(link.requester.get(), {.segments = {source_.Sge(0, 8)}});
  }
  EXPECT_TRUE(StaysEmpty(device_, responder_cq_.get(), Microseconds(100)));
}

TEST_F(QpCreate, AContextWithLiveObjectsCanBeClosed) {
  Rule("LIFE-08");
  ibv_context* context = ibv_open_device(device_.context()->device);
  ASSERT_NE(nullptr, context);
  ibv_pd* pd = ibv_alloc_pd(context);
  ASSERT_NE(nullptr, pd);
  ibv_cq* cq = ibv_create_cq(context, 4, nullptr, nullptr, 0);
  ASSERT_NE(nullptr, cq);
  ibv_qp_init_attr init = Init();
  init.send_cq = cq;
  init.recv_cq = cq;
  ASSERT_NE(nullptr, ibv_create_qp(pd, &init));
  EXPECT_EQ(0, ibv_close_device(context));
}

}  // namespace
}  // namespace simhca::conformance
