#include "sim/device/engine.h"

#include <cerrno>

#include "sim/device/hca.h"
#include "sim/device/progress.h"
#include "sim/fabric/fabric.h"

namespace simhca {

namespace {

class EngineImpl final : public Engine, private ControlHandler {
 public:
  EngineImpl(const EngineOptions& options, std::unique_ptr<Fabric> fabric)
      : progress_(std::move(fabric), options.clock) {
    if (!options.timeline.empty()) timeline_error_ = progress_.trace.Open(options.timeline);
    uint16_t port = 0;
    for (const DeviceProfile& profile : options.devices) {
      devices_.push_back(std::make_unique<Hca>(profile, port++, progress_));
    }
    progress_.SetControlHandler(this);
    progress_.LogTo(options.warn, options.error);
    if (options.background_thread) progress_.StartThread();
  }

  ~EngineImpl() override { progress_.StopThread(); }

  int timeline_error() const { return timeline_error_; }

  size_t device_count() const override { return devices_.size(); }
  Device& device(size_t index) override { return *devices_[index]; }

  void Quiesce(Duration limit) override {
    progress_.StopThread();
    progress_.Drain(limit);
    progress_.ReportTrouble();
    const Progress::Hold hold(progress_);
    progress_.fabric.Leave();
    progress_.trace.Close();
  }

  void Abandon() override {
    progress_.trace.Abandon();
    progress_.Abandon();
  }

  std::string CounterReport() const override {
    std::string report;
    for (size_t i = 0; i < kCounterNames.size(); ++i) {
      report += std::string(kCounterNames[i]) + ' ' +
                std::to_string(progress_.counters.Get(static_cast<Counter>(i))) + '\n';
    }
    return report;
  }

 private:
  void OnControl() override {
    ControlRequest request;
    if (progress_.fabric.TakeControl(&request)) {
      progress_.fabric.AnswerControl(request.port < devices_.size()
                                         ? devices_[request.port]->Control(request)
                                         : ControlReply{.status = ENODEV, .text = {}});
    }
    // A port may have changed although nobody waits for an answer any more.
    for (const std::unique_ptr<Hca>& device : devices_) device->FollowPort();
  }

  int timeline_error_ = 0;
  Progress progress_;
  std::vector<std::unique_ptr<Hca>> devices_;
};

}  // namespace

int Engine::Start(const EngineOptions& options, std::unique_ptr<Engine>* engine,
                  std::string* error) {
  Fabric::Options join;
  join.name = options.fabric;
  join.exclusive = options.clock == ClockMode::kVirtual;
  join.faults = options.faults;
  join.seed = options.seed;
  for (const DeviceProfile& profile : options.devices) {
    join.wires.push_back(WireOf(profile.costs));
  }
  std::unique_ptr<Fabric> fabric;
  if (const int code = Fabric::Join(join, &fabric, error)) return code;
  auto made = std::make_unique<EngineImpl>(options, std::move(fabric));
  if (const int code = made->timeline_error()) {
    *error = "timeline '" + options.timeline + "' cannot be written";
    return code;
  }
  *engine = std::move(made);
  return 0;
}

}  // namespace simhca
