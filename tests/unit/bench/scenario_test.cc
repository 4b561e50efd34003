#include "bench/model/scenario.h"

#include <gtest/gtest.h>

#include "sim/profiles/profile_loader.h"

namespace simhca::bench {
namespace {

Scenario Small() {
  Scenario scenario;
  scenario.profile = *FindProfile("connectx6dx").profile;
  scenario.srq = true;
  scenario.warm_up = 100;
  scenario.messages = 100;
  return scenario;
}

TEST(Scenarios, AWatermarkThatIsReachedAtOnceLetsTimeGoOn) {
  Scenario scenario = Small();
  scenario.qps = 256;
  scenario.message_bytes = 4096;
  scenario.watermark = 64;
  scenario.refill_latency = 0;
  const ScenarioResult result = bench::Run(scenario);
  EXPECT_EQ(result.error, "");
  EXPECT_GT(result.elapsed, 0);
}

TEST(Scenarios, WhatTheProfileCannotDoIsSaid) {
  Scenario scenario = Small();
  scenario.profile.features.srq = false;
  EXPECT_EQ(bench::Run(scenario).error, "the profile has no SRQs");
  scenario = Small();
  scenario.profile.limits.max_srq_wr = 10;
  EXPECT_EQ(bench::Run(scenario).error, "receives 256 is above the profile's 10");
  scenario = Small();
  scenario.profile.limits.max_qp_wr = 4;
  EXPECT_EQ(bench::Run(scenario).error, "outstanding 128 is above the profile's 4");
  scenario = Small();
  scenario.profile.limits.max_qp = 2;
  scenario.qps = 3;
  EXPECT_EQ(bench::Run(scenario).error,
            "the receiver's number of queue pairs 3 is above the profile's 2");
}

}  // namespace
}  // namespace simhca::bench
