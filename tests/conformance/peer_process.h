#ifndef SIMHCA_TESTS_CONFORMANCE_PEER_PROCESS_H_
#define SIMHCA_TESTS_CONFORMANCE_PEER_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace simhca::conformance {

// This program started once more, as the other end of a connection.  The two exchange queue pair
// numbers over the peer's standard input and output.
class PeerProcess {
 public:
  // `role` is one of those that RunPeer knows.
  explicit PeerProcess(const std::string& role);
  // Ends a peer that is still running.
  ~PeerProcess();
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  // The number that the peer wrote, or nothing if none came in time.
  std::optional<uint32_t> ReadNumber();
  void WriteNumber(uint32_t number);
  // Waits for the peer's end; its exit status, or -1 if it did not end in time or not by itself.
  int Wait();

 private:
  pid_t pid_ = -1;
  int to_peer_ = -1;
  int from_peer_ = -1;
};

// Messages of the peer's roles: length and pattern of message `i`.
inline constexpr uint32_t kExitMessages = 8;
inline constexpr uint32_t kSrqMessages = 200;
inline constexpr size_t kPeerMessageBytes = 4096;
inline constexpr size_t kLongMessageBytes = 16 << 20;  // many times what a link holds
inline size_t PeerMessageLength(uint32_t i) { return 1 + (i * 1237u) % kPeerMessageBytes; }

// The program's other main: what a peer does.  Returns its exit status.
//   exit-after-send     sends kExitMessages and exits without waiting for anything
//   exit-after-connect  connects and exits
//   receive-long        takes one message of kLongMessageBytes, then writes a number
//   send-to-srq         sends kSrqMessages, waits for the success of each, and returns
int RunPeer(const std::string& role);

}  // namespace simhca::conformance

#endif  // SIMHCA_TESTS_CONFORMANCE_PEER_PROCESS_H_
