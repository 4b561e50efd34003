#include "tests/conformance/peer_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tests/conformance/objects.h"

extern char** environ;

namespace simhca::conformance {

namespace {

constexpr std::chrono::seconds kPeerPatience{30};

void PrintNumber(uint32_t number) {
  std::printf("%u\n", number);
  std::fflush(stdout);
}

// Posts message `i` from its own place in `buffer`.
int PostMessage(ibv_qp* qp, Buffer& buffer, uint32_t i, uint32_t slots) {
  const size_t offset = (i % slots) * kPeerMessageBytes;
  buffer.Fill(i, offset, PeerMessageLength(i));
  return PostSend(qp, {.wr_id = i, .segments = {buffer.Sge(offset, PeerMessageLength(i))}});
}

// Sends every message and waits until each has succeeded.
bool SendAll(const Device& device, ibv_cq* cq, ibv_qp* qp, Buffer& buffer) {
  constexpr uint32_t kInFlight = 16;
  uint32_t sent = 0;
  for (uint32_t completed = 0; completed < kSrqMessages; ++completed) {
    while (sent < kSrqMessages && sent - completed < kInFlight) {
      if (PostMessage(qp, buffer, sent++, kInFlight) != 0) return false;
    }
    const std::vector<ibv_wc> wcs = Poll(device, cq, 1);
    if (wcs.empty() || wcs[0].status != IBV_WC_SUCCESS || wcs[0].wr_id != completed) return false;
  }
  return true;
}

}  // namespace

PeerProcess::PeerProcess(const std::string& role) {
  int input[2];
  int output[2];
  Require(pipe2(input, O_CLOEXEC) == 0 && pipe2(output, O_CLOEXEC) == 0, "pipe2");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
  std::vector<std::string> words = {
      "conformance", "--peer=" + role, "--port=" + std::to_string(run_options().port),
      "--gid-index=" + std::to_string(run_options().gid_index), "--clock=" + run_options().clock};
  if (!run_options().device.empty()) words.push_back("--device=" + run_options().device);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  errno = posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(input[0]);
  close(output[1]);
  to_peer_ = input[1];
  from_peer_ = output[0];
  Require(errno == 0, "posix_spawn");
}

PeerProcess::~PeerProcess() {
  close(to_peer_);
  close(from_peer_);
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
}

std::optional<uint32_t> PeerProcess::ReadNumber() {
  std::string line;
  while (line.empty() || line.back() != '\n') {
    pollfd readable{from_peer_, POLLIN, 0};
    char byte = 0;
    if (poll(&readable, 1, static_cast<int>(Milliseconds(kPeerPatience).count())) != 1 ||
        read(from_peer_, &byte, 1) != 1) {
      return std::nullopt;
    }
    line.push_back(byte);
  }
  return static_cast<uint32_t>(std::strtoul(line.c_str(), nullptr, 10));
}

void PeerProcess::WriteNumber(uint32_t number) {
  const std::string line = std::to_string(number) + "\n";
  Require(write(to_peer_, line.data(), line.size()) == static_cast<ssize_t>(line.size()),
          "writing to the peer");
}

int PeerProcess::Wait() {
  const auto end = std::chrono::steady_clock::now() + kPeerPatience;
  int status = 0;
  while (waitpid(pid_, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() >= end) return -1;
    sched_yield();
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int RunPeer(const std::string& role) {
  const Device device;
  const Pd pd = MakePd(device);
  const Cq cq = MakeCq(device, 64);
  const bool long_message = role == "receive-long";
  Buffer buffer(pd.get(), long_message ? kLongMessageBytes : 16 * kPeerMessageBytes);
  QpOptions options;
  options.send_cq = cq.get();
  options.receive_cq = cq.get();
  const Qp qp = MakeQp(device, pd.get(), options);
  PrintNumber(qp->qp_num);
  unsigned peer = 0;
  if (std::scanf("%u", &peer) != 1) return 3;
  ConnectOptions connection;
  if (long_message) connection.mtu = IBV_MTU_4096;
  BringTo(device, qp.get(), IBV_QPS_RTS, ConnectionAttributes(device, peer, connection));
  if (long_message) {
    if (PostReceive(qp.get(), 0, {buffer.Sge(0, kLongMessageBytes)}) != 0) return 6;
    const ibv_wc wc = PollOne(device, cq.get(), kPeerPatience);
    PrintNumber(wc.status == IBV_WC_SUCCESS ? wc.byte_len : 0);
    return 0;
  }
  if (role == "exit-after-connect") {
    PrintNumber(0);
    std::exit(0);
  }
  if (role == "exit-after-send") {
    for (uint32_t i = 0; i < kExitMessages; ++i) {
      if (PostMessage(qp.get(), buffer, i, kExitMessages) != 0) std::exit(4);
    }
    std::exit(0);  // nothing is polled, nothing destroyed
  }
  if (role == "send-to-srq") return SendAll(device, cq.get(), qp.get(), buffer) ? 0 : 5;
  return 2;
}

}  // namespace simhca::conformance
