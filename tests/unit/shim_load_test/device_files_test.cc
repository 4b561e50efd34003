#include "verbs_shim/files/device_files.h"

#include <endian.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "verbs_shim/driver/driver.h"

namespace simhca {

// The driver's part: one device.
namespace driver {
namespace {

ibv_device* TheDevice() {
  static ibv_device device = [] {
    ibv_device one{};
    std::strcpy(one.name, "simhca0");
    std::strcpy(one.dev_name, "uverbs100");
    std::strcpy(one.dev_path, "/sys/class/infiniband_verbs/uverbs100");
    std::strcpy(one.ibdev_path, "/sys/class/infiniband/simhca0");
    return one;
  }();
  return &device;
}

}  // namespace

int GetDevices(std::vector<ibv_device*>* devices) {
  devices->push_back(TheDevice());
  return 0;
}

__be64 GetDeviceGuid(ibv_device*) { return htobe64(0x0253'49ff'fe00'0a0bu); }
std::string GetBoardId(ibv_device*) { return "BOARD_7"; }

}  // namespace driver

namespace files {
namespace {

TEST(DeviceFiles, AttributesOfASimulatedDeviceAreTexts) {
  EXPECT_EQ(ReadDeviceFile("/sys/class/infiniband/simhca0/node_guid"), "0253:49ff:fe00:0a0b\n");
  EXPECT_EQ(ReadDeviceFile("/sys/class/infiniband/simhca0/node_type"), "1: CA\n");
  EXPECT_EQ(ReadDeviceFile("/sys/class/infiniband/simhca0/board_id"), "BOARD_7\n");
  EXPECT_EQ(ReadDeviceFile("/sys/class/infiniband_verbs/uverbs100/ibdev"), "simhca0\n");
}

TEST(DeviceFiles, OtherFilesAreNotAnswered) {
  for (const char* path :
       {"/sys/class/infiniband/simhca0", "/sys/class/infiniband/simhca0/",
        "/sys/class/infiniband/simhca0/no_such_file", "/sys/class/infiniband/simhca01/node_guid",
        "/sys/class/infiniband/mlx5_0/node_guid", "/etc/hostname", ""}) {
    EXPECT_EQ(ReadDeviceFile(path), std::nullopt) << path;
  }
}

}  // namespace
}  // namespace files
}  // namespace simhca
