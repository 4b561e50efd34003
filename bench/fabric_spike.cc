// What the link between two processes can do, without an engine on top: every message goes in
// packets of at most 4 KiB with a 12-byte header, is copied into the link and out of it, and is
// answered with an ACK packet.
//
//   fabric_spike --latency --size N    one-way latency in microseconds, median
//   fabric_spike --rate --size N       million messages per second, one direction
//
// The result is the last word printed.  The two processes are pinned to CPU0 and CPU1 of the
// environment (default 0 and 1).
#include <immintrin.h>
#include <sched.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "sim/fabric/fabric.h"

namespace simhca {
namespace {

constexpr uint32_t kMtu = 4096;

struct Settings {
  bool latency = false;
  bool rate = false;
  uint32_t size = 8;
  uint32_t window = 128;   // messages without an ACK, at most
  uint32_t ack_every = 1;  // messages
  uint32_t flush_every = 1;
  uint32_t pauses = 1;  // of an empty poll, for what a program's own loop does meanwhile
};

int64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

void PinTo(const char* variable, int otherwise) {
  const char* const cpu = getenv(variable);
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu != nullptr ? atoi(cpu) : otherwise, &set);
  sched_setaffinity(0, sizeof set, &set);
}

// As long as a BTH.
struct Header {
  uint16_t ack;
  uint16_t last;
  uint32_t offset;  // of this packet in its message
  uint32_t unused;
};
static_assert(sizeof(Header) == 12);

class Endpoint : public PacketHandler {
 public:
  Endpoint(const Settings& settings, Fabric& fabric)
      : settings_(settings),
        link_(fabric.link()),
        source_(std::max(settings.size, 1u), std::byte{1}),
        target_(source_.size(), std::byte{2}) {}

  void set_peer(uint32_t number) { peer_ = number; }
  uint64_t received() const { return received_; }
  uint64_t acked() const { return acked_; }

  void Send() {
    for (uint32_t offset = 0;;) {
      const uint32_t bytes = std::min(settings_.size - offset, kMtu);
      const bool last = offset + bytes == settings_.size;
      std::byte* packet;
      while ((packet = Room(sizeof(Header) + bytes)) == nullptr) Poll();
      const Header header = {0, last, offset, 0};
      memcpy(packet, &header, sizeof header);
      memcpy(packet + sizeof header, source_.data() + offset, bytes);
      link_.Commit({}, 0);
      offset += bytes;
      if (last) return;
    }
  }

  void Flush() { link_.Flush(); }

  void Poll() {
    const uint32_t taken = link_.Poll(*this, 64, 0);
    while (owed_acks_ != 0 && SendAck()) --owed_acks_;
    link_.Flush();
    for (uint32_t i = 0; taken == 0 && i < settings_.pauses; ++i) _mm_pause();
  }

  void OnPacket(const PacketAddress&, const std::byte* bytes, uint32_t length) override {
    Header header;
    memcpy(&header, bytes, sizeof header);
    if (header.ack != 0) {
      acked_ += settings_.ack_every;
      return;
    }
    memcpy(target_.data() + header.offset, bytes + sizeof header, length - sizeof header);
    if (header.last == 0) return;
    if (++received_ % settings_.ack_every == 0 && !SendAck()) ++owed_acks_;
  }

 private:
  std::byte* Room(uint32_t length) {
    const Link::Reservation reservation = link_.Reserve(peer_, length);
    if (reservation.status == Link::Status::kUnreachable) {
      fprintf(stderr, "fabric_spike: the peer is gone\n");
      _exit(1);
    }
    return reservation.bytes;
  }

  bool SendAck() {
    std::byte* const packet = Room(16);  // BTH and AETH
    if (packet == nullptr) return false;
    const Header header = {1, 1, 0, 0};
    memcpy(packet, &header, sizeof header);
    memset(packet + sizeof header, 0, 16 - sizeof header);
    link_.Commit({}, 0);
    return true;
  }

