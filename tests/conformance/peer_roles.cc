// What the peers of peer_process.h do.
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "tests/conformance/children.h"
#include "tests/conformance/objects.h"
#include "tests/conformance/peer_process.h"

namespace simhca::conformance {

namespace {

constexpr std::chrono::seconds kPeerPatience{30};

void PrintNumber(uint64_t number) {
  std::printf("%" PRIu64 "\n", number);
  std::fflush(stdout);
}

// One line of the standard input, without reading ahead.
bool ReadNumber(unsigned* number) {
  std::string line;
  for (char byte; line.empty() || line.back() != '\n'; line.push_back(byte)) {
    if (read(STDIN_FILENO, &byte, 1) != 1) return false;
  }
  *number = static_cast<unsigned>(std::strtoul(line.c_str(), nullptr, 10));
  return true;
}

// A number waits, or the input has ended with the process at its other end.
bool InputWaits(int milliseconds) {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  return poll(&input, 1, milliseconds) == 1;
}

// One connection to the process that started this one.
struct Peer {
  explicit Peer(size_t bytes, const ConnectOptions& connection = {})
      : buffer(pd.get(), bytes), connect_options(connection) {}

  // Tells our queue pair's number, reads the other's, and connects.
  bool Connect() {
    PrintNumber(qp->qp_num);
    unsigned other = 0;
    if (!ReadNumber(&other)) return false;
    BringTo(device, qp.get(), IBV_QPS_RTS, ConnectionAttributes(device, other, connect_options));
    return true;
  }

  // Posts message `i` from its own place in the buffer.
  int PostMessage(uint32_t i, uint32_t slots) {
    const size_t offset = (i % slots) * kPeerMessageBytes;
    buffer.Fill(i, offset, PeerMessageLength(i));
    return PostSend(qp.get(), {.wr_id = i, .segments = {buffer.Sge(offset, PeerMessageLength(i))}});
  }

  Device device;
  Pd pd = MakePd(device);
  Cq cq = MakeCq(device, 128);
  Buffer buffer;
  const ConnectOptions connect_options;
  Qp qp = MakeQp(device, pd.get(), {.send_cq = cq.get(), .receive_cq = cq.get()});
};

int ExitAfterConnect() {
  Peer peer(kPeerMessageBytes);
  if (!peer.Connect()) return 3;
  PrintNumber(0);
  std::exit(0);
}

// Nothing is polled, nothing destroyed; `end` ends the process.
int EndAfterSend(void (*end)()) {
  Peer peer(kExitMessages * kPeerMessageBytes);
  if (!peer.Connect()) return 3;
  for (uint32_t i = 0; i < kExitMessages; ++i) {
    if (peer.PostMessage(i, kExitMessages) != 0) std::exit(4);
  }
  end();
  return 2;
}

int ReceiveLong() {
  Peer peer(kLongMessageBytes, {.mtu = IBV_MTU_4096});
  if (!peer.Connect()) return 3;
  if (PostReceive(peer.qp.get(), 0, {peer.buffer.Sge(0, kLongMessageBytes)}) != 0) return 6;
  const ibv_wc wc = PollOne(peer.device, peer.cq.get(), kPeerPatience);
  PrintNumber(wc.status == IBV_WC_SUCCESS ? wc.byte_len : 0);
  return 0;
}

// Sends kSrqMessages and waits until each has succeeded.
bool SendAll(Peer& peer) {
  uint32_t sent = 0;
  for (uint32_t completed = 0; completed < kSrqMessages; ++completed) {
    while (sent < kSrqMessages && sent - completed < kStreamInFlight) {
      if (peer.PostMessage(sent++, kStreamInFlight) != 0) return false;
    }
    const std::vector<ibv_wc> wcs = Poll(peer.device, peer.cq.get(), 1);
    if (wcs.empty() || wcs[0].status != IBV_WC_SUCCESS || wcs[0].wr_id != completed) return false;
  }
  return true;
}

int SendToSrq() {
  Peer peer(kStreamInFlight * kPeerMessageBytes);
  if (!peer.Connect()) return 3;
  return SendAll(peer) ? 0 : 5;
}

int CloseEverything() {
  Peer peer(kStreamInFlight * kPeerMessageBytes);
  if (!peer.Connect()) return 3;
  syscall(SYS_close_range, 3, ~0u, 0);
  // Another file gets the number that the context's async_fd had.
  std::FILE* const log = std::tmpfile();
  const int log_number = peer.device.context()->async_fd;
  if (log == nullptr || dup2(fileno(log), log_number) != log_number) return 7;
  if (!SendAll(peer)) return 5;
  PrintNumber(0);
  unsigned number = 0;
  if (!ReadNumber(&number) || !SendAll(peer)) return 5;
  // An asynchronous event has nobody left to read it, and must not end up in that file.
  const Srq srq = MakeSrq(peer.pd.get(), 4);
  ibv_srq_attr attr{};
  attr.srq_limit = 4;
  if (ibv_modify_srq(srq.get(), &attr, IBV_SRQ_LIMIT) != 0) return 8;
  struct stat status;
  if (fstat(log_number, &status) != 0 || status.st_size != 0) return 9;
  // Such a program does not end in good order on hardware either: its objects' files are gone.
  _exit(0);
}

int ServeReads() {
  Peer peer(kPeerMessageBytes, kStreamConnection);
  peer.buffer.Fill(1, 0, kPeerMessageBytes);
  if (!peer.Connect()) return 3;
  PrintNumber(peer.buffer.rkey());
  PrintNumber(peer.buffer.address());
  return InputWaits(-1) ? 0 : 4;
}

// Sends and receives at the same time.
class Stream {
 public:
  // In the buffer from `offset` on.
  explicit Stream(Peer& peer, size_t offset = 0) : peer_(peer), offset_(offset) {
    for (uint32_t i = 0; i < kStreamInFlight; ++i) PostReceiveInto(i);
  }

