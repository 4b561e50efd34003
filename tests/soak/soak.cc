// Streams between processes while they are killed, stopped, forked and cut off by a lossy wire; the
// survivors have to notice what hardware would let them notice, in time, and nothing else.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <random>
#include <string_view>

#include "tests/soak/client.h"
#include "tests/soak/server.h"

namespace simhca::soak {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint32_t kClients = 3;
constexpr auto kPatience = seconds(20);
// Each timeout is 4.2 ms and 10 ms of coarseness, and may count only after it has passed twice.
constexpr auto kRetryTime = (Endpoint::kRetries + 1) * 2 * milliseconds(15);
constexpr auto kNoticeLimit = kRetryTime + seconds(2);

enum class Round { kKill, kTerminate, kStop, kExit, kExitHard, kFork, kServerFork, kQuiet };
constexpr std::array<std::string_view, 8> kRoundNames = {
    "SIGKILL of a client",   "SIGTERM of a client", "SIGSTOP and SIGCONT", "exit after last send",
    "_exit after last send", "fork in a client",    "fork in the server",  "undisturbed"};

class Soak {
 public:
  Soak(uint64_t seed, std::string faults)
      : random_(static_cast<uint32_t>(seed)), server_(kClients, std::move(faults)) {}

  void Run(Clock::duration time, bool quiet, bool verbose) {
    const Clock::time_point end = Clock::now() + time;
    Clock::time_point report = Clock::now() + seconds(10);
    while (Clock::now() < end) {
      // Every kind once, then as they come.
      const auto round = rounds_ < kRoundNames.size()
                             ? static_cast<Round>(rounds_)
                             : static_cast<Round>(random_() % kRoundNames.size());
      ++rounds_;
      if (verbose)
        std::fprintf(stderr, "%s\n", std::string(kRoundNames[static_cast<size_t>(round)]).c_str());
      server_.Serve(milliseconds(5 + random_() % 40));
      Play(round, server_.peer(random_() % server_.size()));
      ++count_[static_cast<size_t>(round)];
      if (!quiet && Clock::now() >= report) {
        report += seconds(10);
        std::printf("%llu rounds, %llu messages\n", static_cast<unsigned long long>(rounds_),
                    static_cast<unsigned long long>(server_.messages()));
        std::fflush(stdout);
      }
    }
  }

  void Report() {
    for (size_t i = 0; i < count_.size(); ++i) {
      std::printf("%-24s %6u rounds\n", std::string(kRoundNames[i]).c_str(), count_[i]);
    }
    std::printf("messages received by the server: %llu, all intact and in order\n",
                static_cast<unsigned long long>(server_.messages()));
    std::printf("deaths noticed after %lld ms at most (limit %lld ms)\n",
                static_cast<long long>(duration_cast<milliseconds>(slowest_).count()),
                static_cast<long long>(duration_cast<milliseconds>(kNoticeLimit).count()));
  }

  Server& server() { return server_; }

 private:
  void Play(Round round, Peer& peer) {
    switch (round) {
      case Round::kKill:
        return Kill(peer, SIGKILL);
      case Round::kTerminate:
        return Kill(peer, SIGTERM);
      case Round::kStop:
        return Stop(peer);
      case Round::kExit:
        return Exit(peer, Order::kExit);
      case Round::kExitHard:
        return Exit(peer, Order::kUnderscore);
      case Round::kFork:
        return ForkIn(peer);
      case Round::kServerFork:
        return ForkHere();
      case Round::kQuiet:
        return ExpectProgress(nullptr, "an undisturbed stream stands still");
    }
  }

  void Obey(Peer& peer, Order order, char expected) {
    server_.Tell(peer, order);
    char answer = 0;
    server_.Await(peer, &answer, 1);
    if (answer != expected) Die("a client answers something else");
  }

  // Everybody's messages but `except`'s go on.
  void ExpectProgress(const Peer* except, const char* otherwise) {
    std::vector<uint64_t> before;
    for (size_t i = 0; i < server_.size(); ++i) before.push_back(server_.peer(i).received);
    const bool moved = server_.Serve(kPatience, [&] {
      for (size_t i = 0; i < server_.size(); ++i) {
        const Peer& peer = server_.peer(i);
        if (&peer != except && peer.received < before[i] + 20) return false;
      }
      return true;
    });
    if (!moved) Die(otherwise);
  }

