#include <cerrno>
#include <cstring>
#include <vector>

#include "tests/conformance/qp_states.h"

namespace simhca::conformance {
namespace {

TEST_F(QpStates, EveryTransitionOfTheTableWorksWithItsRequiredAttributes) {
  Rule("QPM-08");
  for (const Transition& transition : kTransitions) {
    SCOPED_TRACE(Describe(transition, transition.required));
    Enter(transition.from);
    EXPECT_EQ(0, Modify(transition, transition.required | IBV_QP_STATE));
    EXPECT_EQ(transition.to, StateOf(qp_.get()));
    EXPECT_EQ(transition.to, qp_->state);
  }
}

TEST_F(QpStates, EveryRequiredAttributeIsRequired) {
  Rule("QPM-09");
  for (const Transition& transition : kTransitions) {
    Enter(transition.from);
    for (int bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
      if ((transition.required & bit) == 0) continue;
      SCOPED_TRACE(Describe(transition, bit));
      EXPECT_EQ(EINVAL, Modify(transition, (transition.required & ~bit) | IBV_QP_STATE));
      EXPECT_EQ(transition.from, StateOf(qp_.get()));
      EXPECT_EQ(transition.from, qp_->state);
    }
  }
}

TEST_F(QpStates, EveryOptionalAttributeIsAccepted) {
  Rule("QPM-10");
  for (const Transition& transition : kTransitions) {
    for (int bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
      if ((transition.optional & ~kMigration & bit) == 0) continue;
      SCOPED_TRACE(Describe(transition, bit));
      Enter(transition.from);
      EXPECT_EQ(0, Modify(transition, transition.required | bit | IBV_QP_STATE));
      EXPECT_EQ(transition.to, StateOf(qp_.get()));
    }
  }
}

TEST_F(QpStates, AttributesOutsideTheTableAreRefused) {
  Rule("QPM-11");
  for (const Transition& transition : kTransitions) {
    Enter(transition.from);
    const int allowed = transition.required | transition.optional | IBV_QP_STATE;
    for (int bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
      if ((allowed & bit) != 0) continue;
      SCOPED_TRACE(Describe(transition, bit));
      EXPECT_EQ(EINVAL, Modify(transition, transition.required | bit | IBV_QP_STATE));
      EXPECT_EQ(transition.from, StateOf(qp_.get()));
    }
  }
}

TEST_F(QpStates, AbsentStateBitMeansTheSameState) {
  Rule("QPM-14");
  Enter(IBV_QPS_RTS);
  const Transition same = {IBV_QPS_RTS, IBV_QPS_RESET, 0, 0};
  EXPECT_EQ(0, Modify(same, IBV_QP_MIN_RNR_TIMER));
  EXPECT_EQ(IBV_QPS_RTS, StateOf(qp_.get()));
  EXPECT_EQ(EINVAL, Modify(same, IBV_QP_TIMEOUT));
  Enter(IBV_QPS_RTR);
  EXPECT_EQ(EINVAL, Modify(same, IBV_QP_MIN_RNR_TIMER)) << "RTR has no transition to itself";
}

TEST_F(QpStates, TransitionsOutsideTheTableAreRefused) {
  Rule("QPM-12");
  constexpr int kAll = kInitMask | kRtrMask | kRtsMask;
  constexpr struct {
    ibv_qp_state from;
    ibv_qp_state to;
    int mask;
  } kWrong[] = {
      {IBV_QPS_RESET, IBV_QPS_RTR, kRtrMask},       {IBV_QPS_RESET, IBV_QPS_RTS, kRtsMask},
      {IBV_QPS_RESET, IBV_QPS_RTS, kAll},           {IBV_QPS_RESET, IBV_QPS_SQD, IBV_QP_STATE},
      {IBV_QPS_RESET, IBV_QPS_ERR, IBV_QP_STATE},   {IBV_QPS_INIT, IBV_QPS_RTS, kRtsMask},
      {IBV_QPS_INIT, IBV_QPS_SQD, IBV_QP_STATE},    {IBV_QPS_RTR, IBV_QPS_INIT, kInitMask},
      {IBV_QPS_RTR, IBV_QPS_RTR, kRtrMask},         {IBV_QPS_RTR, IBV_QPS_RTR, IBV_QP_STATE},
      {IBV_QPS_RTR, IBV_QPS_SQD, IBV_QP_STATE},     {IBV_QPS_RTS, IBV_QPS_INIT, kInitMask},
      {IBV_QPS_RTS, IBV_QPS_RTR, kRtrMask},         {IBV_QPS_SQD, IBV_QPS_INIT, kInitMask},
      {IBV_QPS_SQD, IBV_QPS_RTR, kRtrMask},         {IBV_QPS_ERR, IBV_QPS_INIT, kInitMask},
      {IBV_QPS_ERR, IBV_QPS_RTR, kRtrMask},         {IBV_QPS_ERR, IBV_QPS_RTS, kRtsMask},
      {IBV_QPS_ERR, IBV_QPS_RTS, IBV_QP_STATE},     {IBV_QPS_ERR, IBV_QPS_SQD, IBV_QP_STATE},
      {IBV_QPS_RTS, IBV_QPS_UNKNOWN, IBV_QP_STATE},
  };
  for (const auto& wrong : kWrong) {
    SCOPED_TRACE(Describe({wrong.from, wrong.to, 0, 0}, wrong.mask));
    Enter(wrong.from);
    EXPECT_EQ(EINVAL, Modify({wrong.from, wrong.to, 0, 0}, wrong.mask));
    EXPECT_EQ(wrong.from, StateOf(qp_.get()));
    EXPECT_EQ(wrong.from, qp_->state);
  }
}

TEST_F(QpStates, EveryStateCanBeLeftForReset) {
  Rule("QPM-13");
  for (const ibv_qp_state state :
       {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_ERR}) {
    SCOPED_TRACE(state);
    Enter(state);
    EXPECT_EQ(0, Move(qp_.get(), IBV_QPS_RESET));
    EXPECT_EQ(IBV_QPS_RESET, StateOf(qp_.get()));
    EXPECT_EQ(IBV_QPS_RESET, qp_->state);
  }
}

TEST_F(QpStates, EveryStateButResetCanBeLeftForError) {
  Rule("QPM-13");
  for (const ibv_qp_state state :
       {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_ERR}) {
    SCOPED_TRACE(state);
    Enter(state);
    EXPECT_EQ(0, Move(qp_.get(), IBV_QPS_ERR));
    EXPECT_EQ(IBV_QPS_ERR, StateOf(qp_.get()));
  }
  Enter(IBV_QPS_RTS);
  const Transition with_attribute = {IBV_QPS_RTS, IBV_QPS_ERR, 0, 0};
  EXPECT_EQ(EINVAL, Modify(with_attribute, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER));
  EXPECT_EQ(IBV_QPS_RTS, StateOf(qp_.get()));
}

TEST_F(QpStates, MaskBitsBeyondTheStandardOnesAreNotSupported) {
  Rule("QPM-01");
  Enter(IBV_QPS_RTS);
  ibv_qp_attr attr = Attributes(IBV_QPS_RTS, IBV_QPS_RTS);
  EXPECT_EQ(EOPNOTSUPP, ibv_modify_qp(qp_.get(), &attr, IBV_QP_STATE | 1 << 26));
}

TEST_F(QpStates, ValuesOutOfRangeAreRefusedAndChangeNothing) {
  Rule("QPM-02, QPM-18");
  ibv_qp_attr attr = Attributes(IBV_QPS_RESET, IBV_QPS_INIT);
  Enter(IBV_QPS_RESET);
  for (const int port : {0, device_.attributes().phys_port_cnt + 1}) {
    attr.port_num = static_cast<uint8_t>(port);
    EXPECT_EQ(EINVAL, ibv_modify_qp(qp_.get(), &attr, kInitMask)) << port;
  }
  Enter(IBV_QPS_INIT);
  attr = Attributes(IBV_QPS_INIT, IBV_QPS_RTR);
  attr.path_mtu = static_cast<ibv_mtu>(6);
  EXPECT_EQ(EINVAL, ibv_modify_qp(qp_.get(), &attr, kRtrMask));
  attr = Attributes(IBV_QPS_INIT, IBV_QPS_RTR);
  attr.ah_attr.port_num = static_cast<uint8_t>(device_.attributes().phys_port_cnt + 1);
  EXPECT_EQ(EINVAL, ibv_modify_qp(qp_.get(), &attr, kRtrMask));
  EXPECT_EQ(IBV_QPS_INIT, StateOf(qp_.get()));
  Enter(IBV_QPS_RTR);
  attr = Attributes(IBV_QPS_RTR, IBV_QPS_RTS);
  attr.timeout = 32;
  EXPECT_EQ(EINVAL, ibv_modify_qp(qp_.get(), &attr, kRtsMask));
  if (device_.attributes().max_qp_init_rd_atom < UINT8_MAX) {
    attr = Attributes(IBV_QPS_RTR, IBV_QPS_RTS);
    attr.max_rd_atomic = static_cast<uint8_t>(device_.attributes().max_qp_init_rd_atom + 1);
    EXPECT_EQ(EINVAL, ibv_modify_qp(qp_.get(), &attr, kRtsMask));
  }
  EXPECT_EQ(IBV_QPS_RTR, StateOf(qp_.get()));
}

TEST_F(QpStates, AlternatePathIsRefusedOnEthernet) {
  Rule("QPM-05");
  if (device_.port_attributes().link_layer != IBV_LINK_LAYER_ETHERNET) {
    GTEST_SKIP() << "the port is InfiniBand";
  }
  Enter(IBV_QPS_INIT);
  const Transition to_rtr = {IBV_QPS_INIT, IBV_QPS_RTR, 0, 0};
  EXPECT_EQ(EINVAL, Modify(to_rtr, kRtrMask | IBV_QP_ALT_PATH));
  EXPECT_EQ(IBV_QPS_INIT, StateOf(qp_.get()));
}

TEST_F(QpStates, QueryShowsWhatWasSet) {
  Rule("QPM-23");
  const ConnectOptions options{.mtu = IBV_MTU_512,
                               .rnr_retry = 5,
                               .min_rnr_timer = 17,
                               .timeout = 13,
                               .retry_count = 6,
                               .psn = 0x123456,
                               .access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
                               .rd_atomic = 2};
  ibv_qp_attr wanted = ConnectionAttributes(device_, peer_->qp_num, options);
  wanted.sq_psn = 0x654321;
  BringTo(device_, qp_.get(), IBV_QPS_RTS, wanted);
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(0, ibv_query_qp(qp_.get(), &attr, (IBV_QP_DEST_QPN << 1) - 1, &init));
  EXPECT_EQ(IBV_QPS_RTS, attr.qp_state);
  EXPECT_EQ(IBV_QPS_RTS, attr.cur_qp_state);
  EXPECT_EQ(IBV_MTU_512, attr.path_mtu);
  EXPECT_EQ(5, attr.rnr_retry);
  EXPECT_EQ(17, attr.min_rnr_timer);
  EXPECT_EQ(13, attr.timeout);
  EXPECT_EQ(6, attr.retry_cnt);
  EXPECT_EQ(0x123456u, attr.rq_psn);
  EXPECT_EQ(0x654321u, attr.sq_psn);
  EXPECT_EQ(peer_->qp_num, attr.dest_qp_num);
  EXPECT_EQ(2, attr.max_rd_atomic);
  EXPECT_EQ(2, attr.max_dest_rd_atomic);
  EXPECT_EQ(device_.port(), attr.port_num);
  EXPECT_EQ(0, attr.pkey_index);
  constexpr unsigned kRemote =
      IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  EXPECT_EQ(wanted.qp_access_flags, attr.qp_access_flags & kRemote);
  EXPECT_EQ(device_.port(), attr.ah_attr.port_num);
  EXPECT_EQ(wanted.ah_attr.is_global, attr.ah_attr.is_global);
  if (attr.ah_attr.is_global) {
    EXPECT_EQ(0, memcmp(&wanted.ah_attr.grh.dgid, &attr.ah_attr.grh.dgid, sizeof(ibv_gid)));
    EXPECT_EQ(wanted.ah_attr.grh.sgid_index, attr.ah_attr.grh.sgid_index);
  }
}

TEST_F(QpStates, PacketNumbersAreCutTo24Bits) {
  Rule("QPM-07");
  ibv_qp_attr attr = ConnectionAttributes(device_, peer_->qp_num, {});
  attr.rq_psn = 0xff123456;
  attr.sq_psn = 0xff654321;
  BringTo(device_, qp_.get(), IBV_QPS_RTS, attr);
  ibv_qp_init_attr init{};
  ASSERT_EQ(0, ibv_query_qp(qp_.get(), &attr, IBV_QP_RQ_PSN | IBV_QP_SQ_PSN, &init));
  EXPECT_EQ(0x123456u, attr.rq_psn);
  EXPECT_EQ(0x654321u, attr.sq_psn);
}

TEST_F(QpStates, ReadyToSendCanChangeItsAccessFlags) {
  Rule("QPM-24");
  const Link link = MakeLink();
  ibv_qp_attr attr{};
  attr.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
  ASSERT_EQ(0, ibv_modify_qp(link.responder.get(), &attr, IBV_QP_ACCESS_FLAGS));
  ASSERT_EQ(0, PostSend(link.requester.get(), {.segments = {source_.Sge(0, 8)},
                                               .opcode = IBV_WR_RDMA_WRITE,
                                               .remote_address = sink_.address(),
                                               .rkey = sink_.rkey()}));
  EXPECT_EQ(IBV_WC_REM_INV_REQ_ERR, PollOne(device_, requester_cq_.get()).status);
  EXPECT_TRUE(sink_.Untouched(0, 8));
}

}  // namespace
}  // namespace simhca::conformance
