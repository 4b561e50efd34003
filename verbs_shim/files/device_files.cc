#include "verbs_shim/files/device_files.h"

#include <endian.h>

#include <cstdio>
#include <vector>

#include "verbs_shim/driver/driver.h"

namespace simhca::files {
namespace {

// "0123:4567:89ab:cdef", as the kernel prints GUIDs.
std::string GuidText(__be64 guid) {
  const uint64_t value = be64toh(guid);
  char text[20];
  std::snprintf(text, sizeof(text), "%04x:%04x:%04x:%04x",
                static_cast<unsigned>(value >> 48 & 0xffff),
                static_cast<unsigned>(value >> 32 & 0xffff),
                static_cast<unsigned>(value >> 16 & 0xffff), static_cast<unsigned>(value & 0xffff));
  return text;
}

// The part of `path` below `directory`, or an empty text.
std::string_view Below(std::string_view path, std::string_view directory) {
  if (!path.starts_with(directory)) return {};
  path.remove_prefix(directory.size());
  return path.starts_with('/') ? path.substr(1) : std::string_view();
}

std::optional<std::string> DeviceText(ibv_device* device, std::string_view path) {
  const std::string_view attribute = Below(path, device->ibdev_path);
  if (attribute == "node_guid") return GuidText(driver::GetDeviceGuid(device)) + "\n";
  if (attribute == "node_type") return "1: CA\n";
  if (attribute == "board_id") return driver::GetBoardId(device) + "\n";
  if (Below(path, device->dev_path) == "ibdev") return std::string(device->name) + "\n";
  return std::nullopt;
}

}  // namespace

std::optional<std::string> ReadDeviceFile(std::string_view path) {
  std::vector<ibv_device*> devices;
  if (driver::GetDevices(&devices) != 0) return std::nullopt;
  for (ibv_device* device : devices) {
    if (std::optional<std::string> text = DeviceText(device, path)) return text;
  }
  return std::nullopt;
}

}  // namespace simhca::files
