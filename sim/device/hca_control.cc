// What control clients (sim/fabric/control.h) can do to a device.

#include <cerrno>
#include <cstdio>
#include <optional>
#include <string>

#include "sim/device/hca.h"

namespace simhca {

namespace {

using mlx5::EventType;
using mlx5::PortChange;

std::optional<PortChange> PortChangeOf(ControlKind kind) {
  switch (kind) {
    case ControlKind::kLidChange:
      return PortChange::kLid;
    case ControlKind::kGidChange:
      return PortChange::kGuid;
    case ControlKind::kPkeyChange:
      return PortChange::kPkey;
    case ControlKind::kSmChange:
      return PortChange::kSubnetManager;
    case ControlKind::kClientReregister:
      return PortChange::kReregister;
    default:
      return std::nullopt;
  }
}

const char* NameOf(QpState state) {
  constexpr const char* kNames[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  return kNames[static_cast<size_t>(state)];
}

template <typename... Values>
std::string Line(const char* format, Values... values) {
  char line[128];
  std::snprintf(line, sizeof(line), format, values...);
  return line;
}

std::string DescribeQp(const QueuePair& qp) {
  std::string line = Line("QP  0x%06x  %-5s", qp.qpn(), NameOf(qp.state()));
  if (qp.attributes().dest_qpn != 0) line += Line("  peer 0x%06x", qp.attributes().dest_qpn);
  if (qp.config().srq != nullptr) line += Line("  SRQ 0x%06x", qp.config().srq->number());
  return line + '\n';
}

std::string DescribeSrq(const SharedReceiveQueue& srq) {
  if (srq.failed()) return Line("SRQ 0x%06x  failed\n", srq.number());
  return Line("SRQ 0x%06x  limit %u  fill %u\n", srq.number(), srq.limit(), srq.fill());
}

// Puts those lines into a reply that lie behind the ones read before and have room.
class Page {
 public:
  explicit Page(uint32_t skip) : skip_(skip) {}

  void Add(const std::string& line) {
    if (seen_++ < skip_ || full_) return;
    full_ = reply_.text.size() + line.size() > kControlTextBytes;
    if (full_) return;
    reply_.text += line;
    ++reply_.count;
  }
  ControlReply reply() const { return reply_; }

 private:
  const uint32_t skip_;
  uint32_t seen_ = 0;
  bool full_ = false;
  ControlReply reply_;
};

// Does `act(object)` to each object of the table that the number names; 0 or an errno from each.
template <typename Table, typename Act>
ControlReply ActOn(Table& table, uint32_t wanted, Act act) {
  ControlReply reply{.status = ENOENT, .text = {}};
  table.ForEach([&](uint32_t number, auto& object) {
    if (wanted != ControlRequest::kAll && wanted != number) return;
    const int error = act(object);
    if (error == 0) ++reply.count;
    if (reply.status != 0) reply.status = error;
  });
  return reply;
}

}  // namespace

ControlReply Hca::Control(const ControlRequest& request) {
  Settle();
  const ControlReply reply = Act(request);
  Settle();  // whoever asked finds the event there
  return reply;
}

ControlReply Hca::Act(const ControlRequest& request) {
  if (request.kind == ControlKind::kList) return List(request.number);
  ControlReply reply;
  if (failed_) {
    reply.status = EIO;
    return reply;
  }
  switch (request.kind) {
    case ControlKind::kPortDown:
    case ControlKind::kPortUp:
      reply.count = FollowPort();
      return reply;
    case ControlKind::kDeviceFatal:
      reply.count = Fail();
      return reply;
    case ControlKind::kSrqError:
      return ActOn(srqs_, request.number, [this](Srq& srq) { return FailSrq(srq); });
    case ControlKind::kQpFatal:
    case ControlKind::kPathMigrated:
    case ControlKind::kPathMigrationFailed:
      return ControlQps(request);
    default:
      break;
  }
  if (const std::optional<PortChange> change = PortChangeOf(request.kind)) {
    reply.count = TellContexts([change](EventRing& events) { events.PushPortChange(*change); });
  } else {
    reply.status = EINVAL;
  }
  return reply;
}

template <typename Push>
uint32_t Hca::TellContexts(Push push) {
  uint32_t told = 0;
  contexts_.ForEach([&](uint32_t, Context& context) {
    push(context.events);
    ++progress_.visible;
    progress_.counters.Add(Counter::kAsyncEvents);
    ++told;
  });
  return told;
}

uint32_t Hca::FollowPort() {
  const bool down = progress_.fabric.port_down(port_index_);
  if (progress_.ports_down[port_index_] == down) return 0;
  progress_.ports_down[port_index_] = down;
  if (failed_) return 0;
  return TellContexts([down](EventRing& events) {
    events.PushPortChange(down ? PortChange::kDown : PortChange::kActive);
  });
}

uint32_t Hca::Fail() {
  failed_ = true;
  progress_.ServeDoorbells();
  qps_.ForEach([](uint32_t, QueuePair& qp) { qp.Halt(); });
  return TellContexts([](EventRing& events) { events.PushInternalError(); });
}

int Hca::FailQp(QueuePair& qp) {
  if (qp.state() == QpState::kErr) return EALREADY;
  qp.RaiseEvent(EventType::kWorkQueueCatastrophic);
  qp.EnterError();
  return 0;
}

int Hca::FailSrq(Srq& srq) {
  if (srq.object.failed()) return EALREADY;
  ++progress_.visible;
  progress_.counters.Add(Counter::kAsyncEvents);
  srq.object.Fail();
  qps_.ForEach([&srq](uint32_t, QueuePair& qp) {
    if (qp.config().srq == &srq.object && qp.state() != QpState::kReset) qp.EnterError();
  });
  return 0;
}

ControlReply Hca::ControlQps(const ControlRequest& request) {
  return ActOn(qps_, request.number, [this, kind = request.kind](QueuePair& qp) {
    if (kind == ControlKind::kQpFatal) return FailQp(qp);
    qp.RaiseEvent(kind == ControlKind::kPathMigrated ? EventType::kPathMigrated
                                                     : EventType::kPathMigrationFailed);
    return 0;
  });
}

ControlReply Hca::List(uint32_t skip) {
  Page page(skip);
  const char* state = failed_                             ? "failed"
                      : progress_.ports_down[port_index_] ? "port down"
                                                          : "port up";
  page.Add(Line("%s, %zu context(s)\n", state, contexts_.size()));
  qps_.ForEach([&page](uint32_t, const QueuePair& qp) { page.Add(DescribeQp(qp)); });
  srqs_.ForEach([&page](uint32_t, const Srq& srq) { page.Add(DescribeSrq(srq.object)); });
  return page.reply();
}

int Hca::QueryPort(bool* up) {
  const Progress::Hold hold(progress_);
  if (failed_) return EIO;
  *up = !progress_.ports_down[port_index_];
  return 0;
}

}  // namespace simhca
