#include <array>
#include <atomic>
#include <cerrno>
#include <map>
#include <set>
#include <thread>

#include "tests/conformance/fixture.h"

namespace simhca::conformance {
namespace {

// Several threads on one SRQ and one receive CQ.
class Threads : public SrqTest {
 protected:
  static constexpr uint32_t kThreads = 2;
  static constexpr uint32_t kLinksPerThread = 2;
  static constexpr uint32_t kMessagesPerLink = 400;
  static constexpr uint32_t kTotal = kThreads * kLinksPerThread * kMessagesPerLink;
  static constexpr uint32_t kReceives = 48;
  static constexpr uint32_t kInFlight = 8;
  static constexpr size_t kBytes = 700;  // three packets

  Threads() : receives_(pd_.get(), kReceives * kBytes) {}

  // Notes the first thing that went wrong; every thread then stops.
  void Fail(const char* what) {
    const char* none = nullptr;
    failure_.compare_exchange_strong(none, what);
  }
  void Check(bool condition, const char* what) {
    if (!condition) Fail(what);
  }

  // Takes one receive completion, if there is one, and posts its buffer again.
  bool ReceiveOne() {
    ibv_wc wc{};
    if (ibv_poll_cq(responder_cq_.get(), 1, &wc) != 1) return false;
    if (wc.status != IBV_WC_SUCCESS || wc.wr_id >= kReceives) {
      Fail("a receive failed");
      return true;
    }
    Check(wc.byte_len == kBytes, "a message has the wrong length");
    Check(posted_[wc.wr_id].exchange(false), "a receive completed twice");
    Check(receives_.Holds(wc.imm_data, wc.wr_id * kBytes, kBytes), "a message has wrong bytes");
    received_.fetch_add(1);
    Repost(wc.wr_id);
    return true;
  }
  void Repost(uint64_t slot) {
    Check(!posted_[slot].exchange(true), "a receive was posted twice");
    Check(PostSrqReceive(srq_.get(), slot, {receives_.Sge(slot * kBytes, kBytes)}) == 0,
          "posting a receive was refused");
  }

  // One thread's sends.
  struct Sender {
    uint32_t first_seed;
    ibv_cq* cq;
    const std::vector<Link>* links;
    Buffer* messages;
    uint32_t sent[kLinksPerThread] = {};
    uint32_t completed[kLinksPerThread] = {};
  };

  // Posts what `sender` may have in flight; false if that is nothing.
  bool SendSome(Sender& sender) {
    bool any = false;
    for (uint32_t i = 0; i < kLinksPerThread; ++i) {
      uint32_t& sent = sender.sent[i];
      if (sent == kMessagesPerLink || sent - sender.completed[i] == kInFlight) continue;
      const size_t offset = (i * kInFlight + sent % kInFlight) * kBytes;
      const uint32_t seed = sender.first_seed + i * kMessagesPerLink + sent;
      sender.messages->Fill(seed, offset, kBytes);
      Check(PostSend((*sender.links)[i].requester.get(),
                     {.wr_id = i,
                      .segments = {sender.messages->Sge(offset, kBytes)},
                      .opcode = IBV_WR_SEND_WITH_IMM,
                      .imm_data = seed}) == 0,
            "posting a send was refused");
      ++sent;
      any = true;
    }
    return any;
  }
  bool CompleteOne(Sender& sender) {
    ibv_wc wc{};
    if (ibv_poll_cq(sender.cq, 1, &wc) != 1) return false;
    Check(wc.status == IBV_WC_SUCCESS, "a send failed");
    if (wc.wr_id < kLinksPerThread) ++sender.completed[wc.wr_id];
    return true;
  }

  // Sends and helps to receive until all threads' messages have arrived.  The limit is one of wall
  // time: virtual time may run far while the other thread has no processor.
  void Run(Sender& sender) {
    const auto end = std::chrono::steady_clock::now() + Seconds(60);
    while (failure_ == nullptr && received_ < kTotal) {
      const bool sent = SendSome(sender);
      const bool completed = CompleteOne(sender);
      const bool received = ReceiveOne();
      if (sent || completed || received) continue;
      std::this_thread::yield();
      Check(std::chrono::steady_clock::now() < end, "not everything arrived in time");
    }
  }

