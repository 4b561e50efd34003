#include <cerrno>
#include <tuple>

#include "tests/conformance/qp_states.h"

namespace simhca::conformance {
namespace {

// What ibv_modify_qp checks besides the attributes of the state table, and in which order.
class QpModify : public QpStates {
 protected:
  static constexpr ibv_qp_state kStates[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
                                             IBV_QPS_RTS,   IBV_QPS_SQD,  IBV_QPS_ERR};
  static constexpr int kEveryAttribute =
      (kInitMask | kRtrMask | kRtsMask) & ~IBV_QP_STATE & ~IBV_QP_CUR_STATE;

  static bool InTable(ibv_qp_state from, ibv_qp_state to) {
    if (to == IBV_QPS_RESET || (to == IBV_QPS_ERR && from != IBV_QPS_RESET)) return true;
    for (const Transition& transition : kTransitions) {
      if (transition.from == from && transition.to == to) return true;
    }
    return false;
  }
  ibv_qp_attr Query() const {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    EXPECT_EQ(0, ibv_query_qp(qp_.get(), &attr, (IBV_QP_DEST_QPN << 1) - 1, &init));
    return attr;
  }
  // Whatever a modify can change.
  static auto Changeable(const ibv_qp_attr& attr) {
    return std::make_tuple(attr.qp_state, attr.path_mtu, attr.rq_psn, attr.sq_psn, attr.dest_qp_num,
                           attr.qp_access_flags, attr.pkey_index, attr.max_rd_atomic,
                           attr.max_dest_rd_atomic, attr.min_rnr_timer, attr.port_num, attr.timeout,
                           attr.retry_cnt, attr.rnr_retry, attr.ah_attr.port_num,
                           attr.ah_attr.grh.sgid_index);
  }
  // `attr` with `mask` is refused with `error`, and the queue pair is as it was.
  void ExpectRefused(ibv_qp_attr attr, int mask, int error = EINVAL) {
    const auto before = Changeable(Query());
    const ibv_qp_state state = qp_->state;
    EXPECT_EQ(error, ibv_modify_qp(qp_.get(), &attr, mask));
    EXPECT_EQ(before, Changeable(Query()));
    EXPECT_EQ(state, qp_->state);
  }
  // A ready responder for `qp_`, and one message from there to here and back.
  void ExpectWorks() {
    ASSERT_EQ(0, Move(peer_.get(), IBV_QPS_RESET));
    BringTo(device_, peer_.get(), IBV_QPS_RTS, ConnectionAttributes(device_, qp_->qp_num, {}));
    ASSERT_EQ(0, PostReceive(peer_.get(), 1, {sink_.Sge(0, 64)}));
    ASSERT_EQ(0, PostReceive(qp_.get(), 2, {source_.Sge(64, 64)}));
    SendAndExpectSuccess(qp_.get(), {.wr_id = 3, .segments = {source_.Sge(0, 64)}});
    EXPECT_EQ(1u, PollOne(device_, responder_cq_.get()).wr_id);
    ASSERT_EQ(0, PostSend(peer_.get(), {.wr_id = 4, .segments = {sink_.Sge(0, 64)}}));
    EXPECT_EQ(4u, PollOne(device_, responder_cq_.get()).wr_id);
    EXPECT_EQ(2u, PollOne(device_, requester_cq_.get()).wr_id);
  }
};

TEST_F(QpModify, EveryMoveThatTheTableLacksIsRefusedWhateverIsGiven) {
  Rule("QPM-12, QPM-20");
  for (const ibv_qp_state from : kStates) {
    Enter(from);
    for (int to = IBV_QPS_RESET; to <= IBV_QPS_ERR; ++to) {
      const auto target = static_cast<ibv_qp_state>(to);
      if (InTable(from, target)) continue;
      for (const int mask : {0, kInitMask, kRtrMask, kRtsMask, kEveryAttribute}) {
        SCOPED_TRACE(Describe({from, target, 0, 0}, mask));
        ExpectRefused(Attributes(from, target), mask | IBV_QP_STATE);
      }
    }
  }
}

TEST_F(QpModify, EveryMoveToResetOrErrorRefusesAttributes) {
  Rule("QPM-11");
  for (const ibv_qp_state to : {IBV_QPS_RESET, IBV_QPS_ERR}) {
    for (const ibv_qp_state from : kStates) {
      if (!InTable(from, to)) continue;
      Enter(from);
      for (int bit = IBV_QP_STATE << 1; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
        SCOPED_TRACE(Describe({from, to, 0, 0}, bit));
        ExpectRefused(Attributes(from, to), IBV_QP_STATE | bit);
      }
    }
  }
}

TEST_F(QpModify, StatesThatDoNotExistAreRefused) {
  Rule("QPM-06");
  for (const ibv_qp_state from : kStates) {
    Enter(from);
    for (const int to : {7, 8, 255, 256, 0x7fffffff}) {
      ExpectRefused(Attributes(from, static_cast<ibv_qp_state>(to)), IBV_QP_STATE);
    }
  }
}

TEST_F(QpModify, UnknownMaskBitsAreReportedBeforeAllElse) {
  Rule("QPM-01");
  Enter(IBV_QPS_INIT);
  for (const int bit : {1 << 21, 1 << 22, 1 << 24, 1 << 26, 1 << 30}) {
    ibv_qp_attr attr = Attributes(IBV_QPS_INIT, IBV_QPS_RTR);
    ExpectRefused(attr, kRtrMask | bit, EOPNOTSUPP);
    attr.ah_attr.port_num = 0;
    ExpectRefused(attr, kRtrMask | bit, EOPNOTSUPP);
    attr.qp_state = static_cast<ibv_qp_state>(9);
    ExpectRefused(attr, kRtrMask | bit, EOPNOTSUPP);
    attr.qp_state = IBV_QPS_SQD;
    ExpectRefused(attr, bit | IBV_QP_STATE, EOPNOTSUPP);
  }
}

TEST_F(QpModify, CurrentStateMayBeNamedOnlyWhereAQpCanLeaveItByItself) {
  Rule("QPM-15");
  for (const ibv_qp_state from : {IBV_QPS_RTS, IBV_QPS_SQD}) {
    Enter(from);
    for (const int named :
         {int{IBV_QPS_RESET}, int{IBV_QPS_INIT}, int{IBV_QPS_SQE}, int{IBV_QPS_ERR}, 7, 256}) {
      ibv_qp_attr attr = Attributes(static_cast<ibv_qp_state>(named), IBV_QPS_RTS);
      ExpectRefused(attr, IBV_QP_STATE | IBV_QP_CUR_STATE);
    }
    ibv_qp_attr attr = Attributes(from, IBV_QPS_RTS);
    EXPECT_EQ(0, ibv_modify_qp(qp_.get(), &attr, IBV_QP_STATE | IBV_QP_CUR_STATE));
  }
}

TEST_F(QpModify, CurrentStateDecidesWhichAttributesAreRequired) {
  Rule("QPM-16");
  Enter(IBV_QPS_RTS);
  ExpectRefused(Attributes(IBV_QPS_RTR, IBV_QPS_RTS), IBV_QP_STATE | IBV_QP_CUR_STATE);
  Enter(IBV_QPS_RTR);
  ExpectRefused(Attributes(IBV_QPS_RTR, IBV_QPS_RTS), IBV_QP_STATE | IBV_QP_CUR_STATE);
  ibv_qp_attr attr = Attributes(IBV_QPS_RTR, IBV_QPS_RTS);
  EXPECT_EQ(0, ibv_modify_qp(qp_.get(), &attr, kRtsMask | IBV_QP_CUR_STATE));
  ExpectWorks();
}

// Linux looks the transition up by it, the device knows better: a move from RTR cannot skip RTS.
TEST_F(QpModify, AWrongCurrentStateIsRefusedByTheDevice) {
  Rule("QPM-17");
  Enter(IBV_QPS_RTR);
  ExpectRefused(Attributes(IBV_QPS_RTS, IBV_QPS_SQD), IBV_QP_STATE | IBV_QP_CUR_STATE);
  ExpectRefused(Attributes(IBV_QPS_RTS, IBV_QPS_RTS), IBV_QP_STATE | IBV_QP_CUR_STATE);
  ExpectRefused(Attributes(IBV_QPS_SQD, IBV_QPS_RTS), IBV_QP_STATE | IBV_QP_CUR_STATE);
  ibv_qp_attr attr = Attributes(IBV_QPS_RTR, IBV_QPS_RTS);
  ASSERT_EQ(0, ibv_modify_qp(qp_.get(), &attr, kRtsMask));
  ExpectWorks();
}

TEST_F(QpModify, PortsOfThePathAreChecked) {
  Rule("QPM-02");
  const auto beyond = static_cast<uint8_t>(device_.attributes().phys_port_cnt + 1);
  for (const uint8_t port : {uint8_t{0}, beyond, uint8_t{255}}) {
    SCOPED_TRACE(int{port});
    Enter(IBV_QPS_RESET);
    ibv_qp_attr attr = Attributes(IBV_QPS_RESET, IBV_QPS_INIT);
    attr.port_num = port;
    ExpectRefused(attr, kInitMask);
    Enter(IBV_QPS_INIT);
    ExpectRefused(attr, IBV_QP_PORT);
    attr = Attributes(IBV_QPS_INIT, IBV_QPS_RTR);
    attr.ah_attr.port_num = port;
    ExpectRefused(attr, kRtrMask);
    Enter(IBV_QPS_SQD);
    attr = Attributes(IBV_QPS_SQD, IBV_QPS_SQD);
    attr.ah_attr.port_num = port;
    ExpectRefused(attr, IBV_QP_AV);
    ExpectRefused(attr, IBV_QP_AV | IBV_QP_PORT);
  }
}

TEST_F(QpModify, ThePathMustUseThePortOfTheQp) {
  Rule("QPM-03");
  if (device_.attributes().phys_port_cnt < 2) GTEST_SKIP() << "the device has one port";
  Enter(IBV_QPS_INIT);
  ibv_qp_attr attr = Attributes(IBV_QPS_INIT, IBV_QPS_RTR);
  attr.ah_attr.port_num = device_.port() == 1 ? 2 : 1;
  ExpectRefused(attr, kRtrMask);
}

TEST_F(QpModify, PathWithoutAGlobalRouteIsRefusedOnEthernet) {
  Rule("QPM-04");
  if (device_.port_attributes().link_layer != IBV_LINK_LAYER_ETHERNET) {
    GTEST_SKIP() << "the port is InfiniBand";
  }
  Enter(IBV_QPS_INIT);
  ibv_qp_attr attr = Attributes(IBV_QPS_INIT, IBV_QPS_RTR);
  attr.ah_attr.is_global = 0;
  ExpectRefused(attr, kRtrMask);
}

TEST_F(QpModify, AlternatePathsAreRefusedOnEthernetInEveryState) {
  Rule("QPM-05");
  if (device_.port_attributes().link_layer != IBV_LINK_LAYER_ETHERNET) {
    GTEST_SKIP() << "the port is InfiniBand";
  }
  for (const Transition& transition : kTransitions) {
    if ((transition.optional & IBV_QP_ALT_PATH) == 0) continue;
    SCOPED_TRACE(Describe(transition, IBV_QP_ALT_PATH));
    Enter(transition.from);
    ExpectRefused(Attributes(transition.from, transition.to),
                  transition.required | IBV_QP_STATE | IBV_QP_ALT_PATH);
  }
}

TEST_F(QpModify, ValuesBeyondTheirRangeAreRefused) {
  Rule("QPM-18");
  Enter(IBV_QPS_INIT);
  ibv_qp_attr attr = Attributes(IBV_QPS_INIT, IBV_QPS_RTR);
  for (const int mtu : {0, 6, 255}) {
    attr.path_mtu = static_cast<ibv_mtu>(mtu);
    ExpectRefused(attr, kRtrMask);
  }
  if (device_.port_attributes().active_mtu < IBV_MTU_4096) {
    attr.path_mtu = static_cast<ibv_mtu>(device_.port_attributes().active_mtu + 1);
    ExpectRefused(attr, kRtrMask);
  }
  attr = Attributes(IBV_QPS_INIT, IBV_QPS_RTR);
  attr.pkey_index = device_.port_attributes().pkey_tbl_len;
  ExpectRefused(attr, IBV_QP_PKEY_INDEX);
  if (device_.attributes().max_qp_rd_atom < UINT8_MAX) {
    attr.max_dest_rd_atomic = static_cast<uint8_t>(device_.attributes().max_qp_rd_atom + 1);
    ExpectRefused(attr, kRtrMask);
  }
  Enter(IBV_QPS_RTR);
  attr = Attributes(IBV_QPS_RTR, IBV_QPS_RTS);
  attr.timeout = 32;
  ExpectRefused(attr, kRtsMask);
}

// Fields of three and five bits: some devices cut them.
TEST_F(QpModify, CountsBeyondTheirRangeAreRefusedOnTheSimulator) {
  Rule("QPM-19");
  if (!device_.simulated()) GTEST_SKIP() << "devices differ";
  Enter(IBV_QPS_INIT);
  ibv_qp_attr attr = Attributes(IBV_QPS_INIT, IBV_QPS_RTR);
  attr.min_rnr_timer = 32;
  ExpectRefused(attr, kRtrMask);
  Enter(IBV_QPS_RTR);
  attr = Attributes(IBV_QPS_RTR, IBV_QPS_RTS);
  attr.retry_cnt = 8;
  ExpectRefused(attr, kRtsMask);
  attr = Attributes(IBV_QPS_RTR, IBV_QPS_RTS);
  attr.rnr_retry = 8;
  ExpectRefused(attr, kRtsMask);
}

TEST_F(QpModify, OneBadValueLeavesTheGoodOnesUnset) {
  Rule("QPM-20");
  Enter(IBV_QPS_SQD);
  ibv_qp_attr attr = Attributes(IBV_QPS_SQD, IBV_QPS_SQD);
  attr.min_rnr_timer = 20;
  attr.rnr_retry = 1;
  attr.retry_cnt = 1;
  attr.qp_access_flags = 0;
  attr.timeout = 32;
  ExpectRefused(attr, IBV_QP_MIN_RNR_TIMER | IBV_QP_RNR_RETRY | IBV_QP_RETRY_CNT |
                          IBV_QP_ACCESS_FLAGS | IBV_QP_TIMEOUT);
  ASSERT_EQ(0, Move(qp_.get(), IBV_QPS_RTS));
  ExpectWorks();
}

TEST_F(QpModify, InitCanChangeWhatItWasGiven) {
  Rule("QPM-10");
  Enter(IBV_QPS_INIT);
  ibv_qp_attr attr = Attributes(IBV_QPS_INIT, IBV_QPS_INIT);
  attr.qp_access_flags = IBV_ACCESS_REMOTE_READ;
  ASSERT_EQ(0, ibv_modify_qp(qp_.get(), &attr, IBV_QP_ACCESS_FLAGS));
  constexpr unsigned kRemote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  EXPECT_EQ(unsigned{IBV_ACCESS_REMOTE_READ}, Query().qp_access_flags & kRemote);
  EXPECT_EQ(IBV_QPS_INIT, Query().qp_state);
}

// The structure's own field is the library's memory of successful moves and queries.
TEST_F(QpModify, TheStateFieldFollowsMovesAndQueriesOnly) {
  Rule("QPM-21");
  const Link link = MakeLink();
  ibv_qp_attr attr{};
  attr.min_rnr_timer = 5;
  ASSERT_EQ(0, ibv_modify_qp(link.requester.get(), &attr, IBV_QP_MIN_RNR_TIMER));
  EXPECT_EQ(IBV_QPS_RTS, link.requester->state);
  ASSERT_EQ(0, PostSend(link.requester.get(), {.segments = {{source_.address(), 8, 0x5500}}}));
  EXPECT_EQ(IBV_WC_LOC_PROT_ERR, PollOne(device_, requester_cq_.get()).status);
  EXPECT_EQ(IBV_QPS_RTS, link.requester->state) << "nobody has told the library";
  EXPECT_EQ(EINVAL, ibv_modify_qp(link.requester.get(), &attr, IBV_QP_MIN_RNR_TIMER));
  EXPECT_EQ(IBV_QPS_RTS, link.requester->state);
  ibv_qp_init_attr init{};
  ASSERT_EQ(0, ibv_query_qp(link.requester.get(), &attr, IBV_QP_CAP, &init));
  EXPECT_EQ(IBV_QPS_RTS, link.requester->state) << "the state was not asked for";
  EXPECT_EQ(IBV_QPS_ERR, StateOf(link.requester.get()));
  EXPECT_EQ(IBV_QPS_ERR, link.requester->state);
}

TEST_F(QpModify, AQpThatFailedCanBeResetAndNothingElse) {
  Rule("QPM-22");
  const Link link = MakeLink();
  ASSERT_EQ(0, PostSend(link.requester.get(), {.segments = {{source_.address(), 8, 0x5500}}}));
  EXPECT_EQ(IBV_WC_LOC_PROT_ERR, PollOne(device_, requester_cq_.get()).status);
  for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD}) {
    EXPECT_EQ(EINVAL, Move(link.requester.get(), state)) << state;
  }
  EXPECT_EQ(0, Move(link.requester.get(), IBV_QPS_ERR));
  EXPECT_EQ(0, Move(link.requester.get(), IBV_QPS_RESET));
}

}  // namespace
}  // namespace simhca::conformance
