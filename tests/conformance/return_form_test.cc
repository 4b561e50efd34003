#include <cerrno>
#include <initializer_list>

#include "tests/conformance/fixture.h"

namespace simhca::conformance {
namespace {

// How verbs report a refusal: each family in its own form.
class ReturnForms : public RcTest {};

TEST_F(ReturnForms, PositiveErrno) {
  Rule("RET-01");
  const Cq cq = MakeCq(device_, 8);
  const Channel channel = MakeChannel(device_);
  const Cq of_channel = MakeCq(device_, 8, channel.get());
  const Link link = MakeLink();
  ibv_port_attr port{};
  ibv_device_attr_ex attributes{};
  const ibv_query_device_ex_input input{.comp_mask = 1};
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  EXPECT_EQ(EBUSY, ibv_dealloc_pd(pd_.get()));
  EXPECT_EQ(EBUSY, ibv_destroy_comp_channel(channel.get()));
  EXPECT_EQ(EBUSY, ibv_destroy_cq(requester_cq_.get()));
  EXPECT_EQ(EINVAL, ibv_resize_cq(cq.get(), 0));
  EXPECT_EQ(EINVAL, ibv_query_device_ex(device_.context(), &input, &attributes));
  EXPECT_EQ(EINVAL, ibv_query_port(device_.context(), 0, &port));
  EXPECT_EQ(EINVAL, ibv_modify_qp(link.requester.get(), &attr, IBV_QP_STATE));
  const Srq srq = MakeSrq(pd_.get(), 4);
  ibv_srq_attr limit{};
  limit.srq_limit = UINT32_MAX;
  EXPECT_EQ(EINVAL, ibv_modify_srq(srq.get(), &limit, IBV_SRQ_LIMIT));
  ibv_gid_entry entry{};
  EXPECT_EQ(EINVAL, ibv_query_gid_ex(device_.context(), 0, 0, &entry, 0));
}

TEST_F(ReturnForms, NullAndErrno) {
  Rule("RET-02");
  const auto refused = [](const void* object) {
    EXPECT_EQ(nullptr, object);
    EXPECT_EQ(EINVAL, errno);
    errno = 0;
  };
  errno = 0;
  refused(ibv_create_cq(device_.context(), 0, nullptr, nullptr, 0));
  refused(ibv_reg_mr(pd_.get(), source_.data(), 64, IBV_ACCESS_REMOTE_WRITE));
  ibv_srq_init_attr srq{};
  srq.attr.max_wr = static_cast<uint32_t>(device_.attributes().max_srq_wr) + 1;
  refused(ibv_create_srq(pd_.get(), &srq));
  ibv_qp_init_attr qp{};
  qp.send_cq = qp.recv_cq = requester_cq_.get();
  qp.qp_type = IBV_QPT_RC;
  qp.cap.max_send_wr = static_cast<uint32_t>(device_.attributes().max_qp_wr) + 1;
  refused(ibv_create_qp(pd_.get(), &qp));
}

TEST_F(ReturnForms, MinusOne) {
  Rule("RET-03");
  ibv_gid gid{};
  __be16 pkey = 0;
  ibv_async_event event{};
  const Channel channel = MakeChannel(device_);
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  EXPECT_EQ(-1, ibv_query_gid(device_.context(), device_.port(), -1, &gid));
  EXPECT_EQ(-1, ibv_query_pkey(device_.context(), device_.port(), -1, &pkey));
  EXPECT_EQ(-1, ibv_get_async_event(device_.context(), &event));
  EXPECT_EQ(-1, ibv_get_cq_event(channel.get(), &cq, &context));
}

TEST_F(ReturnForms, CountOrNegative) {
  Rule("RET-04");
  ibv_wc wc[2] = {};
  EXPECT_EQ(0, ibv_poll_cq(requester_cq_.get(), 2, wc));
  ibv_gid_entry entry{};
  EXPECT_EQ(-EINVAL, ibv_query_gid_table(device_.context(), &entry, 0, 0));
  EXPECT_GT(0, ibv_get_pkey_index(device_.context(), device_.port(), 0x1234));
  EXPECT_GE(ibv_get_device_index(device_.context()->device), -1);
  const int in_order = ibv_query_qp_data_in_order(
      MakeQp(device_, pd_.get(), RequesterOptions()).get(), IBV_WR_RDMA_WRITE, 0);
  EXPECT_TRUE(in_order == 0 || in_order == 1) << in_order;
}

// Verbs of the device that have no implementation behind them.  Hardware has one for most.
class SimulatorOnlyUnsupported : public RcTest {
 protected:
  static void ExpectNull(const void* object) {
    EXPECT_EQ(nullptr, object);
    EXPECT_EQ(EOPNOTSUPP, errno);
    errno = 0;
  }
};

TEST_F(SimulatorOnlyUnsupported, VerbsThatCreateGiveNullAndErrno) {
  Rule("RET-05, DEV-12");
  ibv_context* context = device_.context();
  ibv_ah_attr ah{};
  ibv_xrcd_init_attr xrcd{};
  ibv_alloc_dm_attr dm{};
  ibv_td_init_attr td{};
  ibv_parent_domain_init_attr parent{};
  parent.pd = pd_.get();
  ibv_wq_init_attr wq{};
  ibv_rwq_ind_table_init_attr table{};
  ibv_counters_init_attr counters{};
  ibv_flow_attr flow{};
  const Qp qp = MakeQp(device_, pd_.get(), RequesterOptions());
  errno = 0;
  ExpectNull(ibv_alloc_mw(pd_.get(), IBV_MW_TYPE_1));
  ExpectNull(ibv_alloc_mw(pd_.get(), IBV_MW_TYPE_2));
  ExpectNull(ibv_create_ah(pd_.get(), &ah));
  ExpectNull(ibv_open_xrcd(context, &xrcd));
  ExpectNull(ibv_alloc_dm(context, &dm));
  ExpectNull(ibv_alloc_td(context, &td));
  ExpectNull(ibv_alloc_parent_domain(context, &parent));
  ExpectNull(ibv_create_wq(context, &wq));
  ExpectNull(ibv_create_rwq_ind_table(context, &table));
  ExpectNull(ibv_create_counters(context, &counters));
  ExpectNull(ibv_create_flow(qp.get(), &flow));
  ExpectNull(ibv_reg_dmabuf_mr(pd_.get(), 0, 4096, 0, -1, IBV_ACCESS_LOCAL_WRITE));
  ExpectNull(ibv_import_pd(context, 0));
  ExpectNull(ibv_import_mr(pd_.get(), 0));
  ExpectNull(ibv_import_dm(context, 0));
}

TEST_F(SimulatorOnlyUnsupported, TheOthersGiveErrno) {
  Rule("RET-05, DEV-13");
  const Qp qp = MakeQp(device_, pd_.get(), RequesterOptions());
  ibv_gid group{};
  group.raw[0] = 0xff;
  ibv_sge range = source_.Sge(0, 64);
  ibv_modify_cq_attr moderation{};
  moderation.attr_mask = IBV_CQ_ATTR_MODERATE;
  ibv_ece ece{};
  EXPECT_EQ(EOPNOTSUPP, ibv_attach_mcast(qp.get(), &group, 0));
  EXPECT_EQ(EOPNOTSUPP, ibv_detach_mcast(qp.get(), &group, 0));
  EXPECT_EQ(EOPNOTSUPP, ibv_advise_mr(pd_.get(), IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &range, 1));
  EXPECT_EQ(EOPNOTSUPP, ibv_modify_cq(requester_cq_.get(), &moderation));
  errno = 0;
  EXPECT_EQ(EOPNOTSUPP, ibv_set_ece(qp.get(), &ece)) << "vendor 0";
  EXPECT_EQ(EOPNOTSUPP, errno);
  EXPECT_EQ(EOPNOTSUPP, ibv_query_ece(qp.get(), &ece));
}

TEST_F(SimulatorOnlyUnsupported, PostsWithoutAnImplementationLeaveTheBadRequestAlone) {
  Rule("RET-06");
  const Srq srq = MakeSrq(pd_.get(), 4);
  ibv_ops_wr operation{};
  ibv_ops_wr marker{};
  ibv_ops_wr* bad = &marker;
  EXPECT_EQ(EOPNOTSUPP, ibv_post_srq_ops(srq.get(), &operation, &bad));
  EXPECT_EQ(&marker, bad);
}

TEST_F(SimulatorOnlyUnsupported, QueuePairTypesOtherThanRc) {
  Rule("QPC-02");
  for (const ibv_qp_type type : {IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_RAW_PACKET, IBV_QPT_XRC_SEND,
                                 IBV_QPT_XRC_RECV, IBV_QPT_DRIVER}) {
    ibv_qp_init_attr init{};
    init.qp_type = type;
    init.send_cq = init.recv_cq = requester_cq_.get();
    init.cap = {1, 1, 1, 1, 0};
    errno = 0;
    EXPECT_EQ(nullptr, ibv_create_qp(pd_.get(), &init)) << type;
    EXPECT_EQ(EOPNOTSUPP, errno) << type;
  }
}

TEST_F(SimulatorOnlyUnsupported, SharedQueueTypesOtherThanBasic) {
  Rule("SRQ-05");
  for (const ibv_srq_type type : {IBV_SRQT_XRC, IBV_SRQT_TM}) {
    ibv_srq_init_attr_ex init{};
    init.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
    init.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
                     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;
    init.srq_type = type;
    init.pd = pd_.get();
    init.cq = requester_cq_.get();
    init.tm_cap = {.max_num_tags = 4, .max_ops = 4};
    errno = 0;
    EXPECT_EQ(nullptr, ibv_create_srq_ex(device_.context(), &init)) << type;
    EXPECT_EQ(EOPNOTSUPP, errno) << type;
  }
}

TEST_F(SimulatorOnlyUnsupported, OperationsThatTheDeviceLacks) {
  Rule("QPC-09, POST-06");
  const Link link = MakeLink();
  for (const ibv_wr_opcode opcode :
       {IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND_WITH_INV,
        IBV_WR_LOCAL_INV, IBV_WR_BIND_MW, IBV_WR_TSO}) {
    EXPECT_EQ(EOPNOTSUPP, PostSend(link.requester.get(), {.segments = {source_.Sge(0, 8)},
                                                          .opcode = opcode,
                                                          .remote_address = sink_.address(),
                                                          .rkey = sink_.rkey()}))
        << opcode;
  }
  ibv_qp_init_attr_ex init{};
  init.qp_type = IBV_QPT_RC;
  init.pd = pd_.get();
  init.send_cq = init.recv_cq = requester_cq_.get();
  init.cap = {4, 4, 1, 1, 0};
  init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  init.send_ops_flags = IBV_QP_EX_WITH_BIND_MW;
  errno = 0;
  ExpectNull(ibv_create_qp_ex(device_.context(), &init));
}

}  // namespace
}  // namespace simhca::conformance
