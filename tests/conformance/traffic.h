#ifndef SIMHCA_TESTS_CONFORMANCE_TRAFFIC_H_
#define SIMHCA_TESTS_CONFORMANCE_TRAFFIC_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tests/conformance/fixture.h"
#include "tests/conformance/peer_process.h"

namespace simhca::conformance {

// One connection of the process under test to a peer that streams.
struct Lane {
  Qp qp;
  bool sending = true;
  uint32_t in_flight = 0;
  uint64_t sent = 0;                    // with success
  uint64_t received = 0;                // with success
  std::vector<ibv_wc_status> failures;  // of sends
};

// A process that streams with several peers at once and receives everything in one SRQ.
class TrafficTest : public SrqTest {
 protected:
  static constexpr uint32_t kReceives = 64;
  static constexpr size_t kMinimum = 24;  // messages each way that count as a stream

  TrafficTest();

  // Connects to `peer`, which then starts.
  Lane& AddLane(PeerProcess& peer, const ConnectOptions& options = kStreamConnection);
  // After the lane's traffic has ended.
  void RemoveLane(Lane& lane);

  // Sends on all lanes and takes completions, until `done` or for kPatience at most; whether it
  // came to that.
  bool RunUntil(const std::function<bool()>& done);
  // Both sides of `lane` have moved kMinimum messages from now on.
  bool Streams(Lane& lane);
  // Ends the stream of a peer of role stream: all that both have sent has arrived.
  void Finish(PeerProcess& peer, Lane& lane);

  // Receives that were posted and have not completed.
  uint32_t Outstanding() const { return posted_ - completed_; }
  // While false, nothing is posted in place of what completes.
  bool repost_ = true;

 private:
  void Turn();
  void Send(Lane& lane);
  void TakeReceive(const ibv_wc& wc);
  void Post(uint64_t slot);

  std::vector<std::unique_ptr<Lane>> lanes_;
  Buffer receive_buffer_;
  uint32_t posted_ = 0;
  uint32_t completed_ = 0;
};

}  // namespace simhca::conformance

#endif  // SIMHCA_TESTS_CONFORMANCE_TRAFFIC_H_