  void Kill(Peer& peer, int signal) {
    peer.may_fail = true;
    const Clock::time_point killed = Clock::now();
    kill(peer.pid, signal);
    if (!server_.Serve(kNoticeLimit, [&] { return peer.errors != 0; })) {
      Die("the death of a client was not noticed in time");
    }
    slowest_ = std::max<Clock::duration>(slowest_, peer.failed - killed);
    ExpectProgress(&peer, "the death of one client stops the others");
    const int status = server_.Bury(peer);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != signal) Die("a client ended by itself");
    server_.Start(peer);
  }

  void Stop(Peer& peer) {
    kill(peer.pid, SIGSTOP);
    server_.Serve(2 * kRetryTime);
    ExpectProgress(&peer, "a stopped client stops the others");
    kill(peer.pid, SIGCONT);
    ExpectProgress(nullptr, "a client that was stopped does not go on");
  }

  void Exit(Peer& peer, Order order) {
    peer.sending = false;
    if (!server_.Serve(kPatience, [&] { return peer.done == peer.sent; })) {
      Die("sends to a client never completed");
    }
    // Who is gone cannot send again after an RNR NAK, so it has to find enough receives.
    for (size_t i = 0; i < server_.size(); ++i) Obey(server_.peer(i), Order::kPause, kPaused);
    server_.CatchUp();
    server_.Tell(peer, order);
    uint64_t total = 0;
    server_.Await(peer, &total, sizeof total);
    if (!server_.Serve(kPatience, [&] { return peer.received == total; })) {
      Die("messages sent before the exit did not arrive");
    }
    if (server_.Bury(peer) != 0) Die("a client did not exit in good order");
    for (size_t i = 0; i < server_.size(); ++i) {
      if (&server_.peer(i) != &peer) server_.Tell(server_.peer(i), Order::kResume);
    }
    server_.Start(peer);
  }

  void ForkIn(Peer& peer) {
    Obey(peer, Order::kFork, kForked);
    ExpectProgress(nullptr, "a fork in a client stops a stream");
  }

  void ForkHere() {
    const pid_t child = fork();
    if (child < 0) Die("fork failed");
    if (child == 0) {
      if (rounds_ % 2 == 0) execl("/bin/true", "true", static_cast<char*>(nullptr));
      _exit(0);
    }
    int status = 0;
    if (!server_.Serve(kPatience, [&] { return waitpid(child, &status, WNOHANG) == child; }) ||
        status != 0) {
      Die("the server's child did not end well");
    }
    ExpectProgress(nullptr, "a fork in the server stops a stream");
  }

  std::mt19937 random_;
  Server server_;
  uint64_t rounds_ = 0;
  std::array<uint32_t, kRoundNames.size()> count_{};
  Clock::duration slowest_{};
};

int Main(int argc, char** argv) {
  CLI::App app{"Streams between processes that die, stop, fork and lose packets.", "soak"};
  double minutes = 10;
  uint64_t seed = 1;
  std::string faults = "loss=1%,corrupt=0.5%,duplicate=1%,reorder=1%";
  bool client = false;
  bool quiet = false;
  bool verbose = false;
  app.add_option("--minutes", minutes, "how long (default 10)")->check(CLI::Range(0.0, 1440.0));
  app.add_option("--seed", seed, "of the order of the rounds (default 1)");
  app.add_option("--faults", faults, "of the wire towards one client, as SIMHCA_FAULTS");
  app.add_flag("--quiet", quiet, "no progress, only the counts at the end");
  app.add_flag("--verbose", verbose, "name each round as it begins");
  app.add_flag("--client", client)->group("");  // how the program starts its own clients
  CLI11_PARSE(app, argc, argv);
  if (client) return RunClient();

  Soak soak(seed, faults);
  soak.Run(duration_cast<Clock::duration>(std::chrono::duration<double>(minutes * 60)), quiet,
           verbose);
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  soak.server().Finish();
  soak.Report();
  const uint32_t receives = soak.server().CountReceives();
  std::printf("receives left in the SRQ: %u of %u\n", receives, Endpoint::kReceives);
  return receives == Endpoint::kReceives ? 0 : 1;
}

}  // namespace
}  // namespace simhca::soak

int main(int argc, char** argv) { return simhca::soak::Main(argc, argv); }
