// What the peer processes of the fabric's tests do.  Usage: ROLE FABRIC [ARGUMENT...]
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <iostream>
#include <memory>
#include <string>

#include "sim/fabric/fabric.h"
#include "tests/unit/fabric/peer_process.h"
#include "tests/unit/fabric/recorder.h"

namespace simhca {
namespace {

std::unique_ptr<Fabric> JoinAndSay(const std::string& name) {
  Fabric::Options options;
  options.name = name;
  std::unique_ptr<Fabric> fabric;
  std::string error;
  const int result = Fabric::Join(options, &fabric, &error);
  if (result != 0) {
    std::cout << "error " << result << ' ' << error << std::endl;
    return nullptr;
  }
  std::cout << fabric->AllocateNumber() << std::endl;
  return fabric;
}

bool SendNumbered(Fabric& fabric, uint32_t destination, uint64_t number) {
  Link::Reservation room;
  do {
    room = fabric.link().Reserve(destination, LengthOfPacket(number));
  } while (room.status == Link::Status::kNoRoom);
  if (room.status != Link::Status::kReady) return false;
  FillPacket(number, room.bytes, LengthOfPacket(number));
  fabric.link().Commit({}, 0);
  return true;
}

// Lives until the end of input; "maintain" and "send NUMBER" lines on the way.
int Hold(Fabric& fabric) {
  std::string command;
  while (std::cin >> command) {
    if (command == "maintain") {
      fabric.Maintain();
    } else if (command == "send") {
      uint32_t destination;
      std::cin >> destination;
      const Link::Reservation room = fabric.link().Reserve(destination, LengthOfPacket(0));
      if (room.status == Link::Status::kReady) {
        FillPacket(0, room.bytes, LengthOfPacket(0));
        fabric.link().Commit({}, 0);
        fabric.link().Flush();
      }
      std::cout << static_cast<int>(room.status) << std::endl;
      continue;
    } else if (command == "close") {  // as daemons do
      syscall(SYS_close_range, 3, ~0u, 0);
    } else if (command == "state") {
      uint32_t number;
      std::cin >> number;
      std::cout << static_cast<int>(fabric.PeerOf(number).state) << std::endl;
      continue;
    } else if (command == "wait") {
      fabric.WantWake(true);
      std::cout << "waiting" << std::endl;
      do {
        fabric.Sleep(5 * kSecond);
      } while (fabric.wake_wanted());
      Recorder recorder;
      fabric.link().Poll(recorder, 10, 0);
      std::cout << recorder.packets.size() << std::endl;
      continue;
    }
    std::cout << "done" << std::endl;
  }
  return 0;
}

// Sends `count` numbered packets and is killed.
int SendAndDie(Fabric& fabric, uint32_t destination, uint64_t count) {
  for (uint64_t number = 0; number < count; ++number) {
    if (!SendNumbered(fabric, destination, number)) return 1;
  }
  fabric.link().Flush();
  raise(SIGKILL);
  return 1;
}

class Echo : public PacketHandler {
 public:
  Echo(Link& link, uint32_t destination) : link_(link), destination_(destination) {}
  void OnPacket(const PacketAddress& address, const std::byte* bytes, uint32_t length) override {
    ++count;
    const Link::Reservation room = link_.Reserve(destination_, length);
    if (room.status != Link::Status::kReady) _exit(3);
    memcpy(room.bytes, bytes, length);
    PacketAddress back = address;
    std::swap(back.source_port, back.destination_port);
    link_.Commit(back, 0);
  }
  uint64_t count = 0;

 private:
  Link& link_;
  const uint32_t destination_;
};

int RunEcho(Fabric& fabric, uint32_t destination, uint64_t count) {
  Echo echo(fabric.link(), destination);
  while (echo.count < count) {
    fabric.link().Poll(echo, 8, 0);
    fabric.link().Flush();
  }
  return 0;
}

// Answers each of `count` packets, sleeping whenever there is none.
int RunSleepyEcho(Fabric& fabric, uint32_t destination, uint64_t count) {
  Echo echo(fabric.link(), destination);
  while (echo.count < count) {
    fabric.WantWake(true);
    if (fabric.link().Poll(echo, 8, 0) == 0) fabric.Sleep(5 * kSecond);
    fabric.link().Flush();
  }
  return 0;
}

int SayNumbers(Fabric& fabric, int count) {
  for (int i = 0; i < count; ++i) std::cout << fabric.AllocateNumber() << '\n';
  std::cout << std::flush;
  return Hold(fabric);
}

}  // namespace

int RunPeer(const std::vector<std::string>& arguments) {
  const std::string& role = arguments.at(0);
  const std::unique_ptr<Fabric> fabric = JoinAndSay(arguments.at(1));
  if (fabric == nullptr) return 2;
  const auto argument = [&](size_t i) {
    return static_cast<uint32_t>(std::stoul(arguments.at(i)));
  };
  if (role == "hold") return Hold(*fabric);
  if (role == "send-and-die") return SendAndDie(*fabric, argument(2), argument(3));
  if (role == "echo") return RunEcho(*fabric, argument(2), argument(3));
  if (role == "sleepy-echo") return RunSleepyEcho(*fabric, argument(2), argument(3));
  if (role == "numbers") return SayNumbers(*fabric, static_cast<int>(argument(2)));
  return 4;
}

}  // namespace simhca
