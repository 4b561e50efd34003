#include "bench/model/scenario.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <vector>

#include "bench/model/endpoint.h"
#include "sim/device/simulation.h"

namespace simhca::bench {

namespace {

constexpr Duration kShortestRefill = 100 * kNanosecond;
// Longer than the longest RNR timer.  Retries without end keep a simulation that stands still busy.
constexpr Duration kPatience = 2 * kSecond;

uint8_t MtuCode(uint32_t bytes) { return static_cast<uint8_t>(std::bit_width(bytes) - 8); }

// Which queue pair of a device gets the next message.
class QpChooser {
 public:
  QpChooser(const Scenario& scenario, uint32_t qps, uint64_t seed)
      : random_(scenario.window != 0),
        outstanding_(scenario.outstanding),
        state_(seed),
        under_way_(qps) {}

  // At random, of those that have room.
  uint32_t Next() {
    uint32_t qp = 0;
    do {
      qp = Random() % under_way_.size();
    } while (under_way_[qp] >= outstanding_);
    ++under_way_[qp];
    return qp;
  }
  // After a message of `qp` has completed.
  uint32_t After(uint32_t qp) {
    if (!random_) return qp;
    --under_way_[qp];
    return Next();
  }

 private:
  // Knuth's MMIX generator: the same sequence on every machine.
  uint32_t Random() {
    state_ = state_ * 6364136223846793005 + 1442695040888963407;
    return static_cast<uint32_t>(state_ >> 33);
  }

  const bool random_;
  const uint32_t outstanding_;
  uint64_t state_;
  std::vector<uint32_t> under_way_;
};

// The programs of a scenario: one receiver and its senders.
class Bench {
 public:
  explicit Bench(const Scenario& scenario)
      : scenario_(scenario),
        simulation_(std::vector<DeviceProfile>(scenario.senders + 1, scenario.profile)),
        receiver_chooser_(scenario, scenario.senders * scenario.qps, 0) {}

  ScenarioResult Run() {
    if (std::string why = BeyondTheProfile(); !why.empty()) return Failed(std::move(why));
    MakeEndpoints();
    if (const int error = Connect()) {
      return Failed("the queue pairs could not be connected: errno " + std::to_string(error));
    }
    PostAllReceives();
    if (scenario_.watermark != 0) receiver_->ArmLimit(scenario_.watermark);
    StartSenders();
    if (!Until(scenario_.warm_up)) return Stuck();
    const ScenarioResult before = Snapshot();
    if (!Until(scenario_.warm_up + scenario_.messages)) return Stuck();
    return Difference(before, Snapshot());
  }

 private:
  bool reads() const { return scenario_.operation == Scenario::Operation::kRead; }
  uint32_t all_qps() const { return scenario_.qps * scenario_.senders; }

  // What the devices of the profile could not do; empty if nothing.
  std::string BeyondTheProfile() const {
    const DeviceProfile::Limits& limits = scenario_.profile.limits;
    const auto above = [](const char* what, uint32_t wanted, uint32_t limit) {
      return std::string(what) + " " + std::to_string(wanted) + " is above the profile's " +
             std::to_string(limit);
    };
    if (all_qps() > limits.max_qp) {
      return above("the receiver's number of queue pairs", all_qps(), limits.max_qp);
    }
    if (scenario_.outstanding > limits.max_qp_wr) {
      return above("outstanding", scenario_.outstanding, limits.max_qp_wr);
    }
    if (!scenario_.srq) {
      return scenario_.receives > limits.max_qp_wr && !reads()
                 ? above("receives", scenario_.receives, limits.max_qp_wr)
                 : "";
    }
    if (!scenario_.profile.features.srq || limits.max_srq == 0) return "the profile has no SRQs";
    if (scenario_.receives > limits.max_srq_wr) {
      return above("receives", scenario_.receives, limits.max_srq_wr);
    }
    return "";
  }