  // One round.  False once something has failed.
  bool Turn(bool send) {
    while (send && !failed_ && in_flight_ < kStreamInFlight) {
      failed_ |= PostSend(peer_.qp.get(),
                          {.wr_id = kSend,
                           .segments = {peer_.buffer.Sge(offset_, kPeerMessageBytes)}}) != 0;
      ++in_flight_;
    }
    ibv_wc wcs[kStreamInFlight];
    const int count = ibv_poll_cq(peer_.cq.get(), kStreamInFlight, wcs);
    for (int i = 0; i < count; ++i) Take(wcs[i]);
    return !failed_ && count >= 0;
  }

  uint32_t in_flight() const { return in_flight_; }
  uint64_t sent() const { return sent_; }

 private:
  static constexpr uint64_t kSend = 1000;

  void PostReceiveInto(uint64_t slot) {
    failed_ |=
        PostReceive(
            peer_.qp.get(), slot,
            {peer_.buffer.Sge(offset_ + (1 + slot) * kPeerMessageBytes, kPeerMessageBytes)}) != 0;
  }
  void Take(const ibv_wc& wc) {
    if (wc.status != IBV_WC_SUCCESS) {
      std::fprintf(stderr, "peer: %s of a %s\n", ibv_wc_status_str(wc.status),
                   wc.wr_id == kSend ? "send" : "receive");
      failed_ = true;
    } else if (wc.wr_id == kSend) {
      --in_flight_;
      ++sent_;
    } else {
      PostReceiveInto(wc.wr_id);
    }
  }

  Peer& peer_;
  const size_t offset_;
  uint32_t in_flight_ = 0;
  uint64_t sent_ = 0;
  bool failed_ = false;
};

// Streams until `enough` and then takes what still comes until it reads a number.
int StreamUntil(Peer& peer, Stream& stream, const std::function<bool()>& enough) {
  for (bool send = true; send || stream.in_flight() > 0; send = send && !enough()) {
    if (!stream.Turn(send)) return 5;
  }
  PrintNumber(stream.sent());
  while (!InputWaits(0)) {
    if (!stream.Turn(false)) return 5;
  }
  // Nothing is left to answer when the other side has said so.
  peer.qp.reset();
  return 0;
}

int RunStream() {
  Peer peer((1 + kStreamInFlight) * kPeerMessageBytes, kStreamConnection);
  if (!peer.Connect()) return 3;
  Stream stream(peer);
  unsigned number = 0;
  return StreamUntil(peer, stream, [&] { return InputWaits(0) && ReadNumber(&number); });
}

// Queue pairs that talk to nobody.  What may fail, may; the calls have to return.
void MakeAndDestroy(Peer& peer) {
  try {
    const Qp qp =
        MakeQp(peer.device, peer.pd.get(), {.send_cq = peer.cq.get(), .receive_cq = peer.cq.get()});
    BringTo(peer.device, qp.get(), IBV_QPS_RTS,
            ConnectionAttributes(peer.device, qp->qp_num, kStreamConnection));
    PostSend(qp.get(), {.segments = {peer.buffer.Sge(0, 64)}});
  } catch (const std::exception&) {
  }
}

int Endure() {
  constexpr std::chrono::seconds kEach{1};
  constexpr size_t kBytes = (1 + kStreamInFlight) * kPeerMessageBytes;
  Peer peer(3 * kBytes, kStreamConnection);
  // Only the middle third is ever named in a work request, or may be written.
  peer.buffer.RegisterOnly(peer.pd.get(), kBytes, kBytes);
  if (!peer.Connect()) return 3;
  Stream stream(peer, kBytes);
  auto end = std::chrono::steady_clock::now() + kEach;
  bool good = true;
  while (std::chrono::steady_clock::now() < end) good = stream.Turn(good);
  std::fprintf(stderr, "the connection %s, %llu sends\n", good ? "lasted" : "was lost",
               static_cast<unsigned long long>(stream.sent()));
  end += kEach;
  while (std::chrono::steady_clock::now() < end) {
    MakeAndDestroy(peer);
    stream.Turn(false);
  }
  return peer.buffer.Untouched(0, kBytes) && peer.buffer.Untouched(2 * kBytes, kBytes) ? 0 : 6;
}

int StreamAndFork() {
  Peer peer((1 + kStreamInFlight) * kPeerMessageBytes, kStreamConnection);
  if (!peer.Connect()) return 3;
  Stream stream(peer);
  bool good = true;
  for (const ChildKind kind : kAllChildren) {
    Child child(kind);
    while (!child.Ended()) good = good && stream.Turn(true);
    if (!child.DidWell()) return 6;
  }
  if (!good) return 5;
  return StreamUntil(peer, stream, [] { return true; });
}

}  // namespace

int RunPeer(const std::string& role) {
  if (role == "exit-after-connect") return ExitAfterConnect();
  if (role == "exit-after-send") return EndAfterSend([] { std::exit(0); });
  if (role == "quit-after-send") return EndAfterSend([] { _exit(0); });
  if (role == "term-after-send") return EndAfterSend([] { raise(SIGTERM); });
  if (role == "kill-after-send") return EndAfterSend([] { raise(SIGKILL); });
  if (role == "receive-long") return ReceiveLong();
  if (role == "send-to-srq") return SendToSrq();
  if (role == "close-everything") return CloseEverything();
  if (role == "serve-reads") return ServeReads();
  if (role == "endure") return Endure();
  if (role == "stream") return RunStream();
  if (role == "stream-and-fork") return StreamAndFork();
  return 2;
}

}  // namespace simhca::conformance
