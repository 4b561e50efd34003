// What the receive path costs on the modelled device: the same figures on every machine.  The time
// that Google Benchmark itself reports is what the simulator took.
//
//   receive_model [--profile NAME] [options of Google Benchmark]

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "bench/model/scenario.h"
#include "sim/profiles/profile_loader.h"

namespace simhca::bench {
namespace {

DeviceProfile profile;
bool failed = false;  // a benchmark has

Scenario Base() {
  Scenario scenario;
  scenario.profile = profile;
  scenario.warm_up = 1'000;
  scenario.messages = 10'000;
  return scenario;
}

// Runs the scenario once per iteration and shows what it counted.
void Measure(benchmark::State& state, const Scenario& scenario) {
  ScenarioResult result;
  for (auto _ : state) {
    result = Run(scenario);
    if (!result.error.empty()) break;
  }
  if (!result.error.empty()) {
    failed = true;
    state.SkipWithError(result.error.c_str());
    return;
  }
  const double messages = static_cast<double>(result.messages);
  state.SetItemsProcessed(state.iterations() * (scenario.messages + scenario.warm_up));
  state.counters["ns/msg"] = result.nanoseconds_per_message();
  state.counters["dma_reads/msg"] = static_cast<double>(result.dma_reads) / messages;
  state.counters["dma_writes/msg"] = static_cast<double>(result.dma_writes) / messages;
  state.counters["tlps/msg"] = static_cast<double>(result.tlps) / messages;
  state.counters["cache_misses/msg"] = static_cast<double>(result.cache_misses) / messages;
  state.counters["rnr_naks"] = static_cast<double>(result.rnr_naks);
  state.counters["limit_events"] = static_cast<double>(result.limit_events);
}

using Body = void (*)(benchmark::State&);

benchmark::internal::Benchmark* Add(const std::string& name, Body body) {
  return benchmark::RegisterBenchmark(("Model/" + name).c_str(), body)
      ->Unit(benchmark::kMillisecond)
      ->Iterations(1);
}

// ---- An SRQ, or a receive queue for each queue pair ----

template <bool kSrq>
void SrqAgainstRq(benchmark::State& state) {
  Scenario scenario = Base();
  scenario.srq = kSrq;
  scenario.qps = 10;
  scenario.message_bytes = static_cast<uint32_t>(state.range(0));
  Measure(state, scenario);
}

template <bool kSrq>
void QpScaling(benchmark::State& state) {
  Scenario scenario = Base();
  scenario.srq = kSrq;
  scenario.qps = static_cast<uint32_t>(state.range(0));
  scenario.outstanding = std::max(1u, 1024 / scenario.qps);
  scenario.receives = kSrq ? 2048 : std::max(2u, scenario.outstanding * 2);
  scenario.warm_up = std::max(scenario.warm_up, 2 * scenario.qps);
  Measure(state, scenario);
}

// ---- How the list of an SRQ is kept ----

template <SrqListOrder kOrder>
void ListOrder(benchmark::State& state) {
  Scenario scenario = Base();
  scenario.srq = true;
  scenario.list_order = kOrder;
  scenario.qps = static_cast<uint32_t>(state.range(0));
  scenario.message_bytes = 4096;
  Measure(state, scenario);
}

void PostBatch(benchmark::State& state) {
  Scenario scenario = Base();
  scenario.srq = true;
  scenario.qps = 4;
  scenario.post_batch = static_cast<uint32_t>(state.range(0));
  scenario.segments = static_cast<uint32_t>(state.range(1));
  scenario.message_bytes = 1024;
  Measure(state, scenario);
}

// ---- When receives run out ----

// A burst of 1024 messages meets an SRQ of this depth; a receive takes the program 100 ns.
void DepthAgainstBurst(benchmark::State& state) {
  Scenario scenario = Base();
  scenario.srq = true;
  scenario.qps = 8;
  scenario.receives = static_cast<uint32_t>(state.range(0));
  scenario.min_rnr_timer = 1;  // 10 us
  scenario.profile.costs.cpu_post_receive = 50 * kNanosecond;
  scenario.profile.costs.cpu_poll = 50 * kNanosecond;
  Measure(state, scenario);
}

// The program refills when the limit event comes, and needs 5 us for that.
void Watermark(benchmark::State& state) {
  Scenario scenario = Base();
  scenario.srq = true;
  scenario.qps = 4;
  scenario.receives = 512;
  scenario.message_bytes = 1024;
  scenario.min_rnr_timer = 1;
  scenario.watermark = static_cast<uint32_t>(state.range(0));
  scenario.refill_latency = 5 * kMicrosecond;
  Measure(state, scenario);
}

void Incast(benchmark::State& state) {
  Scenario scenario = Base();
  scenario.srq = true;
  scenario.senders = static_cast<uint32_t>(state.range(0));
  scenario.outstanding = 4;
  scenario.receives = 4096;
  scenario.warm_up = std::max(scenario.warm_up, 2 * scenario.senders);
  Measure(state, scenario);
}

// One message at a time: what a message takes from post to post.
void OneByOne(benchmark::State& state) {
  Scenario scenario = Base();
  scenario.srq = true;
  scenario.outstanding = 1;
  scenario.messages = 1'000;
  scenario.message_bytes = static_cast<uint32_t>(state.range(0));
  Measure(state, scenario);
}

struct Kind {
  const char* queue;
  Body body;
};

void AddAll() {
  for (auto [queue, body] : {Kind{"srq", SrqAgainstRq<true>}, Kind{"rq", SrqAgainstRq<false>}}) {
    Add(std::string("SrqAgainstRq/queue:") + queue, body)
        ->ArgName("size")
        ->RangeMultiplier(4)
        ->Range(16, 16384);
  }
  for (auto [queue, body] : {Kind{"srq", QpScaling<true>}, Kind{"rq", QpScaling<false>}}) {
    Add(std::string("QpScaling/queue:") + queue, body)
        ->ArgName("qps")
        ->RangeMultiplier(4)
        ->Range(1, 4096);
  }
  Add("ListOrder/order:completion", ListOrder<SrqListOrder::kCompletionOrder>)
      ->ArgName("qps")
      ->Arg(1)
      ->Arg(5)
      ->Arg(10);
  Add("ListOrder/order:contiguous", ListOrder<SrqListOrder::kContiguous>)
      ->ArgName("qps")
      ->Arg(1)
      ->Arg(5)
      ->Arg(10);
  Add("PostBatch", PostBatch)->ArgNames({"batch", "segments"})->ArgsProduct({{1, 16, 128}, {1, 4}});
  Add("DepthAgainstBurst", DepthAgainstBurst)
      ->ArgName("depth")
      ->RangeMultiplier(4)
      ->Range(16, 4096);
  Add("Watermark", Watermark)->ArgName("limit")->RangeMultiplier(2)->Range(8, 256);
  Add("Incast", Incast)->ArgName("senders")->Arg(1)->Arg(9)->Arg(99)->Arg(999);
  Add("OneByOne", OneByOne)->ArgName("size")->Arg(64)->Arg(4096)->Arg(65536);
}

// Takes --profile NAME out of the arguments.
bool TakeProfile(int* argc, char** argv) {
  const char* name = "connectx6dx";
  for (int i = 1; i < *argc; ++i) {
    if (std::strcmp(argv[i], "--profile") != 0) continue;
    if (i + 1 == *argc) {
      std::fprintf(stderr, "receive_model: --profile needs a name or a file\n");
      return false;
    }
    name = argv[i + 1];
    for (int j = i; j + 2 <= *argc; ++j) argv[j] = argv[j + 2];
    *argc -= 2;
    break;
  }
  const ProfileResult found = FindProfile(name);
  if (!found) {
    std::fprintf(stderr, "receive_model: %s\n", found.error.c_str());
    return false;
  }
  profile = *found.profile;
  return true;
}

}  // namespace
}  // namespace simhca::bench

int main(int argc, char** argv) {
  if (!simhca::bench::TakeProfile(&argc, argv)) return 2;
  simhca::bench::AddAll();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return simhca::bench::failed ? 1 : 0;
}
