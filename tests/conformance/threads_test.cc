#include <array>
#include <atomic>
#include <thread>

#include "tests/conformance/fixture.h"

namespace simhca::conformance {
namespace {

// Several threads on one SRQ and one receive CQ.
class Threads : public SrqTest {
 protected:
  static constexpr size_t kThreads = 2;
  static constexpr size_t kLinksPerThread = 2;
  static constexpr uint32_t kMessagesPerLink = 400;
  static constexpr uint32_t kTotal = kThreads * kLinksPerThread * kMessagesPerLink;
  static constexpr uint32_t kReceives = 48;
  static constexpr uint32_t kInFlight = 8;
  static constexpr size_t kBytes = 700;  // three packets

  Threads() : receives_(pd_.get(), kReceives * kBytes) {}

  // Takes one receive completion, if there is one, and posts its buffer again.
  bool ReceiveOne() {
    ibv_wc wc{};
    if (ibv_poll_cq(responder_cq_.get(), 1, &wc) != 1) return false;
    if (wc.status != IBV_WC_SUCCESS || wc.wr_id >= kReceives || wc.byte_len != kBytes ||
        !posted_[wc.wr_id].exchange(false) ||
        !receives_.Holds(wc.imm_data, wc.wr_id * kBytes, kBytes)) {
      failed_ = true;
      return true;
    }
    received_.fetch_add(1);
    Repost(wc.wr_id);
    return true;
  }
  void Repost(uint64_t slot) {
    if (posted_[slot].exchange(true) ||
        PostSrqReceive(srq_.get(), slot, {receives_.Sge(slot * kBytes, kBytes)}) != 0) {
      failed_ = true;
    }
  }

  // Sends over `links` and helps to receive until all threads' messages have arrived.
  void Run(uint32_t thread, ibv_cq* send_cq, const std::vector<Link>& links, Buffer& messages) {
    uint32_t sent[kLinksPerThread] = {};
    uint32_t completed[kLinksPerThread] = {};
    Deadline deadline(device_, kPatience);
    while (!failed_ && received_ < kTotal) {
      bool idle = true;
      for (uint32_t i = 0; i < kLinksPerThread; ++i) {
        if (sent[i] == kMessagesPerLink || sent[i] - completed[i] == kInFlight) continue;
        const size_t offset = (i * kInFlight + sent[i] % kInFlight) * kBytes;
        const uint32_t seed = (thread * kLinksPerThread + i) * kMessagesPerLink + sent[i];
        messages.Fill(seed, offset, kBytes);
        failed_ = failed_ ||
                  PostSend(links[i].requester.get(), {.wr_id = i,
                                                      .segments = {messages.Sge(offset, kBytes)},
                                                      .opcode = IBV_WR_SEND_WITH_IMM,
                                                      .imm_data = seed}) != 0;
        ++sent[i];
        idle = false;
      }
      ibv_wc wc{};
      if (ibv_poll_cq(send_cq, 1, &wc) == 1) {
        if (wc.status == IBV_WC_SUCCESS) {
          ++completed[wc.wr_id];
        } else {
          failed_ = true;
        }
        idle = false;
      }
      if (ReceiveOne()) idle = false;
      if (idle && deadline.Passed()) failed_ = true;
    }
  }

  Buffer receives_;
  std::array<std::atomic<bool>, kReceives> posted_{};
  std::atomic<uint32_t> received_{0};
  std::atomic<bool> failed_{false};
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
    threads.emplace_back([&, i] { Run(i, send_cqs[i].get(), links[i], messages[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(failed_);
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
