#include "sim/timing/server_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace simhca {
namespace {

TEST(ServerPoolTest, AsManyAsThereAreServersAreServedAtATime) {
  MissUnit unit(2, 100);
  EXPECT_EQ(unit.Serve(10), 110);
  EXPECT_EQ(unit.Serve(20), 120);
  EXPECT_EQ(unit.Serve(30), 210);
  EXPECT_EQ(unit.Serve(30), 220);
  EXPECT_EQ(unit.Serve(1000), 1100);
  EXPECT_EQ(unit.served(), 5u);
}

TEST(ServerPoolTest, AChainReservedAheadOccupiesOneServer) {
  MissUnit unit(2, 100);
  Time chain = 0;
  for (int i = 0; i < 50; ++i) chain = unit.Serve(chain);
  EXPECT_EQ(chain, 5000);
  EXPECT_EQ(unit.Serve(20), 120);
}

TEST(ServerPoolTest, TakesWhatACountOfBusyServersAllows) {
  constexpr uint32_t kServers = 5;
  ServerPool pool(kServers);
  std::vector<Time> busy_until;
  uint32_t random = 99;
  for (Time at = 0; at < 20000; at += 10) {
    random = random * 1664525 + 1013904223;
    const Time begin = pool.Take(at);
    const auto busy = std::count_if(busy_until.begin(), busy_until.end(),
                                    [begin](Time until) { return until > begin; });
    ASSERT_LT(busy, kServers) << "at " << at;
    // It waits only if all were busy.
    if (begin > at) {
      ASSERT_GE(std::count_if(busy_until.begin(), busy_until.end(),
                              [at](Time until) { return until > at; }),
                kServers);
    }
    busy_until.push_back(begin + 1 + (random >> 8) % 90);
    pool.Release(busy_until.back());
  }
}

}  // namespace
}  // namespace simhca
