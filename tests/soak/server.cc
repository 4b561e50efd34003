#include "tests/soak/server.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

extern char** environ;

namespace simhca::soak {
namespace {

constexpr uint32_t kServerWindow = 4;  // sends under way towards each client
constexpr auto kPatience = std::chrono::seconds(20);

void Write(const Peer& peer, const void* data, size_t bytes) {
  if (write(peer.to, data, bytes) != static_cast<ssize_t>(bytes)) {
    Die("client " + std::to_string(peer.pid) + " listens no more");
  }
}

}  // namespace

Server::Server(uint32_t clients, std::string faults) : faults_(std::move(faults)), peers_(clients) {
  signal(SIGPIPE, SIG_IGN);
  peers_.back().lossy = true;
  for (Peer& peer : peers_) Start(peer);
}

void Server::Finish() {
  for (Peer& peer : peers_) {
    peer.sending = false;
    if (!Serve(kPatience, [&] { return peer.done == peer.sent; })) Die("sends never completed");
    Tell(peer, Order::kFinish);
    if (Bury(peer) != 0) Die("a client did not finish in good order");
  }
}

void Server::Start(Peer& peer) {
  int input[2];
  int output[2];
  if (pipe2(input, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0) Die("pipe2 failed");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
  std::string faults = "SIMHCA_FAULTS=" + (peer.lossy ? faults_ : "");
  std::vector<char*> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, "SIMHCA_FAULTS=", 14) != 0) environment.push_back(*entry);
  }
  environment.push_back(faults.data());
  environment.push_back(nullptr);
  char name[] = "soak";
  char role[] = "--client";
  char* const arguments[] = {name, role, nullptr};
  const bool lossy = peer.lossy;
  peer = Peer{};
  peer.lossy = lossy;
  if (posix_spawn(&peer.pid, "/proc/self/exe", &actions, nullptr, arguments, environment.data()) !=
      0) {
    Die("posix_spawn failed");
  }
  posix_spawn_file_actions_destroy(&actions);
  close(input[0]);
  close(output[1]);
  peer.to = input[1];
  peer.from = output[0];
  fcntl(peer.from, F_SETFL, O_NONBLOCK);
  uint32_t number = 0;
  Await(peer, &number, sizeof number);
  peer.qp = endpoint_.CreateQp();
  endpoint_.Connect(peer.qp, number);
  number = peer.qp->qp_num;
  Write(peer, &number, sizeof number);
}

int Server::Bury(Peer& peer) {
  int status = 0;
  if (!Serve(kPatience, [&] { return waitpid(peer.pid, &status, WNOHANG) == peer.pid; })) {
    Die("client " + std::to_string(peer.pid) + " does not end");
  }
  close(peer.to);
  close(peer.from);
  endpoint_.DestroyQp(peer.qp);
  peer.qp = nullptr;
  peer.pid = 0;
  return status;
}

void Server::Await(Peer& peer, void* data, ssize_t bytes) {
  if (!Serve(kPatience,
             [&] { return read(peer.from, data, static_cast<size_t>(bytes)) == bytes; })) {
    Die("client " + std::to_string(peer.pid) + " says nothing");
  }
}

void Server::Tell(Peer& peer, Order order) { Write(peer, &order, 1); }

bool Server::Serve(Clock::duration limit, const std::function<bool()>& done) {
  const Clock::time_point end = Clock::now() + limit;
  do {
    if (done()) return true;
    for (int turns = 0; turns < 16; ++turns) {
      if (!Turn()) sched_yield();
    }
  } while (Clock::now() < end);
  return done();
}

void Server::CatchUp() {
  while (Turn()) {
  }
}

bool Server::Turn() {
  const size_t found = endpoint_.Poll([this](const Completion& completion) { On(completion); });
  for (Peer& peer : peers_) {
    if (peer.qp == nullptr || !peer.sending || peer.errors != 0) continue;
    while (peer.sent - peer.done < kServerWindow) {
      endpoint_.Send(peer.qp, peer.sent++, peer.received);
    }
  }
  return found > 0;
}

void Server::On(const Completion& completion) {
  Peer* peer = nullptr;
  for (Peer& candidate : peers_) {
    if (candidate.qp != nullptr && candidate.qp->qp_num == completion.qpn) peer = &candidate;
  }
  if (peer == nullptr) Die("a completion came for a queue pair that was destroyed");
  if (completion.status != IBV_WC_SUCCESS) {
    const ibv_wc_status wanted = peer->errors == 0 ? IBV_WC_RETRY_EXC_ERR : IBV_WC_WR_FLUSH_ERR;
    if (!peer->may_fail || completion.status != wanted) {
      Die("client " + std::to_string(peer->pid) + ", " +
          (peer->may_fail ? "killed" : "which lives") + (peer->lossy ? ", bad wire: " : ": ") +
          ibv_wc_status_str(completion.status));
    }
    if (peer->errors++ == 0) peer->failed = Clock::now();
    return;
  }
  if (!completion.receive) {
    ++peer->done;
    return;
  }
  ++messages_;
  if (!completion.intact) Die("a message arrived with other contents than were sent");
  if (completion.header.sequence != peer->received++) Die("a message is lost or repeated");
}

}  // namespace simhca::soak
