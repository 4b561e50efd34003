// What the calls of a program's receive path cost on the device at hand, and what a message costs
// from a send to its receive, both queue pairs in this process.  The times are of the processor:
// with simulated devices they are the cost of the simulator, not of a modelled device.
//
//   receive_path [--device NAME] [--gid-index N] [options of Google Benchmark]

#include <benchmark/benchmark.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "bench/loopback_pair.h"

namespace simhca::bench {
namespace {

DeviceChoice choice;
bool failed = false;  // a benchmark has

constexpr uint32_t kDepth = 4096;
constexpr uint32_t kReady = 1024;  // completions that wait to be polled
constexpr int kReadyBatch = 16;
constexpr uint32_t kFill = 64;  // receives in an SRQ whose limit is armed

using Clock = std::chrono::steady_clock;

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

// After the loop: what the benchmark has to show, or why it has nothing.
void Report(benchmark::State& state, const LoopbackPair& pair, int64_t items, int64_t bytes = 0) {
  if (!pair.ok()) {
    failed = true;
    state.SkipWithError(pair.error().c_str());
    return;
  }
  state.SetItemsProcessed(state.iterations() * items);
  if (bytes != 0) state.SetBytesProcessed(state.iterations() * items * bytes);
}

// One iteration fills an empty SRQ; it is emptied by as many messages in between.
void PostSrqRecv(benchmark::State& state) {
  const auto batch = static_cast<uint32_t>(state.range(0));
  LoopbackPair pair(choice, {.depth = kDepth});
  const uint32_t count = pair.capacity();
  for (auto _ : state) {
    const Clock::time_point start = Clock::now();
    if (!pair.PostReceives(count, batch)) break;
    state.SetIterationTime(Seconds(Clock::now() - start));
    if (!pair.Send(count, 0) || !pair.AwaitReceives(count)) break;
  }
  Report(state, pair, count);
}

void PollEmptyCq(benchmark::State& state) {
  LoopbackPair pair(choice, {});
  ibv_wc completions[kReadyBatch];
  for (auto _ : state) {
    if (!pair.ok()) break;
    if (ibv_poll_cq(pair.receive_cq(), kReadyBatch, completions) != 0) {
      pair.Fail("a completion from nowhere", 0);
    }
  }
  Report(state, pair, 1);
}

// One iteration takes kReady receive completions that are there already.
void PollReadyCq(benchmark::State& state) {
  LoopbackPair pair(choice, {.depth = kReady});
  const uint32_t count = pair.capacity();
  for (auto _ : state) {
    if (!pair.PostReceives(count, 64) || !pair.Send(count, 8)) break;
    const Clock::time_point start = Clock::now();
    if (!pair.AwaitReceives(count)) break;
    state.SetIterationTime(Seconds(Clock::now() - start));
  }
  Report(state, pair, count);
}

// `depth` messages: posted, completed at the sender and at the receiver, their receives reposted.
void SendToSrq(benchmark::State& state) {
  const auto bytes = static_cast<uint32_t>(state.range(0));
  const auto depth = static_cast<uint32_t>(state.range(1));
  LoopbackPair pair(choice, {.depth = 2 * depth, .message_bytes = bytes});
  pair.PostReceives(depth, depth);
  for (auto _ : state) {
    if (!pair.Send(depth, bytes) || !pair.AwaitReceives(depth) ||
        !pair.PostReceives(depth, depth)) {
      break;
    }
  }
  Report(state, pair, depth, bytes);
}

// The same with the send posted by ibv_wr_start, ibv_wr_send and ibv_wr_complete, all of a batch
// between one start and one complete.
void ExtendedSendToSrq(benchmark::State& state) {
  const auto bytes = static_cast<uint32_t>(state.range(0));
  const auto depth = static_cast<uint32_t>(state.range(1));
  LoopbackPair pair(choice, {.depth = 2 * depth, .message_bytes = bytes, .extended_sends = true});
  pair.PostReceives(depth, depth);
  ibv_qp_ex* const sender = pair.ok() ? pair.extended_sender() : nullptr;
  if (pair.ok() && sender == nullptr) pair.Fail("no extended queue pair", 0);
  for (auto _ : state) {
    if (!pair.ok()) break;
    const ibv_sge segment = pair.send_segment(bytes);
    ibv_wr_start(sender);
    for (uint32_t i = 1; i <= depth; ++i) {
      sender->wr_flags = i == depth ? IBV_SEND_SIGNALED : 0;
      ibv_wr_send(sender);
      ibv_wr_set_sge(sender, segment.lkey, segment.addr, segment.length);
    }
    if (const int code = ibv_wr_complete(sender)) pair.Fail("ibv_wr_complete", code);
    if (!pair.ok() || !pair.AwaitSends(1) || !pair.AwaitReceives(depth) ||
        !pair.PostReceives(depth, depth)) {
      break;
    }
  }
  Report(state, pair, depth, bytes);
}

// From arming the limit at the fill of the SRQ, over a message that lowers it, to the event in the
// program's hands.
void LimitEvent(benchmark::State& state) {
  LoopbackPair pair(choice, {.depth = 2 * kFill});
  pair.PostReceives(kFill, kFill);
  for (auto _ : state) {
    const Clock::time_point start = Clock::now();
    if (!pair.ok() || !pair.ArmLimit(kFill) || !pair.PostSend(8, true) || !pair.AwaitLimitEvent()) {
      break;
    }
    state.SetIterationTime(Seconds(Clock::now() - start));
    if (!pair.AwaitSends(1) || !pair.AwaitReceives(1) || !pair.PostReceives(1, 1)) break;
  }
  Report(state, pair, 1);
}

void ArmLimit(benchmark::State& state) {
  LoopbackPair pair(choice, {.depth = 2 * kFill});
  pair.PostReceives(kFill, kFill);
  for (auto _ : state) {
    if (!pair.ok() || !pair.ArmLimit(kFill)) break;
  }
  Report(state, pair, 1);
}

BENCHMARK(PostSrqRecv)->ArgName("batch")->Arg(1)->Arg(8)->Arg(64)->UseManualTime();
BENCHMARK(PollEmptyCq);
BENCHMARK(PollReadyCq)->UseManualTime();
BENCHMARK(SendToSrq)
    ->ArgNames({"bytes", "depth"})
    ->ArgsProduct({{8, 64, 4096}, {1, 64}})
    ->UseRealTime();
BENCHMARK(ExtendedSendToSrq)
    ->ArgNames({"bytes", "depth"})
    ->ArgsProduct({{64}, {1, 64}})
    ->UseRealTime();
BENCHMARK(ArmLimit)->UseRealTime();
BENCHMARK(LimitEvent)->UseManualTime();

constexpr char kUsage[] =
    "receive_path [--device NAME] [--gid-index N] [--benchmark_...]\n"
    "  --device NAME    device to use (default: SIMHCA_BENCH_DEVICE, else the first one listed)\n"
    "  --gid-index N    its GID, on Ethernet ports (default 0)\n"
    "Options of Google Benchmark: --benchmark_list_tests, --benchmark_filter=RE,\n"
    "  --benchmark_repetitions=N, --benchmark_out=FILE, --benchmark_out_format=json\n";

// Takes our own options out of the arguments; false for a wrong one.
bool TakeOptions(int* count, char** arguments) {
  int kept = 1;
  for (int i = 1; i < *count; ++i) {
    const std::string_view argument = arguments[i];
    const size_t equals = argument.find('=');
    const std::string_view name = argument.substr(0, equals);
    if (name != "--device" && name != "--gid-index") {
      arguments[kept++] = arguments[i];
      continue;
    }
    std::string_view value;
    if (equals != std::string_view::npos) {
      value = argument.substr(equals + 1);
    } else if (i + 1 < *count) {
      value = arguments[++i];
    }
    if (value.empty()) return false;
    if (name == "--device") {
      choice.name = value;
      continue;
    }
    const auto [end, error] =
        std::from_chars(value.data(), value.data() + value.size(), choice.gid_index);
    if (error != std::errc() || end != value.data() + value.size() || choice.gid_index < 0 ||
        choice.gid_index > 255) {
      return false;
    }
  }
  *count = kept;
  arguments[kept] = nullptr;
  return true;
}

}  // namespace

int Main(int count, char** arguments) {
  if (const char* name = std::getenv("SIMHCA_BENCH_DEVICE")) choice.name = name;
  for (int i = 1; i < count; ++i) {
    if (std::string_view(arguments[i]) == "--help") {
      std::fputs(kUsage, stdout);
      return 0;
    }
  }
  if (!TakeOptions(&count, arguments)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  benchmark::Initialize(&count, arguments);
  if (benchmark::ReportUnrecognizedArguments(count, arguments)) return 2;
  benchmark::AddCustomContext("device", choice.name.empty() ? "first listed" : choice.name);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return failed ? 1 : 0;
}

}  // namespace simhca::bench

int main(int argc, char** argv) { return simhca::bench::Main(argc, argv); }
