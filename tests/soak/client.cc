#include "tests/soak/client.h"

#include <poll.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/soak/endpoint.h"

namespace simhca::soak {
namespace {

constexpr int kTurnsPerLook = 256;  // at standard input

class Client {
 public:
  int Run() {
    const uint32_t own = qp_->qp_num;
    uint32_t peer = 0;
    if (write(STDOUT_FILENO, &own, sizeof own) != sizeof own) return 2;
    if (read(STDIN_FILENO, &peer, sizeof peer) != sizeof peer) return 2;
    endpoint_.Connect(qp_, peer);
    while (true) {
      for (int turn = 0; turn < kTurnsPerLook; ++turn) {
        if (!Turn()) sched_yield();
      }
      pollfd readable{STDIN_FILENO, POLLIN, 0};
      if (poll(&readable, 1, 0) != 1) continue;
      char order = 0;
      if (read(STDIN_FILENO, &order, 1) != 1) _exit(0);  // the server is gone
      if (const int status = Obey(static_cast<Order>(order)); status >= 0) return status;
    }
  }

 private:
  // Returns the exit status, or -1 to go on.
  int Obey(Order order) {
    switch (order) {
      case Order::kFinish:
        return Finish();
      case Order::kExit:
        SendLast();
        std::exit(0);
      case Order::kUnderscore:
        SendLast();
        _exit(0);
      case Order::kPause:
        Settle();
        return write(STDOUT_FILENO, &kPaused, 1) == 1 ? -1 : 2;
      case Order::kResume:
        sending_ = true;
        return -1;
      case Order::kFork:
        Fork();
        return write(STDOUT_FILENO, &kForked, 1) == 1 ? -1 : 2;
    }
    return 2;
  }

  bool Turn() {
    const size_t found = endpoint_.Poll([this](const Completion& completion) { On(completion); });
    while (sending_ && sent_ - done_ < kClientWindow && sent_ - taken_ < kClientCredit) {
      endpoint_.Send(qp_, sent_++);
    }
    return found > 0;
  }

  void On(const Completion& completion) {
    if (completion.status != IBV_WC_SUCCESS) {
      Die(std::string("client: ") + ibv_wc_status_str(completion.status));
    }
    if (!completion.receive) {
      ++done_;
      return;
    }
    if (!completion.intact) Die("client: a message arrived with other contents than were sent");
    if (completion.header.sequence != received_++) Die("client: a message is lost or repeated");
    taken_ = completion.header.credit;
  }

  // Sends no more and waits until all that was sent is acknowledged.
  void Settle() {
    sending_ = false;
    while (done_ < sent_) {
      if (!Turn()) sched_yield();
    }
  }

  int Finish() {
    Settle();
    endpoint_.DestroyQp(qp_);
    return 0;
  }

  void SendLast() {
    Settle();
    const uint64_t total = sent_ + kLastMessages;
    if (write(STDOUT_FILENO, &total, sizeof total) != sizeof total) Die("client: no server");
    for (uint32_t i = 0; i < kLastMessages; ++i) endpoint_.Send(qp_, sent_++);
  }

  void Fork() {
    const pid_t child = fork();
    if (child < 0) Die("client: fork failed");
    if (child == 0) {
      switch (sent_ % 4) {
        case 0:
          _exit(0);
        case 1:
          std::exit(0);
        case 2:
          execl("/bin/true", "true", static_cast<char*>(nullptr));
          _exit(3);
        default: {
          // The child is a process of its own, with a device of its own.
          Endpoint own;
          _exit(own.CountReceives() == Endpoint::kReceives ? 0 : 4);
        }
      }
    }
    int status = 0;
    while (waitpid(child, &status, WNOHANG) == 0) {
      if (!Turn()) sched_yield();
    }
    if (status != 0) Die("client: the forked child ended with " + std::to_string(status));
  }

  Endpoint endpoint_;
  ibv_qp* qp_ = endpoint_.CreateQp();
  uint64_t sent_ = 0;
  uint64_t done_ = 0;
  uint64_t taken_ = 0;  // of those, by the server's program
  uint64_t received_ = 0;
  bool sending_ = true;
};

}  // namespace

int RunClient() {
  Client client;
  return client.Run();
}

}  // namespace simhca::soak
