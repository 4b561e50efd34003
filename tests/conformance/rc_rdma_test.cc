#include <algorithm>
#include <cerrno>

#include "tests/conformance/fixture.h"

namespace simhca::conformance {
namespace {

class RcRdma : public RcTest {
 protected:
  SendRequest Write(size_t from, size_t to, size_t length) const {
    return {.segments = {source_.Sge(from, length)},
            .opcode = IBV_WR_RDMA_WRITE,
            .remote_address = sink_.address(to),
            .rkey = sink_.rkey()};
  }
  SendRequest Read(size_t from, size_t to, size_t length) const {
    SendRequest request = Write(to, from, length);
    request.opcode = IBV_WR_RDMA_READ;
    return request;
  }
};

TEST_F(RcRdma, WriteTouchesExactlyItsRange) {
  const Link link = MakeLink({.mtu = IBV_MTU_256});
  source_.Fill(1, 0, 1000);
  SendAndExpectSuccess(link.requester.get(), Write(0, 333, 1000));
  EXPECT_TRUE(sink_.Holds(1, 333, 1000));
  EXPECT_TRUE(sink_.Untouched(0, 333));
  EXPECT_TRUE(sink_.Untouched(1333, sink_.size() - 1333));
}

TEST_F(RcRdma, WriteGathersSegments) {
  const Link link = MakeLink({.mtu = IBV_MTU_256});
  source_.Fill(1, 0, 900);
  SendRequest write = Write(0, 0, 0);
  write.segments = {source_.Sge(0, 300), source_.Sge(300, 1), source_.Sge(301, 599)};
  SendAndExpectSuccess(link.requester.get(), write);
  EXPECT_TRUE(sink_.Holds(1, 0, 900));
}

TEST_F(RcRdma, ReadScattersIntoSegments) {
  const Link link = MakeLink({.mtu = IBV_MTU_256});
  sink_.Fill(2, 0, 900);
  SendRequest read = Read(0, 0, 0);
  read.segments = {source_.Sge(0, 300), source_.Sge(5000, 1), source_.Sge(9000, 599)};
  SendAndExpectSuccess(link.requester.get(), read);
  EXPECT_TRUE(source_.Holds(2, 0, 300, 0));
  EXPECT_TRUE(source_.Holds(2, 5000, 1, 300));
  EXPECT_TRUE(source_.Holds(2, 9000, 599, 301));
  EXPECT_TRUE(source_.Untouched(300, 4700));
}

TEST_F(RcRdma, InlineWriteTakesItsDataAtThePost) {
  Rule("POST-12");
  const Link link = MakeLink();
  source_.Fill(3, 0, 48);
  SendRequest write = Write(0, 0, 48);
  write.flags |= IBV_SEND_INLINE;
  write.segments[0].lkey = 0;
  ASSERT_EQ(0, PostSend(link.requester.get(), write));
  source_.Clear();
  EXPECT_EQ(IBV_WC_SUCCESS, PollOne(device_, requester_cq_.get()).status);
  EXPECT_TRUE(sink_.Holds(3, 0, 48));
}

TEST_F(RcRdma, MoreReadsThanMayBeInFlightAllComplete) {
  for (const uint8_t depth : {1, 4}) {
    SCOPED_TRACE(static_cast<int>(depth));
    const Link link = MakeLink({.mtu = IBV_MTU_256, .rd_atomic = depth});
    source_.Clear();
    constexpr size_t kReads = 32;
    constexpr size_t kBytes = 1000;
    for (size_t i = 0; i < kReads; ++i) {
      sink_.Fill(static_cast<uint32_t>(100 + i), i * kBytes, kBytes);
      SendRequest read = Read(i * kBytes, i * kBytes, kBytes);
      read.wr_id = i;
      ASSERT_EQ(0, PostSend(link.requester.get(), read));
    }
    const std::vector<ibv_wc> wcs = Poll(device_, requester_cq_.get(), kReads);
    ASSERT_EQ(kReads, wcs.size());
    for (size_t i = 0; i < kReads; ++i) {
      EXPECT_EQ(IBV_WC_SUCCESS, wcs[i].status);
      EXPECT_EQ(i, wcs[i].wr_id);
      EXPECT_TRUE(source_.Holds(static_cast<uint32_t>(100 + i), i * kBytes, kBytes)) << i;
    }
  }
}

TEST_F(RcRdma, DifferentOperationsOfOneQpCompleteInTheOrderPosted) {
  const Link link = MakeLink({.mtu = IBV_MTU_256});
  constexpr ibv_wr_opcode kOpcodes[] = {IBV_WR_RDMA_READ, IBV_WR_SEND,       IBV_WR_RDMA_WRITE,
                                        IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_SEND};
  for (uint64_t id = 0; id < std::size(kOpcodes); ++id) {
    if (kOpcodes[id] == IBV_WR_SEND) {
      ASSERT_EQ(0, PostReceive(link.responder.get(), id, {sink_.Sge(30000, 2000)}));
    }
    SendRequest request = Write(id * 2000, id * 2000, 2000 - id);
    request.opcode = kOpcodes[id];
    request.wr_id = id;
    ASSERT_EQ(0, PostSend(link.requester.get(), request));
  }
  const std::vector<ibv_wc> wcs = Poll(device_, requester_cq_.get(), std::size(kOpcodes));
  EXPECT_EQ((std::vector<uint64_t>{0, 1, 2, 3, 4, 5}), IdsOf(wcs));
  EXPECT_EQ(std::vector<ibv_wc_status>(6, IBV_WC_SUCCESS), StatusesOf(wcs));
}

TEST_F(RcRdma, FencedSendCarriesWhatAReadBeforeItBrought) {
  const Link link = MakeLink({.mtu = IBV_MTU_256});
  constexpr size_t kBytes = 8000;
  for (uint32_t round = 1; round <= 10; ++round) {
    sink_.Fill(round, 0, kBytes);
    source_.Clear();
    ASSERT_EQ(0, PostReceive(link.responder.get(), round, {sink_.Sge(kBytes, kBytes)}));
    SendRequest read = Read(0, 0, kBytes);
    read.flags = 0;
    ASSERT_EQ(0, PostSend(link.requester.get(), read));
    SendAndExpectSuccess(link.requester.get(), {.wr_id = round,
                                                .segments = {source_.Sge(0, kBytes)},
                                                .flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE});
    EXPECT_EQ(IBV_WC_SUCCESS, PollOne(device_, responder_cq_.get()).status);
    EXPECT_TRUE(sink_.Holds(round, kBytes, kBytes));
  }
}

TEST_F(RcRdma, RemoteAddressesCountFromTheIovaOfTheRegion) {
  Rule("MR-06");
  const Link link = MakeLink();
  std::vector<std::byte> memory(4096);
  // The place within the page has to be the same.
  const uint64_t iova = 0x7700000000 + (reinterpret_cast<uintptr_t>(memory.data()) & 4095);
  const Mr mr(ibv_reg_mr_iova(pd_.get(), memory.data(), memory.size(), iova, kAllAccess));
  ASSERT_NE(nullptr, mr);
  source_.Fill(4, 0, 100);
  SendRequest write = Write(0, 0, 100);
  write.remote_address = iova + 50;
  write.rkey = mr->rkey;
  SendAndExpectSuccess(link.requester.get(), write);
  EXPECT_TRUE(std::equal(memory.begin() + 50, memory.begin() + 150, source_.data()));

  SendRequest read = write;
  read.opcode = IBV_WR_RDMA_READ;
  read.segments = {{iova + 1000, 100, mr->lkey}};
  SendAndExpectSuccess(link.requester.get(), read);
  EXPECT_TRUE(std::equal(memory.begin() + 1000, memory.begin() + 1100, source_.data()));
}

TEST_F(RcRdma, LengthZeroChecksNeitherKeyNorAddress) {
  Rule("POST-15");
  const Link link = MakeLink();
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
    SendAndExpectSuccess(link.requester.get(),
                         {.opcode = opcode, .remote_address = 8, .rkey = 0x1234});
  }
}

// Requests that the responder must refuse; the requester learns which way, the responder's owner
// by an event.
struct Refusal {
  ibv_wc_status status;
  ibv_event_type event;
};
constexpr Refusal kAccessError = {IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR};
constexpr Refusal kInvalidRequest = {IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR};

class RcRemoteAccess : public RcRdma {
 protected:
  void ExpectRefused(const Link& link, SendRequest request, Refusal refusal) {
    request.wr_id = 1;
    ASSERT_EQ(0, PostReceive(link.responder.get(), 50, {sink_.Sge(0, 32)}));
    ASSERT_EQ(0, PostSend(link.requester.get(), request));
    ASSERT_EQ(0, PostSend(link.requester.get(), {.wr_id = 2, .segments = {source_.Sge(0, 8)}}));
    const std::vector<ibv_wc> wcs = Poll(device_, requester_cq_.get(), 2);
    EXPECT_EQ((std::vector<uint64_t>{1, 2}), IdsOf(wcs));
    EXPECT_EQ((std::vector<ibv_wc_status>{refusal.status, IBV_WC_WR_FLUSH_ERR}), StatusesOf(wcs));
    const ibv_wc flushed = PollOne(device_, responder_cq_.get());
    EXPECT_EQ(IBV_WC_WR_FLUSH_ERR, flushed.status);
    EXPECT_EQ(50u, flushed.wr_id);
    EXPECT_EQ(IBV_QPS_ERR, StateOf(link.requester.get()));
    EXPECT_EQ(IBV_QPS_ERR, StateOf(link.responder.get()));
    const std::vector<ibv_async_event> events = device_.AsyncEvents(kQuiet);
    ASSERT_EQ(1u, events.size());
    EXPECT_EQ(refusal.event, events[0].event_type);
    EXPECT_EQ(link.responder.get(), events[0].element.qp);
    EXPECT_TRUE(sink_.Untouched(0, sink_.size()));
  }
  void ExpectBothRefused(SendRequest request) {
    for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
      SCOPED_TRACE(opcode == IBV_WR_RDMA_READ ? "read" : "write");
      request.opcode = opcode;
      ExpectRefused(MakeLink(), request, kAccessError);
    }
  }
};

