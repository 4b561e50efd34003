#include <cerrno>
#include <climits>

#include "tests/conformance/fixture.h"

namespace simhca::conformance {
namespace {

ibv_srq* TryCreateSrq(ibv_pd* pd, uint32_t max_wr, uint32_t max_sge) {
  ibv_srq_init_attr init{};
  init.attr.max_wr = max_wr;
  init.attr.max_sge = max_sge;
  errno = 0;
  return ibv_create_srq(pd, &init);
}

TEST_F(SrqCases, Row01QpOnAnSrqIgnoresReceiveCapabilities) {
  Rule("QPC-06");
  CreateSrq(16);
  QpOptions options = ResponderOptions(srq_.get());
  options.cap.max_recv_wr = 1u << 20;
  options.cap.max_recv_sge = 1000;
  const Qp qp = MakeQp(device_, pd_.get(), options);
  EXPECT_EQ(srq_.get(), qp->srq);
}

TEST_F(SrqCases, Row06MaxWrZeroSucceedsOrIsRefusedClearly) {
  Rule("SRQ-03");
  ibv_srq_init_attr init{};
  init.attr.max_wr = 0;
  init.attr.max_sge = 1;
  errno = 0;
  srq_.reset(ibv_create_srq(pd_.get(), &init));
  if (srq_ == nullptr) {
    EXPECT_EQ(EINVAL, errno);
    return;
  }
  capacity_ = init.attr.max_wr;
  EXPECT_EQ(0, P(capacity_));
  EXPECT_EQ(ENOMEM, P(1));
  if (device_.generic()) {
    EXPECT_GE(capacity_, 1u);
  }
}

TEST_F(SrqCases, Row07SizesAboveTheDeviceLimitsAreRefused) {
  Rule("SRQ-02");
  const uint32_t max_wr = device_.attributes().max_srq_wr;
  const uint32_t max_sge = device_.attributes().max_srq_sge;
  EXPECT_EQ(nullptr, TryCreateSrq(pd_.get(), 0x80000000u, 1));
  EXPECT_EQ(EINVAL, errno);
  EXPECT_EQ(nullptr, TryCreateSrq(pd_.get(), UINT_MAX, 1));
  EXPECT_EQ(EINVAL, errno);
  EXPECT_EQ(nullptr, TryCreateSrq(pd_.get(), max_wr + 1, 1));
  EXPECT_EQ(EINVAL, errno);
  EXPECT_EQ(nullptr, TryCreateSrq(pd_.get(), 1, max_sge + 1));
  EXPECT_EQ(EINVAL, errno);
}

TEST_F(SrqTest, TheDeviceLimitsThemselvesAreGranted) {
  Rule("SRQ-01");
  const uint32_t max_wr = device_.attributes().max_srq_wr;
  const uint32_t max_sge = device_.attributes().max_srq_sge;
  ibv_srq_attr granted{};
  MakeSrq(pd_.get(), max_wr, 1, &granted);
  EXPECT_GE(granted.max_wr, max_wr);
  MakeSrq(pd_.get(), 1, max_sge, &granted);
  EXPECT_GE(granted.max_sge, max_sge);
}

TEST_F(SrqCases, Row08ExactlyTheGrantedNumberOfReceivesCanBePosted) {
  Rule("SRQ-01");
  for (const uint32_t asked : {1u, 2u, 10u, 15u, 16u, 100u, 1000u}) {
    SCOPED_TRACE(asked);
    CreateSrq(asked);
    EXPECT_GE(capacity_, asked);
    EXPECT_EQ(0, P(capacity_));
    EXPECT_EQ(ENOMEM, P(1));
  }
}

TEST_F(SrqCases, Row15ExtendedCreateFillsInWhatWasGiven) {
  Rule("SRQ-01");
  int own = 0;
  ibv_srq_init_attr_ex init{};
  init.srq_context = &own;
  init.attr.max_wr = 16;
  init.attr.max_sge = 1;
  init.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE;
  init.srq_type = IBV_SRQT_BASIC;
  init.pd = pd_.get();
  const Srq srq(ibv_create_srq_ex(device_.context(), &init));
  ASSERT_NE(nullptr, srq);
  EXPECT_EQ(pd_.get(), srq->pd);
  EXPECT_EQ(&own, srq->srq_context);
  EXPECT_EQ(device_.context(), srq->context);
  EXPECT_GE(init.attr.max_wr, 16u);
  EXPECT_GE(init.attr.max_sge, 1u);
}

TEST_F(SrqTest, PlainCreateFillsInWhatWasGiven) {
  Rule("SRQ-01");
  int own = 0;
  ibv_srq_init_attr init{};
  init.srq_context = &own;
  init.attr.max_wr = 16;
  init.attr.max_sge = 2;
  const Srq srq(ibv_create_srq(pd_.get(), &init));
  ASSERT_NE(nullptr, srq);
  EXPECT_EQ(pd_.get(), srq->pd);
  EXPECT_EQ(&own, srq->srq_context);
  EXPECT_EQ(device_.context(), srq->context);
  EXPECT_EQ(0u, srq->events_completed);
  EXPECT_GE(init.attr.max_wr, 16u);
  EXPECT_GE(init.attr.max_sge, 2u);
}

TEST_F(SrqCases, Row16UnknownMaskBitsAreRefused) {
  Rule("SRQ-04");
  for (const uint32_t bit : {1u << 5, 1u << 20, 1u << 31}) {
    SCOPED_TRACE(bit);
    ibv_srq_init_attr_ex init{};
    init.attr.max_wr = 16;
    init.attr.max_sge = 1;
    init.comp_mask = IBV_SRQ_INIT_ATTR_PD | bit;
    init.pd = pd_.get();
    errno = 0;
    EXPECT_EQ(nullptr, ibv_create_srq_ex(device_.context(), &init));
    EXPECT_TRUE(errno == EINVAL || errno == EOPNOTSUPP) << errno;
  }
}

TEST_F(SrqTest, ExtendedCreateWithoutAPdIsRefused) {
  Rule("SRQ-04");
  ibv_srq_init_attr_ex init{};
  init.attr.max_wr = 16;
  init.attr.max_sge = 1;
  init.comp_mask = IBV_SRQ_INIT_ATTR_TYPE;
  init.srq_type = IBV_SRQT_BASIC;
  errno = 0;
  EXPECT_EQ(nullptr, ibv_create_srq_ex(device_.context(), &init));
  EXPECT_EQ(EINVAL, errno);
}

TEST_F(SrqCases, Row17QueryQpNamesTheSrq) {
  Rule("QPC-08");
  CreateSrq(16);
  const Qp qp = MakeQp(device_, pd_.get(), ResponderOptions(srq_.get()));
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(0, ibv_query_qp(qp.get(), &attr, IBV_QP_STATE, &init));
  EXPECT_EQ(srq_.get(), init.srq);
}

TEST_F(SrqCases, Row30DestroyIsRefusedWhileQpsUseTheSrq) {
  Rule("LIFE-02");
  CreateSrq(16);
  Qp first = MakeQp(device_, pd_.get(), ResponderOptions(srq_.get()));
  Qp second = MakeQp(device_, pd_.get(), ResponderOptions(srq_.get()));
  EXPECT_EQ(EBUSY, ibv_destroy_srq(srq_.get()));
  first.reset();
  EXPECT_EQ(EBUSY, ibv_destroy_srq(srq_.get()));
  EXPECT_EQ(0, P(1)) << "a refused destroy leaves the SRQ usable";
  EXPECT_EQ(1u, CountReceivable());
  second.reset();
  EXPECT_EQ(0, ibv_destroy_srq(srq_.release()));
}

TEST_F(SrqTest, DestroyWithPostedReceivesGivesTheBuffersBackWithoutCompletions) {
  Rule("LIFE-07");
  CreateSrq(16);
  ASSERT_EQ(0, P(16));
  EXPECT_EQ(0, ibv_destroy_srq(srq_.release()));
  EXPECT_TRUE(StaysEmpty(device_, responder_cq_.get(), Microseconds(100)));
  EXPECT_TRUE(sink_.Untouched(0, sink_.size()));
}

TEST_F(SrqTest, PdCannotBeDeallocatedWhileAnSrqUsesIt) {
  Rule("DEV-11");
  Pd pd = MakePd(device_);
  Srq srq = MakeSrq(pd.get(), 4);
  EXPECT_EQ(EBUSY, ibv_dealloc_pd(pd.get()));
  srq.reset();
  EXPECT_EQ(0, ibv_dealloc_pd(pd.release()));
}

TEST_F(SrqTest, QueryAfterCreateShowsSizesAndNoLimit) {
  Rule("SRQ-01");
  ibv_srq_init_attr init{};
  init.attr.max_wr = 10;
  init.attr.max_sge = 2;
  init.attr.srq_limit = 5;
  srq_.reset(ibv_create_srq(pd_.get(), &init));
  ASSERT_NE(nullptr, srq_);
  const ibv_srq_attr queried = Query();
  EXPECT_GE(queried.max_wr, init.attr.max_wr);
  EXPECT_EQ(init.attr.max_sge, queried.max_sge);
  EXPECT_EQ(0u, queried.srq_limit);
}

TEST_F(SrqTest, SizesAreExactOnTheDefaultProfile) {
  Rule("SRQ-01");
  if (!device_.generic()) GTEST_SKIP() << "sizes of other devices are rounded up";
  for (const uint32_t asked : {1u, 10u, 255u, 256u}) {
    ibv_srq_attr granted{};
    srq_ = MakeSrq(pd_.get(), asked, 2, &granted);
    EXPECT_EQ(asked, granted.max_wr);
    EXPECT_EQ(2u, granted.max_sge);
    EXPECT_EQ(asked, Query().max_wr);
    EXPECT_EQ(2u, Query().max_sge);
  }
}

}  // namespace
}  // namespace simhca::conformance
