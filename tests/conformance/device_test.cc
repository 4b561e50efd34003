#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tests/conformance/fixture.h"

namespace simhca::conformance {
namespace {

class DeviceQueries : public testing::Test {
 protected:
  Device device_;
};

TEST_F(DeviceQueries, TheListNamesTheDeviceAndEndsWithNull) {
  Rule("DEV-01");
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  ASSERT_NE(nullptr, list);
  EXPECT_GE(count, 1);
  EXPECT_EQ(nullptr, list[count]);
  const char* name = ibv_get_device_name(device_.context()->device);
  EXPECT_TRUE(std::any_of(list, list + count, [&](ibv_device* device) {
    return std::strcmp(ibv_get_device_name(device), name) == 0;
  }));
  ibv_free_device_list(list);
  ibv_device** uncounted = ibv_get_device_list(nullptr);
  ASSERT_NE(nullptr, uncounted);
  ibv_free_device_list(uncounted);
}

TEST_F(DeviceQueries, AnOpenDeviceOutlivesTheList) {
  Rule("DEV-01");
  const Device second;
  EXPECT_NE(device_.context(), second.context());
  EXPECT_STREQ(ibv_get_device_name(device_.context()->device),
               ibv_get_device_name(second.context()->device));
  EXPECT_NE(device_.context()->async_fd, second.context()->async_fd);
}

TEST_F(DeviceQueries, LimitsAreSane) {
  Rule("DEV-02");
  ibv_device_attr attr{};
  ASSERT_EQ(0, ibv_query_device(device_.context(), &attr));
  EXPECT_NE(0u, attr.node_guid);
  EXPECT_EQ(ibv_get_device_guid(device_.context()->device), attr.node_guid);
  EXPECT_GT(attr.max_mr_size, 0u);
  EXPECT_GT(attr.max_qp, 0);
  EXPECT_GT(attr.max_qp_wr, 0);
  EXPECT_GT(attr.max_sge, 0);
  EXPECT_GT(attr.max_cq, 0);
  EXPECT_GT(attr.max_cqe, 0);
  EXPECT_GT(attr.max_mr, 0);
  EXPECT_GT(attr.max_pd, 0);
  EXPECT_GT(attr.max_srq, 0);
  EXPECT_GT(attr.max_srq_wr, 0);
  EXPECT_GT(attr.max_srq_sge, 0);
  EXPECT_GT(attr.max_qp_rd_atom, 0);
  EXPECT_GT(attr.max_qp_init_rd_atom, 0);
  EXPECT_GE(attr.phys_port_cnt, 1);
  EXPECT_GE(attr.max_pkeys, 1);
}

TEST_F(DeviceQueries, ExtendedQueryAgreesWithThePlainOne) {
  Rule("DEV-02, DEV-03");
  ibv_device_attr plain{};
  ASSERT_EQ(0, ibv_query_device(device_.context(), &plain));
  ibv_device_attr_ex extended{};
  ASSERT_EQ(0, ibv_query_device_ex(device_.context(), nullptr, &extended));
  EXPECT_EQ(plain.node_guid, extended.orig_attr.node_guid);
  EXPECT_EQ(plain.vendor_part_id, extended.orig_attr.vendor_part_id);
  EXPECT_EQ(plain.max_srq_wr, extended.orig_attr.max_srq_wr);
  EXPECT_EQ(plain.phys_port_cnt, extended.orig_attr.phys_port_cnt);
  EXPECT_TRUE(extended.phys_port_cnt_ex == 0 || extended.phys_port_cnt_ex == plain.phys_port_cnt);
  const ibv_query_device_ex_input input{.comp_mask = 1};
  EXPECT_EQ(EINVAL, ibv_query_device_ex(device_.context(), &input, &extended));
}

TEST_F(DeviceQueries, PortIsActiveAndSane) {
  Rule("DEV-04");
  const ibv_port_attr& port = device_.port_attributes();
  EXPECT_EQ(IBV_PORT_ACTIVE, port.state);
  EXPECT_GE(port.max_mtu, port.active_mtu);
  EXPECT_GE(port.active_mtu, IBV_MTU_256);
  EXPECT_LE(port.active_mtu, IBV_MTU_4096);
  EXPECT_GT(port.gid_tbl_len, 0);
  EXPECT_GT(port.pkey_tbl_len, 0);
  EXPECT_GT(port.max_msg_sz, 0u);
  EXPECT_TRUE(port.link_layer == IBV_LINK_LAYER_ETHERNET ||
              port.link_layer == IBV_LINK_LAYER_INFINIBAND);
}

TEST_F(DeviceQueries, PortsThatDoNotExistAreRefused) {
  Rule("DEV-04");
  ibv_port_attr attr{};
  EXPECT_EQ(EINVAL, ibv_query_port(device_.context(), 0, &attr));
  const int beyond = device_.attributes().phys_port_cnt + 1;
  EXPECT_EQ(EINVAL, ibv_query_port(device_.context(), static_cast<uint8_t>(beyond), &attr));
}

TEST_F(DeviceQueries, GidTableHasTheGidInUse) {
  Rule("DEV-08");
  constexpr ibv_gid kNone{};
  EXPECT_NE(0, std::memcmp(&kNone, &device_.gid(), sizeof kNone));
  ibv_gid_entry entry{};
  ASSERT_EQ(0, ibv_query_gid_ex(device_.context(), device_.port(),
                                static_cast<uint32_t>(device_.gid_index()), &entry, 0));
  EXPECT_EQ(0, std::memcmp(&entry.gid, &device_.gid(), sizeof(ibv_gid)));
  EXPECT_EQ(device_.port(), entry.port_num);
  EXPECT_EQ(static_cast<uint32_t>(device_.gid_index()), entry.gid_index);
}

TEST_F(DeviceQueries, GidsBeyondTheTableAreRefused) {
  Rule("DEV-06, DEV-08");
  const int length = device_.port_attributes().gid_tbl_len;
  ibv_gid gid{};
  EXPECT_EQ(-1, ibv_query_gid(device_.context(), device_.port(), length, &gid));
  EXPECT_EQ(-1, ibv_query_gid(device_.context(), device_.port(), -1, &gid));
  ibv_gid_entry entry{};
  EXPECT_EQ(EINVAL, ibv_query_gid_ex(device_.context(), device_.port(),
                                     static_cast<uint32_t>(length), &entry, 0));
  EXPECT_EQ(EINVAL, ibv_query_gid_ex(device_.context(), 0, 0, &entry, 0));
}

TEST_F(DeviceQueries, EmptyGidSlotsReadAsZeroAndAsNoData) {
  Rule("DEV-05, DEV-07");
  const int length = device_.port_attributes().gid_tbl_len;
  for (int i = 0; i < length; ++i) {
    ibv_gid_entry entry{};
    const int result = ibv_query_gid_ex(device_.context(), device_.port(), i, &entry, 0);
    ibv_gid gid{};
    ASSERT_EQ(0, ibv_query_gid(device_.context(), device_.port(), i, &gid)) << i;
    if (result == 0) {
      EXPECT_EQ(0, std::memcmp(&entry.gid, &gid, sizeof gid));
    } else {
      EXPECT_EQ(ENODATA, result) << i;
      constexpr ibv_gid kNone{};
      EXPECT_EQ(0, std::memcmp(&kNone, &gid, sizeof gid));
    }
  }
}

TEST_F(DeviceQueries, GidTableQueryCountsTheValidEntries) {
  Rule("DEV-09");
  ibv_gid_entry entries[256] = {};
  const ssize_t count = ibv_query_gid_table(device_.context(), entries, std::size(entries), 0);
  ASSERT_GE(count, 1);
  EXPECT_EQ(-EINVAL,
            ibv_query_gid_table(device_.context(), entries, static_cast<size_t>(count) - 1, 0));
  EXPECT_EQ(-EINVAL, ibv_query_gid_table(device_.context(), entries, 0, 0));
  EXPECT_EQ(count, ibv_query_gid_table(device_.context(), entries, static_cast<size_t>(count), 0));
}

TEST_F(DeviceQueries, PkeyTableHasTheDefaultKey) {
  Rule("DEV-10");
  __be16 pkey = 0;
  ASSERT_EQ(0, ibv_query_pkey(device_.context(), device_.port(), 0, &pkey));
  EXPECT_EQ(0xffff, ntohs(pkey));
  EXPECT_EQ(0, ibv_get_pkey_index(device_.context(), device_.port(), pkey));
  EXPECT_EQ(-1, ibv_query_pkey(device_.context(), device_.port(),
                               device_.port_attributes().pkey_tbl_len, &pkey));
}

TEST_F(DeviceQueries, RawClockRunsForward) {
  ibv_values_ex values{};
  values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
  if (ibv_query_rt_values_ex(device_.context(), &values) == EOPNOTSUPP) {
    GTEST_SKIP() << "the device has no clock to read";
  }
  EXPECT_EQ(static_cast<uint32_t>(IBV_VALUES_MASK_RAW_CLOCK), values.comp_mask);
  EXPECT_GT(device_.clock_khz(), 0u);
  const uint64_t first = device_.Ticks();
  EXPECT_GE(device_.Ticks(), first);
  device_.AsyncEvents(Milliseconds(1));
  EXPECT_GT(device_.Ticks(), first);
}

TEST_F(DeviceQueries, NoEventMeansEagainOnANonBlockingContext) {
  Rule("CQ-18");
  ibv_async_event event{};
  errno = 0;
  EXPECT_EQ(-1, ibv_get_async_event(device_.context(), &event));
  EXPECT_EQ(EAGAIN, errno);
}

}  // namespace
}  // namespace simhca::conformance
