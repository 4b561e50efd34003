#ifndef SIMHCA_SIM_FABRIC_CONTROL_H_
#define SIMHCA_SIM_FABRIC_CONTROL_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace simhca {

// What `./simhca ctl` asks of the processes of a fabric.  A new command is one kind here, one row
// of ControlCommands, what a device does about it in sim/device/hca_control.cc, and a line in the
// launcher's help.
enum class ControlKind : uint32_t {
  kList,
  kPortDown,
  kPortUp,
  kLidChange,
  kGidChange,
  kPkeyChange,
  kSmChange,
  kClientReregister,
  kDeviceFatal,
  kSrqError,
  kQpFatal,
  kPathMigrated,
  kPathMigrationFailed,
  kCount,
};

// What the command's number names, if it takes one.
enum class ControlTarget : uint8_t { kDevice, kQp, kSrq };

struct ControlCommand {
  std::string_view words;  // as the user writes it, without a number
  ControlKind kind;
  ControlTarget target;
};

std::span<const ControlCommand> ControlCommands();
// Null if there is none of these words.
const ControlCommand* FindControlCommand(std::string_view words);

struct ControlRequest {
  static constexpr uint32_t kAll = UINT32_MAX;

  ControlKind kind = ControlKind::kList;
  uint16_t port = 0;  // of the fabric: index of the device
  // Of a QP or SRQ, or kAll.  For kList: how many lines of the list have been read before.
  uint32_t number = kAll;
};

// Bytes of text in one reply; a longer list takes several requests.
inline constexpr size_t kControlTextBytes = 960;

struct ControlReply {
  // 0, or a positive errno: ENODEV the process has no such device, ENOENT the device has no object
  // of that number, EALREADY the object has failed before, EIO the device has, EINVAL.
  int status = 0;
  // Contexts, QPs or SRQs concerned; lines of a list.
  uint32_t count = 0;
  std::string text;  // a list; at most kControlTextBytes
};

}  // namespace simhca

#endif  // SIMHCA_SIM_FABRIC_CONTROL_H_
