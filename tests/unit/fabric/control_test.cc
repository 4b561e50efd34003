// Requests to the processes of a fabric: the mailbox between them and a control client.

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

#include "sim/fabric/control_client.h"
#include "sim/fabric/registry.h"
#include "tests/unit/fabric/fabric_fixture.h"

namespace simhca {
namespace {

constexpr int kPatience = 10'000;  // milliseconds

class ControlTest : public FabricFixture {
 protected:
  int Open(std::unique_ptr<ControlClient>* client) {
    return ControlClient::Open("/dev/shm", name, client, &error);
  }
  std::unique_ptr<ControlClient> MustOpen() {
    std::unique_ptr<ControlClient> client;
    EXPECT_EQ(Open(&client), 0) << error;
    return client;
  }
  // The fabric's memory, to be written as a stranger would.
  FabricLayout* Layout() {
    const int file = open(FabricPath("/dev/shm", name).c_str(), O_RDWR);
    void* memory = mmap(nullptr, sizeof(FabricLayout), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return memory == MAP_FAILED ? nullptr : static_cast<FabricLayout*>(memory);
  }
  // Asks the only process, and answers with what `serve` does until the reply is there.
  int AskAndServe(ControlClient& client, const ControlRequest& request, ControlReply* reply,
                  const std::function<void()>& serve, int milliseconds = kPatience) {
    const std::vector<ControlClient::Process> processes = client.Processes();
    EXPECT_EQ(processes.size(), 1u);
    std::atomic<bool> done{false};
    int result = -1;
    std::thread asker([&] {
      result = client.Ask(processes.at(0), request, milliseconds, reply);
      done = true;
    });
    while (!done) serve();
    asker.join();
    return result;
  }
};

TEST_F(ControlTest, ARequestComesToTheProcessAndItsReplyBack) {
  auto fabric = MustJoin();
  auto client = MustOpen();
  const uint32_t bell = fabric->control_bell().load();
  ControlRequest got;
  ControlReply reply;
  const auto serve = [&] {
    if (!fabric->TakeControl(&got)) return;
    EXPECT_FALSE(fabric->TakeControl(&got)) << "it is taken once";
    fabric->AnswerControl({.status = ENOENT, .count = 3, .text = "three\nlines\nof text\n"});
  };
  EXPECT_EQ(AskAndServe(*client, {ControlKind::kQpFatal, 7, 0x1234}, &reply, serve), 0);
  EXPECT_EQ(got.kind, ControlKind::kQpFatal);
  EXPECT_EQ(got.port, 7);
  EXPECT_EQ(got.number, 0x1234u);
  EXPECT_EQ(reply.status, ENOENT);
  EXPECT_EQ(reply.count, 3u);
  EXPECT_EQ(reply.text, "three\nlines\nof text\n");
  EXPECT_EQ(fabric->control_bell().load(), bell + 1);
}

TEST_F(ControlTest, ASleepingProcessIsWoken) {
  auto fabric = MustJoin();
  auto client = MustOpen();
  fabric->WantWake(true);
  std::thread asker([&] {
    ControlReply reply;
    EXPECT_EQ(client->Ask(client->Processes().at(0), {}, kPatience, &reply), 0);
  });
  fabric->Sleep(kNever);  // for ever, if nobody wakes it
  ControlRequest request;
  ASSERT_TRUE(fabric->TakeControl(&request)) << "the bell rings before the wake-up";
  fabric->AnswerControl({});
  asker.join();
}

TEST_F(ControlTest, ARequestThatNobodyTakesIsTakenBack) {
  auto fabric = MustJoin();
  auto client = MustOpen();
  ControlReply reply;
  EXPECT_EQ(client->Ask(client->Processes().at(0), {}, 20, &reply), ETIMEDOUT);
  ControlRequest request;
  EXPECT_FALSE(fabric->TakeControl(&request));
}

TEST_F(ControlTest, ALateReplyIsNotTakenForTheNextOne) {
  auto fabric = MustJoin();
  auto client = MustOpen();
  ControlRequest request;
  ControlReply reply;
  EXPECT_EQ(AskAndServe(
                *client, {}, &reply, [&] { fabric->TakeControl(&request); }, 20),
            EINPROGRESS);
  int late = 1;
  const auto serve = [&] {
    if (late == 1) {
      fabric->AnswerControl({.status = 0, .count = 111, .text = "late"});
      late = 0;
    }
    if (fabric->TakeControl(&request)) fabric->AnswerControl({.count = 222, .text = "own"});
  };
  EXPECT_EQ(AskAndServe(*client, {}, &reply, serve), 0);
  EXPECT_EQ(reply.count, 222u);
  EXPECT_EQ(reply.text, "own");
}

TEST_F(ControlTest, GarbageInTheMailboxIsRefusedByTheProcess) {
  auto fabric = MustJoin();
  FabricLayout* const layout = Layout();
  ASSERT_NE(layout, nullptr);
  ControlMailbox& mailbox = layout->slots[0].control;
  ASSERT_EQ(layout->slots[0].pid, static_cast<uint32_t>(getpid()));
  ControlRequest request;
  uint32_t sequence = 0;
  const std::pair<uint32_t, uint32_t> cases[] = {{static_cast<uint32_t>(ControlKind::kCount), 0},
                                                 {UINT32_MAX, 0},
                                                 {0, kMaxFabricPorts},
                                                 {0, 0x10000},
                                                 {0, UINT32_MAX}};
  for (const auto& [kind, port] : cases) {
    mailbox.kind = kind;
    mailbox.port = port;
    mailbox.state = MakeControlState(++sequence, ControlStage::kPosted);
    EXPECT_FALSE(fabric->TakeControl(&request)) << kind << ' ' << port;
    EXPECT_EQ(mailbox.state, MakeControlState(sequence, ControlStage::kAnswered));
    EXPECT_EQ(mailbox.status, static_cast<uint32_t>(EINVAL));
  }
  mailbox.kind = 0;
  mailbox.port = 0;
  for (const ControlStage stage :
       {ControlStage::kEmpty, ControlStage::kTaken, ControlStage::kAnswered}) {
    mailbox.state = MakeControlState(0x3fffffff, stage);
    EXPECT_FALSE(fabric->TakeControl(&request));
  }
  munmap(layout, sizeof *layout);
}

TEST_F(ControlTest, GarbageInAReplyIsBoundedByTheClient) {
  auto fabric = MustJoin();
  auto client = MustOpen();
  FabricLayout* const layout = Layout();
  ASSERT_NE(layout, nullptr);
  ControlMailbox& mailbox = layout->slots[0].control;
  ControlReply reply;
  const auto serve = [&] {
    const uint32_t state = mailbox.state;
    if (StageOf(state) != ControlStage::kPosted) return;
    mailbox.text_bytes = UINT32_MAX;
    memset(mailbox.text, '\x1b', sizeof mailbox.text);
    mailbox.state = MakeControlState(SequenceOf(state), ControlStage::kAnswered);
  };
  EXPECT_EQ(AskAndServe(*client, {}, &reply, serve), 0);
  EXPECT_EQ(reply.text, std::string(kControlTextBytes, '?'));
  munmap(layout, sizeof *layout);
}

TEST_F(ControlTest, TextsThatAreTooLongAreCut) {
  auto fabric = MustJoin();
  auto client = MustOpen();
  ControlReply reply;
  const auto serve = [&] {
    ControlRequest request;
    if (!fabric->TakeControl(&request)) return;
    fabric->AnswerControl({.text = std::string(10'000, 'x')});
  };
  EXPECT_EQ(AskAndServe(*client, {}, &reply, serve), 0);
  EXPECT_EQ(reply.text, std::string(kControlTextBytes, 'x'));
}

TEST_F(ControlTest, AProcessThatDiesMeanwhileIsGone) {
  PeerProcess peer({"hold", name});
  ASSERT_NE(ReadNumber(peer), 0u);
  auto client = MustOpen();
  const std::vector<ControlClient::Process> processes = client->Processes();
  ASSERT_EQ(processes.size(), 1u);
  EXPECT_EQ(processes[0].pid, static_cast<uint32_t>(peer.pid()));
  std::thread killer([&] { peer.Kill(); });
  ControlReply reply;
  EXPECT_EQ(client->Ask(processes[0], {}, kPatience, &reply), ESRCH);
  killer.join();
  EXPECT_TRUE(client->Processes().empty());
}

TEST_F(ControlTest, WhoHasLeftTakesNoRequestsOfItsSlotsNextOwner) {
  auto first = MustJoin();
  first->Leave();
  auto second = MustJoin();
  FabricLayout* const layout = Layout();
  ASSERT_NE(layout, nullptr);
  for (ProcessSlot& slot : layout->slots) {
    slot.control.state = MakeControlState(1, ControlStage::kPosted);
  }
  ControlRequest request;
  EXPECT_FALSE(first->TakeControl(&request));
  EXPECT_TRUE(second->TakeControl(&request));
  munmap(layout, sizeof *layout);
}

TEST_F(ControlTest, PortStatesAreTheFabrics) {
  auto first = MustJoin();
  auto client = MustOpen();
  EXPECT_FALSE(client->SetPort(5, false)) << "it is up";
  EXPECT_TRUE(client->SetPort(5, true));
  EXPECT_FALSE(client->SetPort(5, true));
  EXPECT_TRUE(client->SetPort(kMaxFabricPorts - 1, true));
  auto late = MustJoin();
  for (Fabric* fabric : {first.get(), late.get()}) {
    EXPECT_TRUE(fabric->port_down(5));
    EXPECT_FALSE(fabric->port_down(4));
    EXPECT_TRUE(fabric->port_down(kMaxFabricPorts - 1));
  }
  EXPECT_TRUE(Info().ports_down.test(5));
  EXPECT_TRUE(client->SetPort(5, false));
  EXPECT_FALSE(late->port_down(5));
}

TEST_F(ControlTest, VirtualFabricsAreAskedInTheSameWay) {
  std::unique_ptr<Fabric> fabric;
  ASSERT_EQ(Join(&fabric, true), 0);
  auto client = MustOpen();
  ControlReply reply;
  const auto serve = [&] {
    ControlRequest request;
    if (fabric->TakeControl(&request)) fabric->AnswerControl({.count = 1, .text = {}});
  };
  EXPECT_EQ(AskAndServe(*client, {}, &reply, serve), 0);
  EXPECT_EQ(reply.count, 1u);
}

TEST_F(ControlTest, OneClientAtATime) {
  auto fabric = MustJoin();
  int ready[2], leave[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(leave), 0);
  const pid_t child = fork();
  if (child == 0) {
    std::unique_ptr<ControlClient> client;
    char byte = Open(&client) == 0 ? 'y' : 'n';
    if (write(ready[1], &byte, 1) != 1 || read(leave[0], &byte, 1) != 1) _exit(1);
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y');
  std::shared_ptr<LockFile> lock;
  {
    std::lock_guard guard(FabricMutex());
    ASSERT_EQ(LockFile::Open(FabricLockPath("/dev/shm", name), &lock, &error), 0);
    EXPECT_FALSE(lock->TryLockControl());
    lock.reset();
  }
  ASSERT_EQ(write(leave[1], &byte, 1), 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_NE(MustOpen(), nullptr) << "the lock of a client that has gone is free";
  for (const int end : {ready[0], ready[1], leave[0], leave[1]}) close(end);
}

TEST_F(ControlTest, OnlyPrivateFabricsOfThisVersionAreOpened) {
  std::unique_ptr<ControlClient> client;
  EXPECT_EQ(Open(&client), ENOENT);
  EXPECT_NE(error.find(name), std::string::npos) << error;
  EXPECT_EQ(ControlClient::Open("/dev/shm", "../x", &client, &error), ENOENT);
  auto fabric = MustJoin();
  const std::string path = FabricPath("/dev/shm", name);
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  EXPECT_EQ(Open(&client), EPERM);
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  FabricLayout* const layout = Layout();
  ASSERT_NE(layout, nullptr);
  ++layout->header.layout;
  EXPECT_EQ(Open(&client), EPROTO);
  --layout->header.layout;
  EXPECT_EQ(Open(&client), 0);
  munmap(layout, sizeof *layout);
}

}  // namespace
}  // namespace simhca
