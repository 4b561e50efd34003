#include "tests/conformance/peer_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

extern char** environ;

namespace simhca::conformance {

namespace {

constexpr std::chrono::seconds kPeerPatience{30};

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

std::optional<uint64_t> PeerProcess::ReadNumber() {
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
  return std::strtoull(line.c_str(), nullptr, 10);
}

bool PeerProcess::HasWritten() const {
  pollfd readable{from_peer_, POLLIN, 0};
  return poll(&readable, 1, 0) == 1;
}

void PeerProcess::WriteNumber(uint32_t number) {
  const std::string line = std::to_string(number) + "\n";
  Require(write(to_peer_, line.data(), line.size()) == static_cast<ssize_t>(line.size()),
          "writing to the peer");
}

std::optional<int> PeerProcess::WaitForEnd() {
  const auto end = std::chrono::steady_clock::now() + kPeerPatience;
  int status = 0;
  while (waitpid(pid_, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() >= end) return std::nullopt;
    sched_yield();
  }
  pid_ = -1;
  return status;
}

int PeerProcess::Wait() {
  const std::optional<int> status = WaitForEnd();
  return status && WIFEXITED(*status) ? WEXITSTATUS(*status) : -1;
}

int PeerProcess::WaitForSignal() {
  const std::optional<int> status = WaitForEnd();
  return status && WIFSIGNALED(*status) ? WTERMSIG(*status) : -1;
}

void PeerProcess::Signal(int signal) {
  Require(pid_ > 0 && kill(pid_, signal) == 0, "a signal to the peer");
}

void PeerProcess::Stop() {
  Signal(SIGSTOP);
  int status = 0;
  Require(waitpid(pid_, &status, WUNTRACED) == pid_ && WIFSTOPPED(status), "stopping the peer");
}

}  // namespace simhca::conformance