  const Settings& settings_;
  Link& link_;
  std::vector<std::byte> source_, target_;
  uint32_t peer_ = 0;
  uint32_t owed_acks_ = 0;
  uint64_t received_ = 0;
  uint64_t acked_ = 0;
};

uint64_t Messages(const Settings& settings) {
  const uint64_t small = settings.latency ? 200'000 : 2'000'000;
  const uint64_t most_bytes = 1'300'000'000;
  return std::clamp<uint64_t>(most_bytes / std::max(settings.size, 1u), 100, small);
}

void Serve(const Settings& settings, Endpoint& endpoint) {
  const uint64_t messages = Messages(settings);
  for (uint64_t i = 1; i <= messages; ++i) {
    while (endpoint.received() < i) endpoint.Poll();
    if (!settings.latency) continue;
    endpoint.Send();
    endpoint.Flush();
  }
  // The last ACKs may be owed still.
  const int64_t end = NowNs() + 50'000'000;
  while (NowNs() < end) endpoint.Poll();
}

double MedianLatency(const Settings& settings, Endpoint& endpoint) {
  std::vector<double> one_way;
  for (uint64_t i = 1; i <= Messages(settings); ++i) {
    const int64_t start = NowNs();
    endpoint.Send();
    endpoint.Flush();
    while (endpoint.received() < i) endpoint.Poll();
    one_way.push_back(static_cast<double>(NowNs() - start) / 2e3);
  }
  std::nth_element(one_way.begin(), one_way.begin() + one_way.size() / 2, one_way.end());
  return one_way[one_way.size() / 2];
}

double Rate(const Settings& settings, Endpoint& endpoint) {
  const uint64_t messages = Messages(settings) / settings.ack_every * settings.ack_every;
  const uint64_t warm_up = messages / 10;
  int64_t start = 0;
  for (uint64_t i = 0; i < messages; ++i) {
    if (i == warm_up) start = NowNs();
    while (i - endpoint.acked() >= settings.window) endpoint.Poll();
    endpoint.Send();
    if (i % settings.flush_every == 0) endpoint.Flush();
    if (i % 16 == 0) endpoint.Poll();
  }
  while (endpoint.acked() < messages) endpoint.Poll();
  return static_cast<double>(messages - warm_up) / (static_cast<double>(NowNs() - start) / 1e3);
}

bool Exchange(int out, int in, uint32_t mine, uint32_t* theirs) {
  return write(out, &mine, sizeof mine) == sizeof mine &&
         read(in, theirs, sizeof *theirs) == sizeof *theirs;
}

int Main(const Settings& settings) {
  alarm(60);
  const std::string name = "spike-" + std::to_string(getpid());
  int there[2], back[2];
  if (pipe(there) != 0 || pipe(back) != 0) return 1;
  const pid_t child = fork();
  const bool server = child == 0;
  PinTo(server ? "CPU0" : "CPU1", server ? 0 : 1);

  std::unique_ptr<Fabric> fabric;
  std::string error;
  Fabric::Options options;
  options.name = name;
  if (Fabric::Join(options, &fabric, &error) != 0) {
    fprintf(stderr, "fabric_spike: %s\n", error.c_str());
    return 1;
  }
  Endpoint endpoint(settings, *fabric);
  uint32_t peer;
  if (!Exchange(server ? back[1] : there[1], server ? there[0] : back[0], fabric->AllocateNumber(),
                &peer)) {
    return 1;
  }
  endpoint.set_peer(peer);

  if (server) {
    Serve(settings, endpoint);
  } else if (settings.latency) {
    printf("latency us %.4f\n", MedianLatency(settings, endpoint));
  } else {
    printf("rate Mmsg/s %.4f\n", Rate(settings, endpoint));
  }
  fflush(stdout);
  fabric.reset();
  int status = 0;
  if (!server) waitpid(child, &status, 0);
  return status == 0 ? 0 : 1;
}

}  // namespace
}  // namespace simhca

int main(int argc, char** argv) {
  simhca::Settings settings;
  CLI::App app("Latency and message rate of the link between two processes");
  app.add_flag("--latency", settings.latency);
  app.add_flag("--rate", settings.rate);
  app.add_option("--size", settings.size, "bytes of a message");
  app.add_option("--window", settings.window, "messages without an ACK")->check(CLI::Range(1, 512));
  app.add_option("--ack-every", settings.ack_every, "messages")->check(CLI::Range(1, 512));
  app.add_option("--flush-every", settings.flush_every, "messages")->check(CLI::Range(1, 512));
  app.add_option("--pauses", settings.pauses, "after an empty poll");
  CLI11_PARSE(app, argc, argv);
  if (settings.latency == settings.rate || settings.window < settings.ack_every) {
    fprintf(stderr,
            "fabric_spike: give --latency or --rate, and a window of --ack-every or more\n");
    return 2;
  }
  return simhca::Main(settings);
}