  void MakeEndpoints() {
    Endpoint::Options options;
    options.message_bytes = scenario_.message_bytes;
    options.inline_sends = scenario_.inline_sends;
    options.path_mtu = MtuCode(scenario_.path_mtu);
    options.sends = scenario_.outstanding;
    options.receives = 1;
    options.receive_entries = 1;
    options.qps = scenario_.qps;
    for (uint32_t i = 1; i <= scenario_.senders; ++i) {
      senders_.push_back(std::make_unique<Endpoint>(simulation_.device(i), options));
    }
    options.qps = all_qps();
    options.srq = scenario_.srq;
    options.list_order = scenario_.list_order;
    options.receives = scenario_.receives;
    options.receive_entries = scenario_.receive_entries != 0
                                  ? scenario_.receive_entries
                                  : std::bit_ceil(2 * scenario_.receives);
    options.segments = scenario_.segments;
    options.sends = scenario_.both_ways ? scenario_.outstanding : 1;
    options.min_rnr_timer = static_cast<uint8_t>(scenario_.min_rnr_timer);
    receiver_ = std::make_unique<Endpoint>(simulation_.device(0), options);
  }

  int Connect() {
    for (uint32_t i = 0; i < scenario_.senders; ++i) {
      for (uint32_t qp = 0; qp < scenario_.qps; ++qp) {
        const uint32_t there = i * scenario_.qps + qp;
        if (int error = senders_[i]->Connect(qp, *receiver_, there)) return error;
        if (int error = receiver_->Connect(there, *senders_[i], qp)) return error;
      }
    }
    return 0;
  }

  void StartSenders() {
    for (uint32_t i = 0; i < scenario_.senders; ++i) {
      choosers_.emplace_back(scenario_, scenario_.qps, i + 1);
      if (scenario_.window == 0) {
        for (uint32_t qp = 0; qp < scenario_.qps; ++qp) Post(i, qp, scenario_.outstanding);
      }
      for (uint32_t n = 0; n < scenario_.window; ++n) Post(i, choosers_[i].Next(), 1);
    }
    if (!scenario_.both_ways) return;
    if (scenario_.window == 0) {
      for (uint32_t qp = 0; qp < all_qps(); ++qp) PostBack(qp, scenario_.outstanding);
    }
    for (uint32_t n = 0; n < scenario_.window; ++n) PostBack(receiver_chooser_.Next(), 1);
  }

  void Post(uint32_t index, uint32_t qp, uint32_t count) {
    Endpoint& sender = *senders_[index];
    posted_last_ = simulation_.Now();
    if (reads()) {
      sender.PostReads(qp, count, *receiver_);
    } else {
      sender.PostSends(qp, count);
    }
  }

  void PostBack(uint32_t qp, uint32_t count) {
    receiver_->PostReads(qp, count, *senders_[qp / scenario_.qps]);
  }

  void PostAllReceives() {
    if (reads()) return;
    const uint32_t queues = scenario_.srq ? 1 : all_qps();
    for (uint32_t qp = 0; qp < queues; ++qp) receiver_->PostReceives(qp, scenario_.receives);
  }

  // Lets the programs run until `count` messages have arrived.
  bool Until(uint64_t count) {
    while (done_ < count) {
      bool worked = false;
      simulation_.ForEachDelivery([&](size_t device) {
        if (device != 0) worked |= ServeSender(static_cast<uint32_t>(device - 1));
      });
      worked |= reads() ? ServeReadsBack() : ServeReceiver();
      if (!failure_.empty()) return false;
      if (!worked && !Wait()) return false;
    }
    return true;
  }

  // Until something can be seen, or it is time to refill.
  bool Wait() {
    if (refill_at_ == kNever) {
      return simulation_.AdvanceTo(SaturatingAdd(simulation_.Now(), kPatience));
    }
    if (simulation_.Now() >= refill_at_) {
      refill_at_ = kNever;
      receiver_->PostReceives(0, scenario_.receives);
      receiver_->ArmLimit(scenario_.watermark);
      return true;
    }
    simulation_.AdvanceTo(refill_at_);
    return true;
  }

