#include "verbs_shim/driver/process.h"

#include <pthread.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "verbs_shim/driver/log.h"

namespace simhca::driver {

namespace {

// How long the end of the process may be delayed for what is still queued.
constexpr Duration kDrainLimit = 100 * kMillisecond;

const char* Setting(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

void ReportError(const std::string& text) { WriteLogLine(LogLevel::kError, text); }

[[gnu::destructor]] void AtExit() { Process::Get().Finish(); }

}  // namespace

Process& Process::Get() {
  static Process* const process = new Process;
  return *process;
}

int Process::Configure() {
  std::lock_guard guard(mutex_);
  if (configured_) return configure_error_;
  configured_ = true;
  const std::string error = ReadSettings();
  if (!error.empty()) {
    ReportError(error);
    configure_error_ = EINVAL;
    return EINVAL;
  }
  pthread_atfork([] { Get().PrepareFork(); }, [] { Get().ParentAfterFork(); },
                 [] { Get().ChildAfterFork(); });
  return 0;
}

// Returns what is wrong with the settings; empty if nothing is.
std::string Process::ReadSettings() {
  if (const char* level = Setting("SIMHCA_LOG")) {
    const std::optional<LogLevel> parsed = ParseLogLevel(level);
    if (!parsed) return Format("SIMHCA_LOG={}: not one of {}", level, kLogLevelNames);
    log_level.store(*parsed, std::memory_order_relaxed);
  }
  if (const char* clock = Setting("SIMHCA_CLOCK")) {
    const std::optional<ClockMode> parsed = ParseClockMode(clock);
    if (!parsed) return Format("SIMHCA_CLOCK={}: not one of wall, virtual", clock);
    if (*parsed == ClockMode::kPaced) {
      return "SIMHCA_CLOCK=paced: not available yet; use wall or virtual";
    }
    options_.clock = *parsed;
  }
  if (const char* seed = Setting("SIMHCA_SEED")) {
    const std::string error = ParseSeed(seed, &options_.seed);
    if (!error.empty()) return Format("SIMHCA_SEED: {}", error);
  }
  if (const char* faults = Setting("SIMHCA_FAULTS")) {
    const std::string error = ParseFaultPlan(faults, &options_.faults);
    if (!error.empty()) return Format("SIMHCA_FAULTS: {}", error);
  }
  if (const char* fabric = Setting("SIMHCA_FABRIC")) options_.fabric = fabric;
  if (const char* timeline = Setting("SIMHCA_TIMELINE")) {
    if (options_.clock != ClockMode::kVirtual) {
      return "SIMHCA_TIMELINE: only the clock virtual has a model whose times could be shown";
    }
    options_.timeline = timeline;
  }
  const char* stats = Setting("SIMHCA_STATS");
  report_counters_ = stats != nullptr && std::strcmp(stats, "0") != 0;

  options_.warn = [](const std::string& text) { Log(LogLevel::kWarn, "{}", text); };
  options_.error = [](const std::string& text) { Log(LogLevel::kError, "{}", text); };

  const DevicePlan plan = PlanDevicesFromEnvironment();
  if (!plan.ok()) return plan.error;
  ListDevices(plan);
  return "";
}

void Process::ListDevices(const DevicePlan& plan) {
  for (const PlannedDevice& planned : plan.devices) options_.devices.push_back(planned.profile);
  for (size_t index = 0; index < plan.devices.size(); ++index) {
    auto* device = new ListedDevice;
    device->index = index;
    device->profile = &options_.devices[index];
    ibv_device& verbs = device->verbs;
    const char* name = plan.devices[index].name.c_str();
    verbs.node_type = IBV_NODE_CA;
    verbs.transport_type = IBV_TRANSPORT_IB;
    std::snprintf(verbs.name, sizeof(verbs.name), "%s", name);
    std::snprintf(verbs.dev_name, sizeof(verbs.dev_name), "uverbs%zu", kFirstUverbsNumber + index);
    std::snprintf(verbs.dev_path, sizeof(verbs.dev_path), "/sys/class/infiniband_verbs/%s",
                  verbs.dev_name);
    std::snprintf(verbs.ibdev_path, sizeof(verbs.ibdev_path), "/sys/class/infiniband/%s", name);
    Objects().Add(device, Kind::kDevice, nullptr, nullptr);
    devices_.push_back(device);
  }
}

int Process::Open(const ListedDevice& device, Device** opened) {
  std::lock_guard guard(mutex_);
  if (engine_ == nullptr) {
    std::string error;
    const int result = Engine::Start(options_, &engine_, &error);
    if (result != 0) {
      ReportError(Format("cannot open {}: {} ({})", device.verbs.name, error, ErrnoName(result)));
      return result;
    }
  }
  *opened = &engine_->device(device.index);
  return 0;
}

void Process::PrepareFork() {
  mutex_.lock();
  Objects().LockForFork();
}

void Process::ParentAfterFork() {
  Objects().UnlockAfterFork();
  mutex_.unlock();
}

void Process::ChildAfterFork() {
  Objects().BuryAllAfterFork();
  if (engine_ != nullptr) {
    engine_->Abandon();
    // Not destroyed: that would take leave of the fabric on the parent's behalf.
    abandoned_.push_back(engine_.release());
  }
  mutex_.unlock();
}

void Process::Finish() {
  std::unique_lock guard(mutex_, std::try_to_lock);
  if (!guard.owns_lock() || engine_ == nullptr) return;
  engine_->Quiesce(kDrainLimit);
  if (report_counters_) {
    const std::string report = engine_->CounterReport();
    std::fwrite(report.data(), 1, report.size(), stderr);
  }
}

}  // namespace simhca::driver
