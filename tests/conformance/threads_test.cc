#include <array>
#include <atomic>
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

}  // namespace
}  // namespace simhca::conformance