  Buffer receives_;
  std::array<std::atomic<bool>, kReceives> posted_{};
  std::atomic<uint32_t> received_{0};
  std::atomic<const char*> failure_{nullptr};
};

TEST_F(Threads, TwoThreadsShareAnSrqAndEveryMessageArrivesOnce) {
  Rule("SRQ-24");
  CreateSrq(kReceives);
  for (uint64_t slot = 0; slot < kReceives; ++slot) Repost(slot);
  std::vector<Cq> send_cqs;
  std::vector<std::vector<Link>> links(kThreads);
  std::vector<Buffer> messages;
  for (size_t i = 0; i < kThreads; ++i) {
    send_cqs.push_back(MakeCq(device_, 64));
    messages.emplace_back(pd_.get(), kLinksPerThread * kInFlight * kBytes);
    for (size_t j = 0; j < kLinksPerThread; ++j) {
      QpOptions options = RequesterOptions();
      options.send_cq = send_cqs.back().get();
      links[i].push_back({MakeQp(device_, pd_.get(), options),
                          MakeQp(device_, pd_.get(), ResponderOptions(srq_.get()))});
      Connect(device_, links[i][j].requester.get(), links[i][j].responder.get(),
              {.mtu = IBV_MTU_256, .min_rnr_timer = 1});
    }
  }
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      Sender sender{.first_seed = i * kLinksPerThread * kMessagesPerLink,
                    .cq = send_cqs[i].get(),
                    .links = &links[i],
                    .messages = &messages[i]};
      Run(sender);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(nullptr, failure_.load()) << failure_.load();
  EXPECT_EQ(kTotal, received_);
  links.clear();
  send_cqs.clear();
}

TEST_F(Threads, OneThreadCreatesAndDestroysWhileAnotherSends) {
  Rule("SRQ-24");
  CreateSrq(kReceives);
  const Link link = MakeLink({}, srq_.get());
  std::atomic<bool> done{false};
  std::thread churn([&] {
    while (!done) {
      const Cq cq = MakeCq(device_, 16);
      const Srq srq = MakeSrq(pd_.get(), 16);
      QpOptions options;
      options.send_cq = cq.get();
      options.receive_cq = cq.get();
      options.srq = srq.get();
      const Qp qp = MakeQp(device_, pd_.get(), options);
      Register(pd_.get(), {sink_.data(), 64});
      std::this_thread::yield();
    }
  });
  for (int round = 0; round < 300 && !HasFailure(); ++round) {
    EXPECT_EQ(0, P(1));
    SendAndReceive(link, 1);
  }
  done = true;
  churn.join();
}

// Four receivers, each with a CQ of its own, and four senders, all on one SRQ.  Receives may be
// posted by any receiver and be used by the queue pair of any other.
class EightThreads : public SrqTest {
 protected:
  static constexpr uint32_t kPairs = 4;
  static constexpr uint32_t kMessages = 5000;  // of each sender
  static constexpr uint32_t kTotal = kPairs * kMessages;
  static constexpr uint32_t kReceives = 64;
  static constexpr uint32_t kInFlight = 16;
  static constexpr size_t kBytes = 600;  // three packets

  EightThreads() : receives_(pd_.get(), kReceives * kBytes), messages_(pd_.get(), kSendBytes) {
    CreateSrq(kReceives);
    for (uint32_t i = 0; i < kPairs; ++i) {
      send_cqs_.push_back(MakeCq(device_, kInFlight));
      receive_cqs_.push_back(MakeCq(device_, kReceives));
      QpOptions requester = RequesterOptions();
      requester.send_cq = send_cqs_.back().get();
      QpOptions responder = ResponderOptions(srq_.get());
      responder.receive_cq = receive_cqs_.back().get();
      links_.push_back(
          {MakeQp(device_, pd_.get(), requester), MakeQp(device_, pd_.get(), responder)});
      Connect(device_, links_[i].requester.get(), links_[i].responder.get(),
              {.mtu = IBV_MTU_256, .min_rnr_timer = 1});
    }
  }
  ~EightThreads() override { links_.clear(); }

