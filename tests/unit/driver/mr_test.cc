#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>

#include "tests/unit/driver/fixture.h"
#include "verbs_shim/driver/mapped_memory.h"

namespace simhca::driver {
namespace {

constexpr size_t kPage = 4096;

// Three pages: writable, read only, not mapped.
class Pages {
 public:
  Pages()
      : base_(static_cast<char*>(
            mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    mprotect(base_ + kPage, kPage, PROT_READ);
    munmap(base_ + 2 * kPage, kPage);
  }
  ~Pages() { munmap(base_, 2 * kPage); }
  char* at(size_t offset) const { return base_ + offset; }

 private:
  char* const base_;
};

TEST(MappedMemoryTest, KnowsWhatIsMappedAndHow) {
  const Pages pages;
  EXPECT_TRUE(IsMapped(pages.at(0), kPage, true));
  EXPECT_TRUE(IsMapped(pages.at(100), 2 * kPage - 100, false));
  EXPECT_FALSE(IsMapped(pages.at(100), kPage, true));
  EXPECT_FALSE(IsMapped(pages.at(kPage), kPage + 1, false));
  EXPECT_FALSE(IsMapped(nullptr, 1, false));
  EXPECT_FALSE(IsMapped(pages.at(0), ~size_t{0}, false));
}

class MrTest : public DriverTest {};

TEST_F(MrTest, TheDeviceIsToldTheRange) {
  ibv_mr* mr = RegMr(pd_, buffer_, sizeof(buffer_), IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(mr->addr, buffer_);
  EXPECT_EQ(mr->length, sizeof(buffer_));
  EXPECT_EQ(mr->lkey, mr->rkey);
  const RegisterRegionCommand& region = device().regions.at(mr->lkey);
  EXPECT_EQ(reinterpret_cast<char*>(region.address), buffer_);
  EXPECT_EQ(region.iova, reinterpret_cast<uintptr_t>(buffer_));
  EXPECT_EQ(region.access, uint32_t{IBV_ACCESS_LOCAL_WRITE});
  const uint32_t key = mr->lkey;
  EXPECT_EQ(DeregMr(mr), 0);
  EXPECT_FALSE(device().regions.contains(key));
  EXPECT_EQ(DeregMr(mr), EINVAL);
}

TEST_F(MrTest, MemoryThatIsNotThereIsAFault) {
  const Pages pages;
  EXPECT_EQ(RegMr(pd_, pages.at(0), 3 * kPage, 0), nullptr);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(RegMr(pd_, pages.at(0), 2 * kPage, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_NE(RegMr(pd_, pages.at(0), 2 * kPage, IBV_ACCESS_REMOTE_READ), nullptr);
}

TEST_F(MrTest, RemoteChangesNeedLocalWrite) {
  for (int access : {int{IBV_ACCESS_REMOTE_WRITE}, int{IBV_ACCESS_REMOTE_ATOMIC}, 1 << 15}) {
    EXPECT_EQ(RegMr(pd_, buffer_, 10, access), nullptr);
    EXPECT_EQ(errno, EINVAL);
  }
  EXPECT_EQ(RegMr(pd_, buffer_, 10, IBV_ACCESS_ON_DEMAND), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(RegMr(pd_, buffer_, 0, 0), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(MrTest, OptionalAccessBitsAreDropped) {
  ibv_mr* mr = RegMrIova2(pd_, buffer_, 10, reinterpret_cast<uintptr_t>(buffer_),
                          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(device().regions.at(mr->lkey).access, uint32_t{IBV_ACCESS_LOCAL_WRITE});
}

TEST_F(MrTest, ReregisteringReplacesWhatIsNamed) {
  const size_t regions = device().regions.size();
  ibv_mr* mr = RegMr(pd_, buffer_, 10, 0);
  ASSERT_EQ(ReregMr(mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS, nullptr,
                    buffer_ + 16, 20, IBV_ACCESS_LOCAL_WRITE),
            0);
  EXPECT_EQ(mr->addr, buffer_ + 16);
  EXPECT_EQ(mr->length, 20u);
  EXPECT_EQ(device().regions.at(mr->lkey).access, uint32_t{IBV_ACCESS_LOCAL_WRITE});
  EXPECT_EQ(device().regions.size(), regions + 1);
}

TEST_F(MrTest, ReregisteringRefusesWithoutChange) {
  ibv_mr* mr = RegMr(pd_, buffer_, 10, 0);
  EXPECT_EQ(ReregMr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, nullptr, 10, 0),
            IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ReregMr(mr, IBV_REREG_MR_CHANGE_PD, nullptr, nullptr, 0, 0), IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(ReregMr(mr, 1 << 7, nullptr, nullptr, 0, 0), IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(ReregMr(mr, IBV_REREG_MR_CHANGE_PD, pd_, nullptr, 0, 1), IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(ReregMr(mr, 0, nullptr, nullptr, 0, 0), IBV_REREG_MR_ERR_CMD);
  EXPECT_EQ(mr->addr, buffer_);
  EXPECT_TRUE(device().regions.contains(mr->lkey));
}

}  // namespace
}  // namespace simhca::driver
