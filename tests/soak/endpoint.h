#ifndef SIMHCA_TESTS_SOAK_ENDPOINT_H_
#define SIMHCA_TESTS_SOAK_ENDPOINT_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/rc_connection.h"

namespace simhca::soak {

// What every message begins with; the rest follows from it.
struct MessageHeader {
  uint64_t sequence;  // of its sender on this connection, from 0
  uint64_t credit;    // messages that the sender has taken from this connection
  uint32_t length;    // of the whole message
  uint32_t check;     // of header and contents
};

// A message that arrived, or what became of a send.
struct Completion {
  uint32_t qpn;
  ibv_wc_status status;
  bool receive;
  MessageHeader header;  // of a successful receive
  bool intact;           // and whether its contents are what they should be
};

// Prints an explanation and ends the program: a soak stops at the first thing that is wrong.
[[noreturn]] void Die(const std::string& what);

// The verbs objects of one process: a shared receive queue, a completion queue, and connections
// that use them.  Sends are numbered and their contents follow from the number.
class Endpoint {
 public:
  static constexpr uint32_t kReceives = 64;
  static constexpr uint32_t kMessageBytes = 4096;
  // Transport retries: 8 timeouts of 4.2 ms, each of which the simulator may stretch.
  static constexpr uint8_t kTimeout = 10;
  static constexpr uint8_t kRetries = kRcRetries;

  Endpoint();
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  ibv_qp* CreateQp();
  void Connect(ibv_qp* qp, uint32_t remote_qpn, uint8_t rnr_retry = 7);
  void DestroyQp(ibv_qp* qp);

  // Sends message `sequence`.
  void Send(ibv_qp* qp, uint64_t sequence, uint64_t credit = 0);

  // Hands what has completed to `handler`; receives are posted anew.  Each receive must complete
  // exactly once between two posts, or the program ends.  Returns how many there were.
  size_t Poll(const std::function<void(const Completion&)>& handler);

  // How many messages the shared receive queue still takes, counted by sending until one is
  // refused; ends all use of it.
  uint32_t CountReceives();

 private:
  void PostReceive(uint64_t slot);
  std::byte* ReceiveBuffer(uint64_t slot) { return memory_.data() + slot * kMessageBytes; }

  static constexpr uint32_t kSendSlots = 64;
  std::vector<std::byte> memory_ = std::vector<std::byte>((kReceives + kSendSlots) * kMessageBytes);
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_srq* srq_ = nullptr;
  ibv_gid gid_{};
  bool posted_[kReceives] = {};
  uint32_t send_slots_[kSendSlots] = {};  // number of the queue pair whose send is in it, or 0
  bool repost_ = true;
};

}  // namespace simhca::soak

#endif  // SIMHCA_TESTS_SOAK_ENDPOINT_H_
