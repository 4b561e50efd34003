#ifndef SIMHCA_TESTS_SOAK_SERVER_H_
#define SIMHCA_TESTS_SOAK_SERVER_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/soak/client.h"
#include "tests/soak/endpoint.h"

namespace simhca::soak {

using Clock = std::chrono::steady_clock;

// A client process as the server sees it.
struct Peer {
  pid_t pid = 0;
  int to = -1;    // its standard input
  int from = -1;  // its standard output
  bool lossy = false;
  ibv_qp* qp = nullptr;
  bool sending = true;       // the server keeps its window towards it full
  bool may_fail = false;     // it is being killed
  uint64_t sent = 0;         // by the server
  uint64_t done = 0;         // of those, acknowledged
  uint64_t received = 0;     // by the server
  uint64_t errors = 0;       // completions that were no success
  Clock::time_point failed;  // when the first of them came
};

// The surviving side: streams with all clients at once over one shared receive queue and checks
// every message.  Ends the program, with a reason, if anything comes that was not provoked.
class Server {
 public:
  // `faults`: what SIMHCA_FAULTS is for the last of the clients.
  Server(uint32_t clients, std::string faults);

  // Ends all clients in good order.
  void Finish();

  Peer& peer(size_t index) { return peers_[index]; }
  size_t size() const { return peers_.size(); }

  // Streams until `done` or, failing that, until `limit` is over; returns whether it was `done`.
  bool Serve(
      Clock::duration limit, const std::function<bool()>& done = [] { return false; });

  // Takes all completions that there are.
  void CatchUp();

  // Starts a client in the place of one that is gone.
  void Start(Peer& peer);
  // Waits for the process's end, streaming meanwhile, and lets go of the connection.
  // Returns the status of waitpid.
  int Bury(Peer& peer);
  void Tell(Peer& peer, Order order);
  // Reads what the client writes to its standard output, streaming meanwhile.
  void Await(Peer& peer, void* data, ssize_t bytes);

  uint64_t messages() const { return messages_; }
  uint32_t CountReceives() { return endpoint_.CountReceives(); }

 private:
  bool Turn();
  void On(const Completion& completion);

  Endpoint endpoint_;
  const std::string faults_;
  std::vector<Peer> peers_;
  uint64_t messages_ = 0;
};

}  // namespace simhca::soak

#endif  // SIMHCA_TESTS_SOAK_SERVER_H_
