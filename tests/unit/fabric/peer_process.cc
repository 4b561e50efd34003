#include "tests/unit/fabric/peer_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace simhca {

PeerProcess::PeerProcess(std::vector<std::string> arguments) {
  int to[2], from[2];
  if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) abort();
  std::string program = "/proc/self/exe", mark = "--peer";
  std::vector<char*> argv = {program.data(), mark.data()};
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
  if (posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ) != 0) abort();
  posix_spawn_file_actions_destroy(&actions);
  close(to[0]);
  close(from[1]);
  to_ = to[1];
  from_ = from[0];
}

PeerProcess::~PeerProcess() {
  if (pid_ > 0) Kill();
  if (to_ >= 0) close(to_);
  close(from_);
}

std::string PeerProcess::ReadLine() {
  std::string line;
  pollfd waiting = {from_, POLLIN, 0};
  char c;
  while (poll(&waiting, 1, 10'000) == 1 && read(from_, &c, 1) == 1) {
    if (c == '\n') return line;
    line += c;
  }
  ADD_FAILURE() << "the peer process said nothing more; line so far: '" << line << "'";
  return "";
}

void PeerProcess::WriteLine(const std::string& line) {
  const std::string text = line + "\n";
  ASSERT_EQ(write(to_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

int PeerProcess::Wait() {
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void PeerProcess::Kill() {
  kill(pid_, SIGKILL);
  Wait();
}

int PeerProcess::Finish() {
  close(to_);
  to_ = -1;
  return Wait();
}

}  // namespace simhca

int main(int argc, char** argv) {
  if (argc > 2 && std::string(argv[1]) == "--peer") {
    alarm(60);  // never outlives a test that went wrong
    return simhca::RunPeer(std::vector<std::string>(argv + 2, argv + argc));
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
