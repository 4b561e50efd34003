#include "sim/wire/gid.h"

#include <gtest/gtest.h>

namespace simhca {
namespace {

TEST(GidTest, AddressesOfTheFirstPort) {
  EXPECT_EQ(FormatGid(GidOfPort(0, 0)), "fe80:0000:0000:0000:005a:48ff:fe00:0001");
  EXPECT_EQ(FormatGid(GidOfPort(0, 1)), "0000:0000:0000:0000:0000:ffff:c612:0001");
  EXPECT_FALSE(IsIpv4Mapped(GidOfPort(0, 0)));
  EXPECT_TRUE(IsIpv4Mapped(GidOfPort(0, 1)));
  EXPECT_EQ(MacOfPort(0), (MacAddress{0x02, 0x5a, 0x48, 0, 0, 1}));
  EXPECT_EQ(NodeGuidOfPort(0), (std::array<uint8_t, 8>{0, 0x5a, 0x48, 0xff, 0xfe, 0, 0, 1}));
}

TEST(GidTest, EntriesBeyondTheTableAreEmpty) {
  EXPECT_EQ(GidOfPort(3, kGidsPerPort), Gid{});
  EXPECT_FALSE(PortOfGid(Gid{}).has_value());
}

TEST(GidTest, EveryGidLeadsBackToItsPort) {
  for (uint32_t port = 0; port <= kMaxPort; ++port) {
    for (uint32_t index = 0; index < kGidsPerPort; ++index) {
      const auto found = FindGid(GidOfPort(static_cast<uint16_t>(port), index));
      ASSERT_TRUE(found.has_value()) << port;
      ASSERT_EQ(found->port, port);
      ASSERT_EQ(found->index, index);
    }
  }
}

TEST(GidTest, ForeignAddressesBelongToNoPort) {
  Gid gid = GidOfPort(7, 0);
  gid[1] = 0x81;
  EXPECT_FALSE(PortOfGid(gid).has_value());
  gid = GidOfPort(7, 1);
  gid[13] = 19;
  EXPECT_FALSE(PortOfGid(gid).has_value());
}

}  // namespace
}  // namespace simhca
