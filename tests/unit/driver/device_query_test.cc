#include "verbs_shim/driver/device_query.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "tests/unit/driver/fixture.h"
#include "verbs_shim/driver/process.h"

namespace simhca::driver {
namespace {

class DeviceQueryTest : public DriverTest {};

TEST_F(DeviceQueryTest, DevicesAreListedWithZeroedPrivateMemoryBehind) {
  std::vector<ibv_device*> devices;
  ASSERT_EQ(GetDevices(&devices), 0);
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_STREQ(devices[0]->name, "simhca0");
  EXPECT_STREQ(devices[1]->name, "simhca1");
  EXPECT_EQ(std::strncmp(devices[0]->dev_name, "uverbs", 6), 0);
  EXPECT_EQ(devices[0]->transport_type, IBV_TRANSPORT_IB);
  EXPECT_EQ(devices[0]->node_type, IBV_NODE_CA);
  const char* bytes = reinterpret_cast<const char*>(devices[0]);
  for (size_t i = sizeof(ibv_device); i < 712; ++i) EXPECT_EQ(bytes[i], 0) << i;
  std::vector<ibv_device*> again;
  ASSERT_EQ(GetDevices(&again), 0);
  EXPECT_EQ(devices, again);
}

TEST_F(DeviceQueryTest, AttributesComeFromTheProfile) {
  ibv_device_attr attr;
  ASSERT_EQ(QueryDevice(context_, &attr), 0);
  EXPECT_EQ(attr.max_srq_wr, static_cast<int>(device().profile().limits.max_srq_wr));
  EXPECT_NE(attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE, 0u);
  EXPECT_NE(attr.node_guid, 0u);
  EXPECT_NE(attr.vendor_id, 0u);
  ibv_device_attr_ex extended;
  ASSERT_EQ(QueryDeviceEx(context_, nullptr, &extended, sizeof(extended)), 0);
  EXPECT_EQ(extended.hca_core_clock, device().profile().limits.hca_core_clock_khz);
}

TEST_F(DeviceQueryTest, PortsOutOfRangeAreRefused) {
  ibv_port_attr attr;
  ASSERT_EQ(QueryPortEx(context_, 1, &attr, sizeof(attr)), 0);
  EXPECT_EQ(attr.state, IBV_PORT_ACTIVE);
  EXPECT_EQ(attr.link_layer, IBV_LINK_LAYER_ETHERNET);
  EXPECT_EQ(attr.lid, 0);
  EXPECT_EQ(attr.gid_tbl_len, static_cast<int>(device().profile().limits.gid_table_len));
  EXPECT_EQ(QueryPortEx(context_, 0, &attr, sizeof(attr)), EINVAL);
  EXPECT_EQ(QueryPortEx(context_, 2, &attr, sizeof(attr)), EINVAL);
}

TEST_F(DeviceQueryTest, APortThatWasTakenDownSaysSo) {
  constexpr uint8_t kPhysicallyUp = 5;
  constexpr uint8_t kPhysicallyDisabled = 3;
  ibv_port_attr attr;
  ASSERT_EQ(QueryPortEx(context_, 1, &attr, sizeof(attr)), 0);
  EXPECT_EQ(attr.phys_state, kPhysicallyUp);
  device().port_up = false;
  ASSERT_EQ(QueryPortEx(context_, 1, &attr, sizeof(attr)), 0);
  EXPECT_EQ(attr.state, IBV_PORT_DOWN);
  EXPECT_EQ(attr.phys_state, kPhysicallyDisabled);
  device().port_up = true;
}

TEST_F(DeviceQueryTest, AFailedDeviceAnswersNoQueries) {
  device().fatal = true;
  ibv_port_attr port;
  ibv_device_attr attr;
  ibv_device_attr_ex extended;
  EXPECT_EQ(QueryPortEx(context_, 1, &port, sizeof(port)), EIO);
  EXPECT_EQ(QueryDevice(context_, &attr), EIO);
  EXPECT_EQ(QueryDeviceEx(context_, nullptr, &extended, sizeof(extended)), EIO);
  device().fatal = false;
}

TEST_F(DeviceQueryTest, OldProgramsGetTheShortPortStructure) {
  ibv_port_attr attr;
  std::memset(&attr, 0x5a, sizeof(attr));
  ASSERT_EQ(QueryPort(context_, 1, reinterpret_cast<_compat_ibv_port_attr*>(&attr)), 0);
  EXPECT_EQ(attr.state, IBV_PORT_ACTIVE);
  EXPECT_EQ(attr.flags, 0);
  EXPECT_EQ(attr.port_cap_flags2, 0x5a5a);
}

TEST_F(DeviceQueryTest, GidsFillTheStartOfTheTable) {
  ibv_gid gid;
  ASSERT_EQ(QueryGid(context_, 1, 0, &gid), 0);
  EXPECT_EQ(gid.raw[0], 0xfe);
  ASSERT_EQ(QueryGid(context_, 1, 1, &gid), 0);
  EXPECT_EQ(gid.raw[10], 0xff);
  ASSERT_EQ(QueryGid(context_, 1, 2, &gid), 0);
  EXPECT_EQ(gid.global.interface_id, 0u);
  EXPECT_EQ(QueryGid(context_, 1, 1 << 20, &gid), -1);
  ibv_gid_entry entry;
  EXPECT_EQ(QueryGidEx(context_, 1, 1, &entry, 0, sizeof(entry)), 0);
  EXPECT_EQ(entry.gid_type, uint32_t{IBV_GID_TYPE_ROCE_V2});
  EXPECT_EQ(QueryGidEx(context_, 1, 2, &entry, 0, sizeof(entry)), ENODATA);
  EXPECT_EQ(QueryGidEx(context_, 1, 1 << 20, &entry, 0, sizeof(entry)), EINVAL);
  ibv_gid_entry entries[4];
  EXPECT_EQ(QueryGidTable(context_, entries, 4, 0, sizeof(entry)), 2);
  EXPECT_EQ(QueryGidTable(context_, entries, 1, 0, sizeof(entry)), -EINVAL);
  unsigned int type;
  ASSERT_EQ(QueryGidType(context_, 1, 0, &type), 0);
  EXPECT_EQ(type, 1u);
  ASSERT_EQ(QueryGidType(context_, 1, 5, &type), 0);
  EXPECT_EQ(type, 0u);
}

TEST_F(DeviceQueryTest, TheDefaultPartitionIsAtIndexZero) {
  __be16 pkey;
  ASSERT_EQ(QueryPkey(context_, 1, 0, &pkey), 0);
  EXPECT_EQ(pkey, 0xffff);
  EXPECT_EQ(QueryPkey(context_, 1, 1 << 10, &pkey), -1);
  EXPECT_EQ(GetPkeyIndex(context_, 1, 0xffff), 0);
  EXPECT_LT(GetPkeyIndex(context_, 1, 0x1234), 0);
}

TEST_F(DeviceQueryTest, TheRawClockIsInTicks) {
  device().now = 5 * kMillisecond;
  ibv_values_ex values{};
  values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
  ASSERT_EQ(ibv_query_rt_values_ex(context_, &values), 0);
  EXPECT_EQ(values.raw_clock.tv_nsec,
            static_cast<long>(5 * device().profile().limits.hca_core_clock_khz));
}

TEST_F(DeviceQueryTest, WhatIsMissingAnswersEopnotsupp) {
  EXPECT_EQ(ibv_alloc_mw(pd_, IBV_MW_TYPE_1), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  ibv_xrcd xrcd{.context = context_};
  EXPECT_EQ(ibv_close_xrcd(&xrcd), EOPNOTSUPP);
  ibv_td_init_attr td{};
  EXPECT_EQ(ibv_alloc_td(context_, &td), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

}  // namespace
}  // namespace simhca::driver
