#include "sim/fabric/control.h"

namespace simhca {
namespace {

using enum ControlKind;
using enum ControlTarget;

constexpr ControlCommand kCommands[] = {
    {"list", kList, kDevice, "lists the queue pairs and SRQs with their numbers"},
    {"port down", kPortDown, kDevice, "IBV_EVENT_PORT_ERR; the port drops every packet"},
    {"port up", kPortUp, kDevice, "IBV_EVENT_PORT_ACTIVE; packets go again"},
    {"fatal", kDeviceFatal, kDevice, "IBV_EVENT_DEVICE_FATAL; the device does nothing any more"},
    {"lid-change", kLidChange, kDevice, "IBV_EVENT_LID_CHANGE, nothing else"},
    {"gid-change", kGidChange, kDevice, "IBV_EVENT_GID_CHANGE, nothing else"},
    {"pkey-change", kPkeyChange, kDevice, "IBV_EVENT_PKEY_CHANGE, nothing else"},
    {"sm-change", kSmChange, kDevice, "IBV_EVENT_SM_CHANGE, nothing else"},
    {"client-reregister", kClientReregister, kDevice, "IBV_EVENT_CLIENT_REREGISTER, nothing else"},
    {"srq-error", kSrqError, kSrq, "IBV_EVENT_SRQ_ERR; the SRQ and its queue pairs fail"},
    {"qp-fatal", kQpFatal, kQp, "IBV_EVENT_QP_FATAL; the queue pair goes to ERR"},
    {"qp-path-migrated", kPathMigrated, kQp, "IBV_EVENT_PATH_MIG, nothing else"},
    {"qp-path-failed", kPathMigrationFailed, kQp, "IBV_EVENT_PATH_MIG_ERR, nothing else"},
};
static_assert(std::size(kCommands) == static_cast<size_t>(kCount));

}  // namespace

std::span<const ControlCommand> ControlCommands() { return kCommands; }

const ControlCommand* FindControlCommand(std::string_view words) {
  for (const ControlCommand& command : kCommands) {
    if (command.words == words) return &command;
  }
  return nullptr;
}

}  // namespace simhca
