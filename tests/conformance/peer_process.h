#ifndef SIMHCA_TESTS_CONFORMANCE_PEER_PROCESS_H_
#define SIMHCA_TESTS_CONFORMANCE_PEER_PROCESS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "tests/conformance/objects.h"

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
  std::optional<uint64_t> ReadNumber();
  // Something waits to be read, or the peer has ended.
  bool HasWritten() const;
  void WriteNumber(uint32_t number);
  // Waits for the peer's end; its exit status, or -1 if it did not end in time or not by itself.
  int Wait();
  // The same for a peer that is ended by a signal: its number, or -1.
  int WaitForSignal();

  void Signal(int signal);
  // SIGSTOP, and waits until the peer has stopped.
  void Stop();

 private:
  // As waitpid gives it, or nothing if the peer did not end in time.
  std::optional<int> WaitForEnd();

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
// Of the roles that stream: sends in flight at a time.
inline constexpr uint32_t kStreamInFlight = 16;
// Of roles whose peers may stop or die: about 1 ms, three times over.
inline constexpr ConnectOptions kStreamConnection = {
    .min_rnr_timer = 1, .timeout = 8, .retry_count = 2};

// The program's other main: what a peer does.  Returns its exit status.
//   exit-after-send     sends kExitMessages and exits without waiting for anything
//   quit-after-send     the same with _exit()
//   term-after-send     the same, by SIGTERM
//   kill-after-send     the same, by SIGKILL
//   exit-after-connect  connects and exits
//   receive-long        takes one message of kLongMessageBytes, then writes a number
//   send-to-srq         sends kSrqMessages, waits for the success of each, and returns
//   stream              sends kPeerMessageBytes again and again, and receives, until it reads a
//                       number; then writes how many of its sends have succeeded, and takes what
//                       comes until it reads another
//   stream-and-fork     the same, while all the children of children.h come and go; ends by itself
//   serve-reads         writes key and address of kPeerMessageBytes that hold the pattern of 1, and
//                       waits without a verbs call until it reads a number
//   endure              streams for a second, whatever becomes of the connection, which may fail;
//   then
//                       makes queue pairs and destroys them again for as long
//   close-everything    closes all its descriptors but the standard ones, then as send-to-srq,
//                       twice; the second time after peers may have taken it for dead
int RunPeer(const std::string& role);

}  // namespace simhca::conformance

#endif  // SIMHCA_TESTS_CONFORMANCE_PEER_PROCESS_H_
