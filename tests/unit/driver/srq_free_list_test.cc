#include "verbs_shim/driver/srq_free_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

namespace simhca::driver {
namespace {

constexpr uint32_t kStride = 32;

class SrqFreeListTest : public testing::TestWithParam<SrqListOrder> {
 protected:
  static std::vector<std::byte> Ring(uint32_t entries) {
    return std::vector<std::byte>(size_t{entries} * kStride);
  }
  static uint32_t Next(const std::vector<std::byte>& ring, uint32_t index) {
    return reinterpret_cast<const mlx5::SrqNextSegment*>(ring.data() + index * kStride)
        ->next_wqe_index;
  }
};

TEST_P(SrqFreeListTest, OneEntryIsAlwaysKeptBack) {
  auto ring = Ring(8);
  SrqFreeList list(GetParam(), ring.data(), kStride, 8);
  for (uint32_t i = 0; i < 7; ++i) {
    ASSERT_TRUE(list.HasNext());
    EXPECT_EQ(list.Take(), i);
  }
  EXPECT_FALSE(list.HasNext());
  list.Free(3);
  ASSERT_TRUE(list.HasNext());
  EXPECT_EQ(list.Take(), 7u);
  EXPECT_FALSE(list.HasNext());
}

// What the device relies on: the next index of the entry it has just taken leads to the entry that
// is posted after it, at the time that one is posted.
TEST_P(SrqFreeListTest, TheDeviceMeetsEntriesInPostingOrder) {
  constexpr uint32_t kEntries = 64;
  auto ring = Ring(kEntries);
  SrqFreeList list(GetParam(), ring.data(), kStride, kEntries);
  std::mt19937 random(7);
  std::vector<uint32_t> posted;     // taken from the list, not yet claimed by the device
  std::vector<uint32_t> completed;  // claimed, in any order
  uint32_t device = 0;              // entry that the device will claim next
  uint32_t in_use = 0;
  for (int step = 0; step < 20000; ++step) {
    switch (random() % 3) {
      case 0:
        if (in_use < kEntries - 1) {
          ASSERT_TRUE(list.HasNext());
          posted.push_back(list.Take());
          ++in_use;
        }
        break;
      case 1:
        if (!posted.empty()) {
          ASSERT_EQ(device, posted.front());
          device = Next(ring, device);
          completed.push_back(posted.front());
          posted.erase(posted.begin());
        }
        break;
      case 2:
        if (!completed.empty()) {
          const size_t which = random() % completed.size();
          list.Free(completed[which]);
          completed.erase(completed.begin() + which);
          --in_use;
        }
        break;
    }
  }
}

TEST_P(SrqFreeListTest, AGrownListHasTheNewEntriesToo) {
  auto ring = Ring(4);
  SrqFreeList list(GetParam(), ring.data(), kStride, 4);
  std::set<uint32_t> taken;
  ASSERT_TRUE(list.HasNext());
  taken.insert(list.Take());
  auto larger = Ring(16);
  std::copy(ring.begin(), ring.end(), larger.begin());
  list.Grow(larger.data(), 16);
  while (list.HasNext()) taken.insert(list.Take());
  EXPECT_EQ(taken.size(), 15u);
}

INSTANTIATE_TEST_SUITE_P(Orders, SrqFreeListTest,
                         testing::Values(SrqListOrder::kCompletionOrder,
                                         SrqListOrder::kContiguous));

TEST(SrqFreeListOrderTest, CompletionOrderAppendsAtTheTail) {
  std::vector<std::byte> ring(4 * kStride);
  SrqFreeList list(SrqListOrder::kCompletionOrder, ring.data(), kStride, 4);
  for (int i = 0; i < 3; ++i) list.Take();
  list.Free(2);
  list.Free(0);
  list.Free(1);
  EXPECT_EQ(list.Take(), 3u);
  EXPECT_EQ(list.Take(), 2u);
  EXPECT_EQ(list.Take(), 0u);
}

TEST(SrqFreeListOrderTest, ContiguousOrderGoesOnWithNeighbours) {
  std::vector<std::byte> ring(8 * kStride);
  SrqFreeList list(SrqListOrder::kContiguous, ring.data(), kStride, 8);
  for (int i = 0; i < 7; ++i) list.Take();
  for (uint32_t index : {5, 1, 3, 2}) list.Free(index);
  ASSERT_TRUE(list.HasNext());
  EXPECT_EQ(list.Take(), 7u);
  ASSERT_TRUE(list.HasNext());
  EXPECT_EQ(list.Take(), 1u);  // the run 1, 2, 3 whatever the order of completion
  EXPECT_EQ(list.Take(), 2u);
  ASSERT_TRUE(list.HasNext());
  EXPECT_EQ(list.Take(), 3u);
}

}  // namespace
}  // namespace simhca::driver
