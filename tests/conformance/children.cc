#include "tests/conformance/children.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "tests/conformance/objects.h"

extern char** environ;

namespace simhca::conformance {

namespace {

constexpr int kGood = 17;
constexpr std::chrono::seconds kChildPatience{20};

int64_t NowNs() { return Nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count(); }

[[noreturn]] void RunForkedChild(ChildKind kind) {
  switch (kind) {
    case ChildKind::kExit:
      std::exit(kGood);
    case ChildKind::kExec:
      execl("/bin/sh", "sh", "-c", "exit 17", nullptr);
      _exit(1);
    case ChildKind::kOwnContext: {
      bool good = false;
      try {
        good = TalkToItself();
      } catch (const std::exception& error) {
        std::fprintf(stderr, "child: %s\n", error.what());
      }
      _exit(good ? kGood : 1);
    }
    default:
      _exit(kGood);
  }
}

pid_t Spawn() {
  const char* const argv[] = {"sh", "-c", "exit 17", nullptr};
  pid_t pid = -1;
  return posix_spawn(&pid, "/bin/sh", nullptr, nullptr, const_cast<char**>(argv), environ) == 0
             ? pid
             : -1;
}

[[gnu::noinline]] pid_t VforkAndExec() {
  const pid_t pid = vfork();
  if (pid == 0) {
    execl("/bin/sh", "sh", "-c", "exit 17", nullptr);
    _exit(1);
  }
  return pid;
}

}  // namespace

const char* NameOf(ChildKind kind) {
  switch (kind) {
    case ChildKind::kExit:
      return "fork and exit()";
    case ChildKind::kQuit:
      return "fork and _exit()";
    case ChildKind::kExec:
      return "fork and exec";
    case ChildKind::kOwnContext:
      return "fork and a context of its own";
    case ChildKind::kVfork:
      return "vfork and exec";
    case ChildKind::kSpawn:
      return "posix_spawn";
    case ChildKind::kSystem:
      return "system()";
  }
  return "?";
}

Child::Child(ChildKind kind) : kind_(kind) {
  give_up_ns_ = NowNs() + Nanoseconds(kChildPatience).count();
  std::fflush(nullptr);  // a child that exits would write it once more
  if (kind == ChildKind::kSystem) {
    status_ = std::system("exit 17");
  } else if (kind == ChildKind::kSpawn) {
    pid_ = Spawn();
  } else if (kind == ChildKind::kVfork) {
    pid_ = VforkAndExec();
  } else {
    pid_ = fork();
    if (pid_ == 0) RunForkedChild(kind);
  }
  Require(status_ || pid_ > 0, "starting a child");
}

Child::~Child() {
  if (status_) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

bool Child::Ended() {
  int status = 0;
  if (!status_ && waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
  return status_.has_value() || NowNs() > give_up_ns_;
}

bool Child::DidWell() const {
  return status_ && WIFEXITED(*status_) && WEXITSTATUS(*status_) == kGood;
}

bool TalkToItself() {
  constexpr uint32_t kMessages = 50;
  constexpr size_t kBytes = 3000;
  const Device device;
  const Pd pd = MakePd(device);
  const Cq send_cq = MakeCq(device, 4);
  const Cq receive_cq = MakeCq(device, 4);
  Buffer source(pd.get(), kBytes);
  Buffer sink(pd.get(), kBytes);
  const QpOptions options{.send_cq = send_cq.get(), .receive_cq = receive_cq.get()};
  const Qp a = MakeQp(device, pd.get(), options);
  const Qp b = MakeQp(device, pd.get(), options);
  Connect(device, a.get(), b.get());
  for (uint32_t i = 0; i < kMessages; ++i) {
    source.Fill(i, 0, kBytes);
    if (PostReceive(b.get(), i, {sink.Sge(0, kBytes)}) != 0) return false;
    if (PostSend(a.get(), {.wr_id = i, .segments = {source.Sge(0, kBytes)}}) != 0) return false;
    const ibv_wc received = PollOne(device, receive_cq.get());
    const ibv_wc sent = PollOne(device, send_cq.get());
    if (received.status != IBV_WC_SUCCESS || sent.status != IBV_WC_SUCCESS || received.wr_id != i ||
        !sink.Holds(i, 0, kBytes)) {
      return false;
    }
  }
  return true;
}

}  // namespace simhca::conformance