TEST_F(RcRemoteAccess, UnknownKey) {
  Rule("CE-07");
  SendRequest request = Write(0, 0, 100);
  request.rkey ^= 0x5500;
  ExpectBothRefused(request);
}

TEST_F(RcRemoteAccess, RangePastTheEndOfTheRegion) {
  Rule("CE-07");
  ExpectBothRefused(Write(0, sink_.size() - 99, 100));
}

TEST_F(RcRemoteAccess, RangeBeforeTheRegion) {
  Rule("CE-07");
  SendRequest request = Write(0, 0, 100);
  request.remote_address -= 1;
  ExpectBothRefused(request);
}

TEST_F(RcRemoteAccess, RangeThatWrapsAroundTheAddressSpace) {
  Rule("CE-07");
  SendRequest request = Write(0, 0, 100);
  request.remote_address = UINT64_MAX - 50;
  ExpectBothRefused(request);
}

TEST_F(RcRemoteAccess, RegionOfAnotherProtectionDomain) {
  Rule("CE-07");
  const Pd other = MakePd(device_);
  Buffer buffer(other.get(), 4096);
  SendRequest request = Write(0, 0, 100);
  request.remote_address = buffer.address();
  request.rkey = buffer.rkey();
  ExpectBothRefused(request);
  EXPECT_TRUE(buffer.Untouched(0, buffer.size()));
}