  void Check(bool condition, const char* what) {
    const char* none = nullptr;
    if (!condition) failure_.compare_exchange_strong(none, what);
  }
  // Whether there is more to do; gives the processor away after an idle turn.
  bool GoOn(bool idle) {
    if (idle) std::this_thread::yield();
    Check(std::chrono::steady_clock::now() < end_, "not everything arrived in time");
    return failure_ == nullptr;
  }

  // A wr_id names the buffer in its low bits and how often it was posted before in the others.
  void Repost(uint64_t wr_id) {
    const uint64_t slot = wr_id % kReceives;
    const int result = PostSrqReceive(srq_.get(), wr_id, {receives_.Sge(slot * kBytes, kBytes)});
    Check(result == 0, "posting a receive was refused");
  }
  void Receive(uint32_t receiver) {
    for (bool idle = false; received_ < kTotal && GoOn(idle);) {
      ibv_wc wc{};
      idle = ibv_poll_cq(receive_cqs_[receiver].get(), 1, &wc) != 1;
      if (idle) continue;
      Check(wc.status == IBV_WC_SUCCESS && wc.byte_len == kBytes, "a receive went wrong");
      Check(wc.qp_num == links_[receiver].responder->qp_num, "a receive of another queue pair");
      Check(receives_.Holds(wc.imm_data, wc.wr_id % kReceives * kBytes, kBytes), "wrong bytes");
      Check(wc.imm_data / kMessages == receiver, "a message of another sender");
      Check(wc.imm_data % kMessages == order_[receiver]++, "messages out of order");
      wr_ids_[receiver].push_back(wc.wr_id);
      received_.fetch_add(1);
      Repost(wc.wr_id + kReceives);
    }
  }
  void Send(uint32_t sender) {
    uint32_t sent = 0;
    uint32_t completed = 0;
    for (bool idle = false; completed < kMessages && GoOn(idle);) {
      idle = true;
      if (sent < kMessages && sent - completed < kInFlight) {
        const size_t offset = (sender * kInFlight + sent % kInFlight) * kBytes;
        const uint32_t seed = sender * kMessages + sent;
        messages_.Fill(seed, offset, kBytes);
        const int result =
            PostSend(links_[sender].requester.get(), {.wr_id = sent,
                                                      .segments = {messages_.Sge(offset, kBytes)},
                                                      .opcode = IBV_WR_SEND_WITH_IMM,
                                                      .imm_data = seed});
        Check(result == 0, "posting a send was refused");
        ++sent;
        idle = false;
      }
      ibv_wc wc{};
      if (ibv_poll_cq(send_cqs_[sender].get(), 1, &wc) != 1) continue;
      Check(wc.status == IBV_WC_SUCCESS && wc.wr_id == completed, "a send failed");
      ++completed;
      idle = false;
    }
  }

