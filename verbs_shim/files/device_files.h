#ifndef SIMHCA_VERBS_SHIM_FILES_DEVICE_FILES_H_
#define SIMHCA_VERBS_SHIM_FILES_DEVICE_FILES_H_

#include <optional>
#include <string>
#include <string_view>

namespace simhca::files {

// Contents of the sysfs file at `path` if that belongs to a simulated device and can be told
// without opening it: node_guid, node_type and board_id under /sys/class/infiniband/DEVICE, ibdev
// under /sys/class/infiniband_verbs/uverbsN.  Texts end in a newline, as the kernel's do.
// nullopt: not a simulated device's file.
std::optional<std::string> ReadDeviceFile(std::string_view path);

}  // namespace simhca::files

#endif  // SIMHCA_VERBS_SHIM_FILES_DEVICE_FILES_H_
