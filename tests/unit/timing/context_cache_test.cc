#include "sim/timing/context_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>

namespace simhca {
namespace {

TEST(ContextCacheTest, TheContextUsedLongestAgoMakesRoom) {
  ContextCache cache(2);
  EXPECT_FALSE(cache.Touch(1));
  EXPECT_FALSE(cache.Touch(2));
  EXPECT_TRUE(cache.Touch(1));
  EXPECT_FALSE(cache.Touch(3));  // 2 goes
  EXPECT_TRUE(cache.Touch(1));
  EXPECT_FALSE(cache.Touch(2));  // 3 goes
  EXPECT_FALSE(cache.Touch(3));
  EXPECT_EQ(cache.hits(), 2u);
  EXPECT_EQ(cache.misses(), 5u);
  EXPECT_EQ(cache.size(), 2u);
}

TEST(ContextCacheTest, AForgottenContextTakesNoRoom) {
  ContextCache cache(2);
  cache.Touch(1);
  cache.Touch(2);
  cache.Forget(2);
  cache.Forget(7);
  EXPECT_EQ(cache.size(), 1u);
  EXPECT_FALSE(cache.Touch(3));
  EXPECT_TRUE(cache.Touch(1));
  EXPECT_FALSE(cache.Touch(2));
}

TEST(ContextCacheTest, OneEntryIsACacheToo) {
  ContextCache cache(1);
  EXPECT_FALSE(cache.Touch(5));
  EXPECT_TRUE(cache.Touch(5));
  EXPECT_FALSE(cache.Touch(6));
  EXPECT_FALSE(cache.Touch(5));
}

TEST(ContextCacheTest, UsersInTurnBeyondTheCapacityAlwaysMiss) {
  ContextCache cache(100);
  for (int round = 0; round < 3; ++round) {
    for (uint32_t key = 0; key < 101; ++key) EXPECT_FALSE(cache.Touch(key << 8));
  }
}

TEST(ContextCacheTest, ALargeCapacityTakesMemoryOnlyForWhatIsUsed) {
  // 2000 of these at their full size would be half a terabyte.
  std::list<ContextCache> caches;
  for (int i = 0; i < 2000; ++i) {
    caches.emplace_back(1 << 24);
    EXPECT_FALSE(caches.back().Touch(7));
    EXPECT_TRUE(caches.back().Touch(7));
  }
}

TEST(ContextCacheTest, DoesWhatAListInOrderOfUseDoes) {
  constexpr size_t kCapacity = 50;
  ContextCache cache(kCapacity);
  std::list<uint32_t> model;  // newest first
  uint32_t random = 4711;
  for (int i = 0; i < 50000; ++i) {
    random = random * 1664525 + 1013904223;
    const uint32_t key = (random >> 16) % 120 * 64;
    const auto found = std::find(model.begin(), model.end(), key);
    const bool known = found != model.end();
    if (known) model.erase(found);
    if ((random >> 8) % 10 == 0) {
      cache.Forget(key);
    } else {
      ASSERT_EQ(cache.Touch(key), known) << "step " << i;
      model.push_front(key);
      if (model.size() > kCapacity) model.pop_back();
    }
    ASSERT_EQ(cache.size(), model.size());
  }
}

}  // namespace
}  // namespace simhca
