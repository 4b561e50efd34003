#include "sim/fabric/number_allocator.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

namespace simhca {
namespace {

class NumberAllocatorTest : public testing::Test {
 protected:
  // Leaves the process under test a few blocks.
  void TakeAllButFirst(uint32_t blocks) {
    for (uint32_t i = blocks + 1; i < kNumberBlocks; ++i) layout->owners[i] = MakeOwner(200, 5);
  }

  std::unique_ptr<FabricLayout> layout = std::make_unique<FabricLayout>();
};

TEST_F(NumberAllocatorTest, NumbersOfTwoProcessesNeverMeet) {
  NumberAllocator first(*layout, MakeOwner(0, 1)), second(*layout, MakeOwner(1, 2));
  std::set<uint32_t> numbers;
  for (int i = 0; i < 20'000; ++i) {
    EXPECT_TRUE(numbers.insert(first.Allocate()).second);
    EXPECT_TRUE(numbers.insert(second.Allocate()).second);
  }
  EXPECT_GT(*numbers.begin(), 1u);
  EXPECT_LT(*numbers.rbegin(), 1u << 24);
  EXPECT_EQ(layout->owners[first.Allocate() / kNumbersPerBlock], MakeOwner(0, 1));
  EXPECT_EQ(layout->owners[second.Allocate() / kNumbersPerBlock], MakeOwner(1, 2));
}

TEST_F(NumberAllocatorTest, NumbersStayUniqueWhenTheOwnersAreScribbledOver) {
  NumberAllocator numbers(*layout, MakeOwner(0, 1));
  std::set<uint32_t> given;
  for (uint32_t i = 0; i < 4 * kNumbersPerBlock; ++i) {
    const uint32_t number = numbers.Allocate();
    EXPECT_TRUE(given.insert(number).second) << number;
    layout->owners[number / kNumbersPerBlock] = 0;
    layout->header.next_block = 0;
  }
}

TEST_F(NumberAllocatorTest, ReleasedNumberIsNotSoonUsedAgain) {
  NumberAllocator numbers(*layout, MakeOwner(0, 1));
  std::set<uint32_t> recent;
  for (int i = 0; i < 4000; ++i) {
    const uint32_t number = numbers.Allocate();
    EXPECT_TRUE(recent.insert(number).second);
    numbers.Release(number);
  }
  // Nor for ever: one object that comes and goes takes a bounded part of the fabric's numbers.
  for (int i = 0; i < 100'000; ++i) {
    const uint32_t number = numbers.Allocate();
    recent.insert(number);
    numbers.Release(number);
  }
  EXPECT_LE(recent.size(), 8192u);
}

TEST_F(NumberAllocatorTest, EveryNumberCanBeUsedAndThenNoneIsLeft) {
  NumberAllocator numbers(*layout, MakeOwner(3, 9));
  TakeAllButFirst(40);
  const uint32_t most = 40 * kNumbersPerBlock;
  uint32_t last = 0;
  for (uint32_t i = 0; i < most; ++i) {
    last = numbers.Allocate();
    ASSERT_NE(last, 0u);
  }
  EXPECT_EQ(numbers.Allocate(), 0u);
  numbers.Release(last);
  EXPECT_EQ(numbers.Allocate(), last);
}

TEST_F(NumberAllocatorTest, BlocksComeBackWhenTheirNumbersDo) {
  NumberAllocator first(*layout, MakeOwner(0, 1)), second(*layout, MakeOwner(1, 2));
  TakeAllButFirst(40);
  std::vector<uint32_t> numbers;
  while (const uint32_t number = first.Allocate()) numbers.push_back(number);
  EXPECT_EQ(second.Allocate(), 0u);
  for (const uint32_t number : numbers) first.Release(number);
  EXPECT_NE(second.Allocate(), 0u);
}

TEST_F(NumberAllocatorTest, ReleasingTwiceOrAForeignNumberDoesNothing) {
  NumberAllocator numbers(*layout, MakeOwner(0, 1));
  const uint32_t number = numbers.Allocate();
  numbers.Release(number);
  numbers.Release(number);
  numbers.Release(0xffffff);
  std::set<uint32_t> seen;
  for (int i = 0; i < 5000; ++i) EXPECT_TRUE(seen.insert(numbers.Allocate()).second);
}

}  // namespace
}  // namespace simhca
