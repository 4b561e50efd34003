#include "verbs_shim/route/route_spec.h"

#include <gtest/gtest.h>

namespace simhca::route {
namespace {

constexpr auto kSim = DeviceSource::kSimulator;
constexpr auto kHw = DeviceSource::kHardware;

RouteSpec Parsed(const char* text) {
  std::string error;
  const std::optional<RouteSpec> spec = ParseRoute(text, &error);
  EXPECT_TRUE(spec) << text << ": " << error;
  return spec.value_or(RouteSpec());
}

TEST(RouteSpec, NoRouteMeansAllSimulatedDevices) {
  const RouteSpec spec = Parsed("");
  ASSERT_EQ(spec.terms.size(), 1u);
  EXPECT_TRUE(spec.terms[0].Admits(kSim, "simhca3"));
  EXPECT_FALSE(spec.terms[0].Admits(kHw, "mlx5_0"));
  EXPECT_FALSE(spec.Uses(kHw));
}

TEST(RouteSpec, BothMeansSimulatedDevicesFollowedByHardware) {
  const RouteSpec spec = Parsed("both");
  ASSERT_EQ(spec.terms.size(), 2u);
  EXPECT_EQ(spec.terms[0].source, kSim);
  EXPECT_EQ(spec.terms[1].source, kHw);
}

TEST(RouteSpec, DeviceNamesNarrowTheirTermAndTheOrderIsKept) {
  const RouteSpec spec = Parsed("hw:mlx5_0,sim");
  ASSERT_EQ(spec.terms.size(), 2u);
  EXPECT_TRUE(spec.terms[0].Admits(kHw, "mlx5_0"));
  EXPECT_FALSE(spec.terms[0].Admits(kHw, "mlx5_1"));
  EXPECT_FALSE(spec.terms[0].Admits(kSim, "mlx5_0"));
  EXPECT_TRUE(spec.terms[1].Admits(kSim, "simhca0"));
  EXPECT_TRUE(spec.Uses(kHw));
}

TEST(RouteSpec, AutoMayUseBothSources) {
  const RouteSpec spec = Parsed("auto");
  EXPECT_TRUE(spec.automatic);
  EXPECT_TRUE(spec.Uses(kSim));
  EXPECT_TRUE(spec.Uses(kHw));
}

TEST(RouteSpec, MistakesAreRefusedAndNamed) {
  for (const char* text : {"hardware", "sim,", ",sim", "hw:", "sim:a,,hw", "auto,sim", "both,hw",
                           "SIM", " sim", "hwmlx5"}) {
    std::string error;
    EXPECT_FALSE(ParseRoute(text, &error)) << text;
    EXPECT_NE(error.find("accepted are sim, hw, both, auto"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace simhca::route