  bool ServeSender(uint32_t index) {
    Endpoint& sender = *senders_[index];
    bool worked = false;
    Endpoint::Polled polled;
    while (sender.PollSend(&polled)) {
      worked = true;
      if (polled.error) failure_ = "a message has failed";
      if (reads() && !scenario_.both_ways) CountMessage();
      if (scenario_.repeat) Post(index, choosers_[index].After(polled.qp), 1);
    }
    return worked;
  }

  void CountMessage() {
    ++done_;
    result_.latency = simulation_.Now() - posted_last_;
  }

  bool ServeReadsBack() {
    bool worked = false;
    Endpoint::Polled polled;
    while (receiver_->PollSend(&polled)) {
      worked = true;
      if (polled.error) failure_ = "a message has failed";
      CountMessage();
      if (scenario_.repeat) PostBack(receiver_chooser_.After(polled.qp), 1);
    }
    return worked;
  }

  bool ServeReceiver() {
    bool worked = false;
    Endpoint::Polled polled;
    while (receiver_->PollReceive(&polled)) {
      worked = true;
      if (polled.error) failure_ = "a receive has failed";
      CountMessage();
      if (scenario_.watermark != 0) continue;
      if (!scenario_.srq) {
        receiver_->PostReceives(polled.qp, 1);
      } else if (++unposted_ >= scenario_.post_batch) {
        receiver_->PostReceives(0, unposted_);
        unposted_ = 0;
      }
    }
    const uint32_t events = receiver_->TakeLimitEvents();
    limit_events_ += events;
    // Armed anew above the fill, the limit is reached at once: time must go on all the same.
    if (events != 0) {
      refill_at_ = simulation_.Now() + std::max(scenario_.refill_latency, kShortestRefill);
    }
    return worked || events != 0;
  }

  ScenarioResult Snapshot() {
    const DeviceModelStats stats = simulation_.device(0).model()->stats();
    ScenarioResult now;
    now.messages = done_;
    now.elapsed = simulation_.Now();
    now.dma_reads = stats.dma_reads;
    now.dma_writes = stats.dma_writes;
    now.tlps = stats.tlps;
    now.cache_misses = stats.cache_misses;
    now.rnr_naks = simulation_.counters().Get(Counter::kRnrNaksSent);
    now.limit_events = limit_events_;
    return now;
  }

  ScenarioResult Difference(const ScenarioResult& before, const ScenarioResult& after) const {
    ScenarioResult result = result_;
    result.messages = after.messages - before.messages;
    result.elapsed = after.elapsed - before.elapsed;
    result.dma_reads = after.dma_reads - before.dma_reads;
    result.dma_writes = after.dma_writes - before.dma_writes;
    result.tlps = after.tlps - before.tlps;
    result.cache_misses = after.cache_misses - before.cache_misses;
    result.rnr_naks = after.rnr_naks - before.rnr_naks;
    result.limit_events = after.limit_events - before.limit_events;
    return result;
  }

  static ScenarioResult Failed(std::string why) {
    ScenarioResult result;
    result.error = std::move(why);
    return result;
  }

  ScenarioResult Stuck() {
    if (!failure_.empty()) return Failed(failure_);
    const bool sends = !reads();
    return Failed("nothing has completed for " + std::to_string(kPatience / kSecond) +
                  " s of simulated time, after " + std::to_string(done_) +
                  " messages: " + std::to_string(all_qps()) + " queue pairs wait" +
                  (sends ? ", and the receiver has " + std::to_string(receiver_->posted()) +
                               " receives posted"
                         : ""));
  }

  const Scenario& scenario_;
  Simulation simulation_;
  std::vector<std::unique_ptr<Endpoint>> senders_;
  std::unique_ptr<Endpoint> receiver_;
  std::vector<QpChooser> choosers_;  // of the senders
  QpChooser receiver_chooser_;
  ScenarioResult result_;
  Time posted_last_ = 0;
  uint64_t done_ = 0;
  uint32_t unposted_ = 0;
  uint64_t limit_events_ = 0;
  Time refill_at_ = kNever;
  std::string failure_;
};

}  // namespace

ScenarioResult Run(const Scenario& scenario) { return Bench(scenario).Run(); }

}  // namespace simhca::bench
