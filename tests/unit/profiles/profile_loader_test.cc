#include "sim/profiles/profile_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <fstream>

#include "sim/profiles/fields.h"

namespace simhca {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

DeviceProfile Builtin(std::string_view name) {
  ProfileResult result = FindProfile(name);
  EXPECT_TRUE(result) << result.error;
  return result.profile.value_or(DeviceProfile{});
}

// The message for a text that must be refused.
std::string Refusal(std::string_view toml) {
  const ProfileResult result = ParseProfile(toml, "mine.toml");
  EXPECT_FALSE(result) << toml;
  return result.error;
}

TEST(BuiltinProfileTest, AllLoadAndAreNamedAfterTheirFile) {
  EXPECT_THAT(BuiltinProfileNames(), testing::IsSupersetOf({"connectib", "connectx3", "connectx5",
                                                            "connectx6dx", "generic"}));
  for (std::string_view name : BuiltinProfileNames()) {
    EXPECT_EQ(Builtin(name).identity.name, name);
  }
}

TEST(BuiltinProfileTest, EveryValueHasASource) {
  for (std::string_view name : BuiltinProfileNames()) {
    DeviceProfile profile = Builtin(name);
    for (const Field& field : FieldsOf(profile)) {
      if (field.full_name() == "identity.name") continue;
      EXPECT_TRUE(profile.sources.contains(field.full_name())) << name << " " << field.full_name();
    }
  }
}

TEST(BuiltinProfileTest, GenericIsUnknownToProgramsAndLargeEnoughForThem) {
  const DeviceProfile generic = Builtin("generic");
  EXPECT_EQ(generic.identity.vendor_id, 0x025a48u);
  EXPECT_EQ(generic.identity.vendor_part_id, 0x5a48u);
  EXPECT_EQ(generic.identity.link_layer, LinkLayer::kEthernet);
  EXPECT_EQ(generic.port.active_mtu, 5u);
  EXPECT_GE(generic.limits.max_qp_wr, 4096u);
  EXPECT_GE(generic.limits.max_qp, 1000u);
  EXPECT_GE(generic.limits.max_srq_wr, 4096u);
  EXPECT_GE(generic.limits.max_inline_data, 220u);
  EXPECT_EQ(generic.limits.hca_core_clock_khz, 1'000'000u);
  EXPECT_EQ(generic.features.rounding, Rounding::kExact);
  EXPECT_TRUE(generic.features.srq_resize);
}

TEST(BuiltinProfileTest, PublishedFiguresOfConnectX) {
  for (const auto& [name, part, clock] :
       {std::tuple{"connectx5", 4119u, 156'250u}, std::tuple{"connectx6dx", 4125u, 1'000'000u}}) {
    const DeviceProfile profile = Builtin(name);
    EXPECT_EQ(profile.identity.vendor_id, 0x02c9u);
    EXPECT_EQ(profile.identity.vendor_part_id, part);
    EXPECT_EQ(profile.limits.hca_core_clock_khz, clock);
    EXPECT_EQ(profile.limits.max_srq, 8388608u);
    EXPECT_EQ(profile.limits.max_srq_wr, 32767u);
    EXPECT_EQ(profile.limits.max_srq_sge, 31u);
    EXPECT_EQ(profile.limits.local_ca_ack_delay, 16u);
    EXPECT_EQ(profile.limits.completion_timestamp_mask, 0x7fffffffffffffffu);
    EXPECT_EQ(profile.limits.page_size_cap, 0xfffffffffffff000u);
    EXPECT_EQ(profile.features.rounding, Rounding::kMlx5);
    EXPECT_FALSE(profile.features.srq_resize);
  }
}

TEST(BuiltinProfileTest, PublishedFiguresOfFdrDevices) {
  const DeviceProfile connectx3 = Builtin("connectx3");
  EXPECT_EQ(connectx3.identity.vendor_part_id, 4099u);
  EXPECT_EQ(connectx3.limits.max_qp_wr, 16351u);
  EXPECT_EQ(connectx3.limits.max_srq, 65472u);
  EXPECT_EQ(connectx3.limits.max_srq_wr, 16383u);
  EXPECT_EQ(connectx3.costs.pcie_bits_per_second, 57'880'000'000u);
  const DeviceProfile connectib = Builtin("connectib");
  EXPECT_EQ(connectib.identity.vendor_part_id, 4113u);
  EXPECT_EQ(connectib.limits.max_qp, 262144u);
  EXPECT_EQ(connectib.costs.pcie_bits_per_second, 113'700'000'000u);
  for (const DeviceProfile& profile : {connectx3, connectib}) {
    EXPECT_EQ(profile.identity.vendor_id, 0x02c9u);
    EXPECT_EQ(profile.identity.link_layer, LinkLayer::kInfiniband);
    EXPECT_EQ(profile.costs.wire_bits_per_second, 54'545'000'000u);
  }
}

// A value that a device takes from its base keeps the base's source, which is of another device.
TEST(BuiltinProfileTest, PublishedLimitsAreOfTheDeviceItself) {
  for (const char* name : {"connectib", "connectx3", "connectx6dx"}) {
    for (const auto& [key, source] : Builtin(name).sources) {
      if (!key.starts_with("limits.")) continue;
      EXPECT_THAT(source, testing::Not(HasSubstr("pull request 6137"))) << name << " " << key;
    }
  }
}

TEST(ProfileLoaderTest, WhatIsLeftOutComesFromGeneric) {
  const ProfileResult result = ParseProfile("[limits]\nmax_qp = 77\n", "dir/mine.toml");
  ASSERT_TRUE(result) << result.error;
  EXPECT_EQ(result.profile->limits.max_qp, 77u);
  EXPECT_EQ(result.profile->limits.max_cq, Builtin("generic").limits.max_cq);
  EXPECT_EQ(result.profile->identity.name, "mine");
  EXPECT_EQ(result.profile->sources.find("limits.max_qp")->second, "dir/mine.toml");
}

TEST(ProfileLoaderTest, AnEmptyTextIsGenericUnderAnotherName) {
  const ProfileResult result = ParseProfile("", "mine.toml");
  ASSERT_TRUE(result) << result.error;
  EXPECT_EQ(result.profile->limits.max_srq, Builtin("generic").limits.max_srq);
}

TEST(ProfileLoaderTest, BaseNamesAnotherProfileToInheritFrom) {
  const ProfileResult result = ParseProfile("base = \"connectx5\"", "mine.toml");
  ASSERT_TRUE(result) << result.error;
  EXPECT_EQ(result.profile->identity.vendor_part_id, 4119u);
  EXPECT_THAT(Refusal("\nbase = \"connectx9\""), StartsWith("mine.toml:2: base"));
}

TEST(ProfileLoaderTest, CostsAreReadInTheirUnits) {
  const ProfileResult result = ParseProfile(
      "[costs]\n"
      "wqe_fetch = { value = 1.5, unit = \"ns\", source = \"assumed\" }\n"
      "event_latency = { value = 7, unit = \"us\", source = \"a paper\" }\n"
      "wire_bits_per_second = { value = 25, unit = \"Gb/s\", source = \"assumed\" }\n",
      "mine.toml");
  ASSERT_TRUE(result) << result.error;
  EXPECT_EQ(result.profile->costs.wqe_fetch, 1500);
  EXPECT_EQ(result.profile->costs.event_latency, 7 * kMicrosecond);
  EXPECT_EQ(result.profile->costs.wire_bits_per_second, 25'000'000'000u);
  EXPECT_EQ(result.profile->sources.find("costs.event_latency")->second, "a paper");
}

TEST(ProfileLoaderTest, ACostWithoutASourceIsRefused) {
  EXPECT_THAT(Refusal("[costs]\nwqe_fetch = { value = 1, unit = \"ns\" }"),
              StartsWith("mine.toml:2: costs.wqe_fetch names no source"));
  EXPECT_THAT(Refusal("[costs]\nsource = \"all\"\nwqe_fetch = { value = 1, unit = \"ns\" }"),
              StartsWith("mine.toml:3: costs.wqe_fetch names no source"));
}

TEST(ProfileLoaderTest, ACostWithoutAUnitIsRefused) {
  EXPECT_THAT(Refusal("[costs]\nwqe_fetch = { value = 1, source = \"assumed\" }"),
              HasSubstr("needs a unit: ps, ns, us, ms"));
  EXPECT_THAT(Refusal("[costs]\nwqe_fetch = { value = 1, unit = \"s\", source = \"assumed\" }"),
              HasSubstr("accepted is ps, ns, us, ms"));
}

TEST(ProfileLoaderTest, WrongValuesAreRefusedWithLineAndRange) {
  EXPECT_EQ(Refusal("[limits]\n\nmax_qp = 0"),
            "mine.toml:3: limits.max_qp: accepted is 1 to 16777214");
  EXPECT_EQ(Refusal("[limits]\nmax_qp = 16777215"),
            "mine.toml:2: limits.max_qp: accepted is 1 to 16777214");
  EXPECT_THAT(Refusal("[limits]\nmax_qp = -1"), HasSubstr("1 to 16777214"));
  EXPECT_THAT(Refusal("[limits]\nmax_qp = 1.5"), HasSubstr("1 to 16777214"));
  EXPECT_THAT(Refusal("[limits]\nmax_qp = \"many\""), HasSubstr("1 to 16777214"));
  EXPECT_THAT(Refusal("[limits]\nmax_mr_size = \"0x1ffffffffffffffff\""), HasSubstr("0x1000 to"));
  EXPECT_THAT(Refusal("[features]\nsrq = 1"), HasSubstr("true or false"));
  EXPECT_THAT(Refusal("[features]\nrounding = \"up\""), HasSubstr("one of \"exact\", \"mlx5\""));
  EXPECT_THAT(Refusal("[port]\nactive_width = 3"), HasSubstr("one of 1, 2, 4, 8, 16"));
  EXPECT_THAT(Refusal("[identity]\nfw_ver = \"\""), HasSubstr("1 to 63 characters"));
  EXPECT_THAT(Refusal("[costs]\nwqe_fetch = { value = 2000, unit = \"ms\", source = \"assumed\" }"),
              HasSubstr("0 ps to 1000 ms"));
}

// What costs.`key` = `value` is refused with.
std::string CostRefusal(const std::string& key, const std::string& value) {
  return Refusal("[costs]\n" + key + " = { value = " + value + ", source = \"assumed\" }");
}

TEST(ProfileLoaderTest, AResourceThatCannotBeIsRefused) {
  EXPECT_EQ(CostRefusal("wire_bits_per_second", "0, unit = \"Gb/s\""),
            "mine.toml:2: costs.wire_bits_per_second: accepted is 1 Mb/s to 10000 Gb/s");
  EXPECT_EQ(CostRefusal("pcie_bits_per_second", "0, unit = \"Gb/s\""),
            "mine.toml:2: costs.pcie_bits_per_second: accepted is 1 Mb/s to 10000 Gb/s");
  for (const char* key :
       {"qp_cache_entries", "cq_cache_entries", "srq_cache_entries", "mr_cache_entries"}) {
    const std::string message =
        std::string("mine.toml:2: costs.") + key + ": accepted is 1 to 16777216";
    EXPECT_EQ(CostRefusal(key, "0"), message);
    EXPECT_EQ(CostRefusal(key, "16777217"), message);
  }
  EXPECT_THAT(CostRefusal("cache_misses_in_flight", "0"), HasSubstr("1 to 256"));
  EXPECT_THAT(CostRefusal("pcie_outstanding_reads", "0"), HasSubstr("1 to 1024"));
  EXPECT_THAT(CostRefusal("send_fetch_batch", "65"), HasSubstr("1 to 64"));
  EXPECT_THAT(CostRefusal("receive_prefetch", "0"), HasSubstr("1 to 256"));
  EXPECT_THAT(CostRefusal("active_receive_wqes", "1025"), HasSubstr("1 to 1024"));
  EXPECT_THAT(CostRefusal("rx_buffer_bytes", "4096"), HasSubstr("8192 B to 1073741824 B"));
}

TEST(ProfileLoaderTest, PcieSizesArePowersOfTwo) {
  for (const char* key : {"pcie_max_payload", "pcie_max_read_request"}) {
    const std::string message = std::string("mine.toml:2: costs.") + key +
                                ": accepted is one of 128, 256, 512, 1024, 2048, 4096";
    for (const char* value : {"0", "64", "300", "8192"}) {
      EXPECT_EQ(CostRefusal(key, value), message);
    }
  }
}

TEST(ProfileLoaderTest, UnknownKeysAreRefusedWithTheAcceptedOnes) {
  EXPECT_THAT(Refusal("[limits]\nmax_qps = 1"),
              testing::AllOf(StartsWith("mine.toml:2: unknown key limits.max_qps"),
                             HasSubstr("max_qp_wr")));
  EXPECT_THAT(Refusal("[limit]\nmax_qp = 1"), StartsWith("mine.toml:1: unknown key \"limit\""));
  EXPECT_THAT(Refusal("[limits]\nmax_qp = { value = 1, units = \"B\" }"), HasSubstr("\"units\""));
  EXPECT_THAT(Refusal("limits = 3"), HasSubstr("must be a section"));
}

TEST(ProfileLoaderTest, BrokenTomlIsRefusedWithItsLine) {
  EXPECT_THAT(Refusal("[limits]\nmax_qp = \n"), StartsWith("mine.toml:2: "));
  EXPECT_THAT(Refusal("\n[\x01]\n"), StartsWith("mine.toml:2: "));
  EXPECT_THAT(Refusal("\n\u00e9 = 1\n"), StartsWith("mine.toml:2: "));
}

TEST(ProfileLoaderTest, ActiveMtuIsNotAboveMaxMtu) {
  EXPECT_EQ(Refusal("[port]\nmax_mtu = 3"), "mine.toml:2: port.active_mtu is above port.max_mtu");
  EXPECT_THAT(Refusal("[port]\nmax_mtu = 3\nactive_mtu = { value = 4 }"),
              StartsWith("mine.toml:3: port.active_mtu"));
}

TEST(FindProfileTest, UnknownNamesAreRefusedWithTheKnownOnes) {
  const ProfileResult result = FindProfile("connectx");
  EXPECT_FALSE(result);
  EXPECT_THAT(result.error, HasSubstr("connectx5, connectx6dx"));
}

TEST(FindProfileTest, PathsAreReadFromTheFile) {
  const std::string path = testing::TempDir() + "/quarter.toml";
  std::ofstream(path) << "[limits]\nmax_srq = 25\n";
  const ProfileResult result = FindProfile(path);
  ASSERT_TRUE(result) << result.error;
  EXPECT_EQ(result.profile->limits.max_srq, 25u);
  EXPECT_EQ(result.profile->identity.name, "quarter");
  std::remove(path.c_str());
  EXPECT_THAT(FindProfile(path).error, HasSubstr("No such file"));
  EXPECT_THAT(FindProfile(testing::TempDir() + "/").error, HasSubstr("Is a directory"));
}

TEST(FindProfileTest, OnlyRegularFilesAreRead) {
  const std::string fifo = testing::TempDir() + "/fifo.toml";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(FindProfile(fifo).error, fifo + ": cannot be read: it is not a regular file");
  std::remove(fifo.c_str());
  EXPECT_EQ(FindProfile("/dev/zero").error, "/dev/zero: cannot be read: it is not a regular file");
}

TEST(FindProfileTest, FilesUpToOneMebibyteAreRead) {
  const std::string path = testing::TempDir() + "/large.toml";
  std::ofstream(path) << "#" << std::string((1 << 20) - 1, 'x');
  EXPECT_TRUE(FindProfile(path)) << FindProfile(path).error;
  std::ofstream(path, std::ios::app) << "x";
  EXPECT_EQ(FindProfile(path).error, path + ": cannot be read: it is larger than 1 MiB");
  std::remove(path.c_str());
}

}  // namespace
}  // namespace simhca
