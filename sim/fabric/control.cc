#include "sim/fabric/control.h"

namespace simhca {
namespace {

using enum ControlKind;
using enum ControlTarget;

constexpr ControlCommand kCommands[] = {
    {"list", kList, kDevice},
    {"port down", kPortDown, kDevice},
    {"port up", kPortUp, kDevice},
    {"fatal", kDeviceFatal, kDevice},
    {"lid-change", kLidChange, kDevice},
    {"gid-change", kGidChange, kDevice},
    {"pkey-change", kPkeyChange, kDevice},
    {"sm-change", kSmChange, kDevice},
    {"client-reregister", kClientReregister, kDevice},
    {"srq-error", kSrqError, kSrq},
    {"qp-fatal", kQpFatal, kQp},
    {"qp-path-migrated", kPathMigrated, kQp},
    {"qp-path-failed", kPathMigrationFailed, kQp},
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