  static constexpr size_t kSendBytes = kPairs * kInFlight * kBytes;
  Buffer receives_;
  Buffer messages_;
  std::vector<Cq> send_cqs_;
  std::vector<Cq> receive_cqs_;
  std::vector<Link> links_;
  std::vector<uint64_t> wr_ids_[kPairs];
  uint32_t order_[kPairs] = {};
  std::atomic<uint32_t> received_{0};
  std::atomic<const char*> failure_{nullptr};
  const std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::now() + Seconds(50);
};

TEST_F(EightThreads, OnOneSrqAndFourCqsLoseAndRepeatNothing) {
  Rule("SRQ-22, SRQ-24");
  for (uint64_t slot = 0; slot < kReceives; ++slot) Repost(slot);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kPairs; ++i) {
    threads.emplace_back([this, i] { Receive(i); });
    threads.emplace_back([this, i] { Send(i); });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(nullptr, failure_.load()) << failure_.load();
  EXPECT_EQ(kTotal, received_);

  // Each buffer was used without a gap, each use of it exactly once.
  std::map<uint64_t, uint64_t> uses;
  std::set<uint64_t> all;
  for (const std::vector<uint64_t>& ids : wr_ids_) {
    for (const uint64_t wr_id : ids) {
      EXPECT_TRUE(all.insert(wr_id).second) << wr_id << " completed twice";
      ++uses[wr_id % kReceives];
    }
  }
  EXPECT_EQ(kTotal, all.size());
  for (const uint64_t wr_id : all) EXPECT_LT(wr_id / kReceives, uses[wr_id % kReceives]);
  EXPECT_EQ(0, P(capacity_ - kReceives));
  EXPECT_EQ(ENOMEM, P(1)) << "all entries are posted again";
  ExpectNothingLost(0);
}

// Hardware's library would follow pointers into what has just been freed.
class SimulatorOnlyThreads : public SrqTest {};

TEST_F(SimulatorOnlyThreads, ClosingAContextUnderTheHandsOfOthersIsSafe) {
  Rule("LIFE-11");
  for (int round = 0; round < 20; ++round) {
    ibv_context* context = ibv_open_device(device_.context()->device);
    ASSERT_NE(nullptr, context);
    ibv_pd* pd = ibv_alloc_pd(context);
    ibv_cq* cq = ibv_create_cq(context, 256, nullptr, nullptr, 0);
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq;
    init.cap = {64, 64, 1, 1, 0};
    init.qp_type = IBV_QPT_RC;
    ibv_qp* qp = ibv_create_qp(pd, &init);
    ASSERT_NE(nullptr, qp);
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    ASSERT_EQ(0,
              ibv_modify_qp(qp, &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    for (uint64_t id = 0; id < 60; ++id) {
      ibv_recv_wr wr{};
      ibv_recv_wr* bad;
      wr.wr_id = id;
      ASSERT_EQ(0, ibv_post_recv(qp, &wr, &bad));
    }
    std::atomic<bool> stop{false};
    std::atomic<int> polls{0};
    std::thread poller([&] {
      ibv_wc wc;
      while (!stop) {
        ibv_poll_cq(cq, 1, &wc);
        ++polls;
      }
    });
    attr.qp_state = IBV_QPS_ERR;
    EXPECT_EQ(0, ibv_modify_qp(qp, &attr, IBV_QP_STATE));
    while (polls < 10) std::this_thread::yield();
    EXPECT_EQ(0, ibv_close_device(context));
    for (polls = 0; polls < 10;) std::this_thread::yield();
    stop = true;
    poller.join();
  }
}

TEST_F(SimulatorOnlyThreads, DestructionUnderTheHandsOfOthersIsSafe) {
  Rule("LIFE-11");
  constexpr int kRounds = 40;
  constexpr int kUsers = 3;
  for (int round = 0; round < kRounds; ++round) {
    ibv_cq* cq = MakeCq(device_, 128).release();
    ibv_srq* srq = MakeSrq(pd_.get(), 32).release();
    QpOptions options{.send_cq = cq, .receive_cq = cq};
    ibv_qp* requester = MakeQp(device_, pd_.get(), options).release();
    options.srq = srq;
    ibv_qp* responder = MakeQp(device_, pd_.get(), options).release();
    Connect(device_, requester, responder);
    std::atomic<bool> stop{false};
    std::atomic<int> rounds_after{0};
    std::vector<std::thread> users;
    for (int i = 0; i < kUsers; ++i) {
      users.emplace_back([&] {
        while (!stop) {
          ibv_wc wc;
          ibv_poll_cq(cq, 1, &wc);
          PostSrqReceive(srq, 1, {sink_.Sge(0, kSlotBytes)});
          PostSend(requester, {.segments = {source_.Sge(0, kSlotBytes)}});
          ++rounds_after;
        }
      });
    }
    while (rounds_after < 20) std::this_thread::yield();
    EXPECT_EQ(0, ibv_destroy_qp(requester));
    EXPECT_EQ(0, ibv_destroy_qp(responder));
    EXPECT_EQ(0, ibv_destroy_srq(srq));
    EXPECT_EQ(0, ibv_destroy_cq(cq));
    for (rounds_after = 0; rounds_after < kUsers * 2;) std::this_thread::yield();
    stop = true;
    for (std::thread& user : users) user.join();
  }
  CreateSrq(8);
  const Link link = MakeLink({}, srq_.get());
  ASSERT_EQ(0, P(1));
  SendAndReceive(link, 1);
}

}  // namespace
}  // namespace simhca::conformance