TEST_F(RcRemoteAccess, RegionThatWasDeregistered) {
  Rule("MR-10, CE-07");
  SendRequest request = Write(0, 0, 100);
  {
    const Mr gone = Register(pd_.get(), {sink_.data(), sink_.size()});
    request.rkey = gone->rkey;
  }
  ExpectBothRefused(request);
}

TEST_F(RcRemoteAccess, RegionWithoutRemoteWrite) {
  Rule("CE-07");
  const Mr mr = Register(pd_.get(), {sink_.data(), sink_.size()},
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
  SendRequest request = Write(0, 0, 100);
  request.rkey = mr->rkey;
  ExpectRefused(MakeLink(), request, kAccessError);
}

TEST_F(RcRemoteAccess, RegionWithoutRemoteRead) {
  Rule("CE-07");
  const Mr mr = Register(pd_.get(), {sink_.data(), sink_.size()},
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  SendRequest request = Read(0, 0, 100);
  request.rkey = mr->rkey;
  ExpectRefused(MakeLink(), request, kAccessError);
}

TEST_F(RcRemoteAccess, QpThatDoesNotAllowWrites) {
  Rule("CE-08");
  const ConnectOptions options{.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ};
  ExpectRefused(MakeLink(options), Write(0, 0, 100), kInvalidRequest);
}

TEST_F(RcRemoteAccess, QpThatDoesNotAllowReads) {
  Rule("CE-08");
  const ConnectOptions options{.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE};
  ExpectRefused(MakeLink(options), Read(0, 0, 100), kInvalidRequest);
}

TEST_F(RcRemoteAccess, OtherConnectionsOfTheDeviceWorkOn) {
  Rule("CE-07");
  const Link healthy = MakeLink();
  SendRequest request = Write(0, 0, 100);
  request.rkey ^= 0x5500;
  ExpectRefused(MakeLink(), request, kAccessError);
  source_.Fill(1, 0, 100);
  SendAndExpectSuccess(healthy.requester.get(), Write(0, 0, 100));
  EXPECT_TRUE(sink_.Holds(1, 0, 100));
}

}  // namespace
}  // namespace simhca::conformance
