#include "sim/fabric/control_client.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <mutex>

#include "sim/fabric/registry.h"

namespace simhca {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;
constexpr int64_t kWaitForOthersNs = 10'000 * kNsPerMs;
// For an answer to what a process has begun.
constexpr int64_t kGraceForBegunNs = 500 * kNsPerMs;

void SleepBriefly() {
  const timespec moment = {0, 200'000};
  nanosleep(&moment, nullptr);
}

}  // namespace

int ControlClient::Open(const std::string& directory, const std::string& name,
                        std::unique_ptr<ControlClient>* client, std::string* error) {
  const std::string path = FabricPath(directory, name);
  const std::string lock_path = FabricLockPath(directory, name);
  std::unique_ptr<ControlClient> opening(new ControlClient);
  std::unique_lock guard(FabricMutex());
  FileStatus status;
  if (!IsFabricName(name) || RawStatus(path, &status) != 0 || RawStatus(lock_path, &status) != 0) {
    *error = "there is no fabric '" + name + "'";
    return ENOENT;
  }
  int result = LockFile::Open(lock_path, &opening->lock_, error);
  if (result != 0) return result;
  const int64_t end = MonotonicNanoseconds() + kWaitForOthersNs;
  while (!opening->lock_->TryLockControl()) {
    if (MonotonicNanoseconds() > end) {
      *error = "another ctl is at work on fabric '" + name + "'";
      return EBUSY;
    }
    guard.unlock();
    SleepBriefly();
    guard.lock();
  }
  opening->locked_ = true;
  result = opening->Map(path, error);
  if (result == 0) *client = std::move(opening);
  return result;
}

int ControlClient::Map(const std::string& path, std::string* error) {
  const int descriptor = RawOpen(path, O_RDWR, 0);
  if (descriptor < 0) {
    *error = "cannot open " + path + ": " + strerror(-descriptor);
    return -descriptor;
  }
  int result = CheckFabricFile(path, descriptor, error);
  if (result == 0) {
    void* memory =
        mmap(nullptr, sizeof(FabricLayout), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED) {
      result = errno;
      *error = "cannot map " + path + ": " + strerror(result);
    } else {
      layout_ = static_cast<FabricLayout*>(memory);
    }
  }
  RawClose(descriptor);
  return result;
}

ControlClient::~ControlClient() {
  std::lock_guard guard(FabricMutex());
  if (locked_) lock_->UnlockControl();
  lock_.reset();
  if (layout_ != nullptr) munmap(layout_, sizeof *layout_);
}

std::vector<ControlClient::Process> ControlClient::Processes() {
  std::lock_guard guard(FabricMutex());
  std::vector<Process> processes;
  for (uint32_t slot = 0; slot < kMaxProcesses; ++slot) {
    const ProcessSlot& found = layout_->slots[slot];
    if (found.in_use.load() == 0 || !lock_->Lives(slot)) continue;
    processes.push_back({slot, found.generation.load(), found.pid,
                         std::string(found.name, strnlen(found.name, sizeof found.name))});
  }
  return processes;
}

bool ControlClient::SetPort(uint16_t port, bool down) {
  std::atomic<uint64_t>& word = layout_->header.ports_down[port / 64];
  const uint64_t bit = uint64_t{1} << (port % 64);
  const uint64_t before = down ? word.fetch_or(bit) : word.fetch_and(~bit);
  return ((before & bit) != 0) != down;
}

bool ControlClient::Lives(const Process& process) {
  const ProcessSlot& slot = layout_->slots[process.slot];
  if (slot.in_use.load() == 0 || slot.generation.load() != process.generation) return false;
  std::lock_guard guard(FabricMutex());
  return lock_->Lives(process.slot);
}

int ControlClient::Ask(const Process& process, const ControlRequest& request, int milliseconds,
                       ControlReply* reply) {
  if (!Lives(process)) return ESRCH;
  ProcessSlot& slot = layout_->slots[process.slot];
  ControlMailbox& mailbox = slot.control;
  const uint32_t sequence = SequenceOf(mailbox.state.load()) + 1;
  mailbox.kind.store(static_cast<uint32_t>(request.kind), std::memory_order_relaxed);
  mailbox.port.store(request.port, std::memory_order_relaxed);
  mailbox.number.store(request.number, std::memory_order_relaxed);
  mailbox.state.store(MakeControlState(sequence, ControlStage::kPosted));
  slot.control_bell.fetch_add(1);
  // Whether or not it sleeps: a sleeper that looked before the bell rang finds its word changed.
  WakeProcess(slot);

  const uint32_t answered = MakeControlState(sequence, ControlStage::kAnswered);
  int64_t end = MonotonicNanoseconds() + milliseconds * kNsPerMs;
  bool begun = false;
  while (mailbox.state.load(std::memory_order_acquire) != answered) {
    if (!Lives(process)) return ESRCH;
    if (MonotonicNanoseconds() < end) {
      SleepBriefly();
      continue;
    }
    if (begun) return EINPROGRESS;
    uint32_t posted = MakeControlState(sequence, ControlStage::kPosted);
    if (mailbox.state.compare_exchange_strong(posted,
                                              MakeControlState(sequence, ControlStage::kEmpty))) {
      return ETIMEDOUT;
    }
    begun = true;
    end += kGraceForBegunNs;
  }
  *reply = ReadReply(mailbox);
  return 0;
}

ControlReply ControlClient::ReadReply(const ControlMailbox& mailbox) {
  ControlReply reply;
  reply.status = static_cast<int>(mailbox.status.load(std::memory_order_relaxed));
  reply.count = mailbox.count.load(std::memory_order_relaxed);
  const size_t bytes = mailbox.text_bytes.load(std::memory_order_relaxed);
  reply.text.assign(mailbox.text, std::min(bytes, kControlTextBytes));
  // It goes to a terminal.
  std::replace_if(
      reply.text.begin(), reply.text.end(), [](char c) { return c != '\n' && (c < 32 || c > 126); },
      '?');
  return reply;
}

}  // namespace simhca
