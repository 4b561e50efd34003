#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "tests/conformance/fixture.h"

namespace simhca::conformance {
namespace {

class Regions : public RcTest {
 protected:
  void ExpectRefused(void* address, size_t length, int access, int error) {
    errno = 0;
    EXPECT_EQ(nullptr, ibv_reg_mr(pd_.get(), address, length, access));
    EXPECT_EQ(error, errno);
  }
  SendRequest Write(const ibv_mr* target, uint64_t address) const {
    return {.segments = {source_.Sge(0, 100)},
            .opcode = IBV_WR_RDMA_WRITE,
            .remote_address = address,
            .rkey = target->rkey};
  }
};

TEST_F(Regions, RegisteringFillsInWhatWasGiven) {
  Rule("MR-06");
  std::vector<std::byte> memory(5000);
  // The header picks one of two library functions by whether the rights are a constant.
  const Mr by_constant(ibv_reg_mr(pd_.get(), memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE));
  const Mr by_variable = Register(pd_.get(), memory);
  for (const ibv_mr* mr : {by_constant.get(), by_variable.get()}) {
    ASSERT_NE(nullptr, mr);
    EXPECT_EQ(device_.context(), mr->context);
    EXPECT_EQ(pd_.get(), mr->pd);
    EXPECT_EQ(memory.data(), mr->addr);
    EXPECT_EQ(memory.size(), mr->length);
  }
}

TEST_F(Regions, KeysOfLiveRegionsDiffer) {
  Rule("MR-06");
  const Mr again = Register(pd_.get(), {source_.data(), source_.size()});
  EXPECT_NE(source_.lkey(), again->lkey);
  EXPECT_NE(source_.rkey(), again->rkey);
}

TEST_F(Regions, RemoteWriteAndAtomicNeedLocalWrite) {
  Rule("MR-01");
  ExpectRefused(source_.data(), 4096, IBV_ACCESS_REMOTE_WRITE, EINVAL);
  ExpectRefused(source_.data(), 4096, IBV_ACCESS_REMOTE_ATOMIC, EINVAL);
  ExpectRefused(source_.data(), 4096, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ, EINVAL);
  Register(pd_.get(), {source_.data(), 4096}, IBV_ACCESS_REMOTE_READ);
  Register(pd_.get(), {source_.data(), 4096}, 0);
}

TEST_F(Regions, UnknownAccessBitsAreRefusedAndOptionalOnesAreNot) {
  Rule("MR-02, MR-03");
  ExpectRefused(source_.data(), 4096, IBV_ACCESS_LOCAL_WRITE | 1 << 18, EINVAL);
  int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING;
  Register(pd_.get(), {source_.data(), 4096}, access);
  access |= 1 << 29;  // the last bit of the optional range
  Register(pd_.get(), {source_.data(), 4096}, access);
}

TEST_F(Regions, MemoryThatIsNotMappedIsRefused) {
  Rule("MR-05");
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* memory =
      mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(MAP_FAILED, memory);
  std::byte* pages = static_cast<std::byte*>(memory);
  ASSERT_EQ(0, munmap(pages + 2 * page, page));
  ExpectRefused(pages, 4 * page, IBV_ACCESS_LOCAL_WRITE, EFAULT);
  ExpectRefused(pages + 2 * page, page, IBV_ACCESS_LOCAL_WRITE, EFAULT);
  Register(pd_.get(), {pages, 2 * page});
  EXPECT_EQ(0, munmap(pages, 2 * page));
  EXPECT_EQ(0, munmap(pages + 3 * page, page));
}

TEST_F(Regions, ReadOnlyMemoryIsRefusedForLocalWrite) {
  Rule("MR-05");
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* memory = mmap(nullptr, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(MAP_FAILED, memory);
  ExpectRefused(memory, page, IBV_ACCESS_LOCAL_WRITE, EFAULT);
  EXPECT_EQ(0, munmap(memory, page));
}

TEST_F(Regions, MappingBeyondTheEndOfItsFileIsRefused) {
  Rule("MR-05");
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const int file = memfd_create("region", 0);
  ASSERT_GE(file, 0);
  ASSERT_EQ(0, ftruncate(file, static_cast<off_t>(page)));
  void* memory = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ASSERT_NE(MAP_FAILED, memory);
  ExpectRefused(memory, 2 * page, IBV_ACCESS_LOCAL_WRITE, EFAULT);
  Register(pd_.get(), {static_cast<std::byte*>(memory), page});
  EXPECT_EQ(0, munmap(memory, 2 * page));
  close(file);
}

TEST_F(Regions, PdCannotBeDeallocatedWhileARegionUsesIt) {
  Rule("DEV-11");
  Pd pd = MakePd(device_);
  Mr mr = Register(pd.get(), {source_.data(), 64});
  EXPECT_EQ(EBUSY, ibv_dealloc_pd(pd.get()));
  Mr second = Register(pd.get(), {source_.data(), 64});
  EXPECT_EQ(EBUSY, ibv_dealloc_pd(pd.get())) << "a refused dealloc leaves the PD usable";
  mr.reset();
  second.reset();
  EXPECT_EQ(0, ibv_dealloc_pd(pd.release()));
}

TEST_F(Regions, PdKnowsItsContext) {
  Rule("DEV-11");
  EXPECT_EQ(device_.context(), pd_->context);
}

TEST_F(Regions, OverlappingRegionsHaveTheirOwnRights) {
  Rule("MR-06");
  const Mr read_only =
      Register(pd_.get(), {sink_.data(), 4096}, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
  const Link link = MakeLink();
  source_.Fill(1, 0, 100);
  SendAndExpectSuccess(link.requester.get(), Write(sink_.mr(), sink_.address()));
  EXPECT_TRUE(sink_.Holds(1, 0, 100));
  ASSERT_EQ(0, PostSend(link.requester.get(), Write(read_only.get(), sink_.address())));
  EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, PollOne(device_, requester_cq_.get()).status);
}

TEST_F(Regions, ManyRegionsComeAndGo) {
  Rule("MR-06");
  const Link link = MakeLink();
  for (uint32_t round = 0; round < 300; ++round) {
    const Mr mr = Register(pd_.get(), {sink_.data(), 4096});
    source_.Fill(round, 0, 100);
    SendAndExpectSuccess(link.requester.get(), Write(mr.get(), sink_.address(round)));
    EXPECT_TRUE(sink_.Holds(round, round, 100));
  }
}

TEST_F(Regions, ReregisteringRefusesWrongInput) {
  Rule("MR-07");
  const Mr mr = Register(pd_.get(), {sink_.data(), 4096});
  const ibv_mr before = *mr;
  const auto refused = [&](int flags, void* address, size_t length, int access) {
    errno = 0;
    EXPECT_EQ(IBV_REREG_MR_ERR_INPUT,
              ibv_rereg_mr(mr.get(), flags, pd_.get(), address, length, access));
    EXPECT_EQ(EINVAL, errno);
  };
  refused(1 << 3, sink_.data(), 4096, 0);
  refused(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, 4096, 0);
  refused(IBV_REREG_MR_CHANGE_TRANSLATION, sink_.data(), 0, 0);
  refused(IBV_REREG_MR_CHANGE_PD, nullptr, 0, IBV_ACCESS_LOCAL_WRITE);
  EXPECT_EQ(before.addr, mr->addr);
  EXPECT_EQ(before.length, mr->length);
  EXPECT_EQ(before.rkey, mr->rkey);
  const Link link = MakeLink();
  SendAndExpectSuccess(link.requester.get(), Write(mr.get(), sink_.address()));
}

TEST_F(Regions, ReregisteringChangesPlaceAndRights) {
  Rule("MR-09");
  const Mr mr = Register(pd_.get(), {sink_.data(), 4096}, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_EQ(0, ibv_rereg_mr(mr.get(), IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS,
                            nullptr, sink_.data() + 8192, 1000, kAllAccess));
  EXPECT_EQ(sink_.data() + 8192, mr->addr);
  EXPECT_EQ(1000u, mr->length);
  const Link link = MakeLink();
  source_.Fill(1, 0, 100);
  SendAndExpectSuccess(link.requester.get(), Write(mr.get(), sink_.address(8192)));
  EXPECT_TRUE(sink_.Holds(1, 8192, 100));
  ASSERT_EQ(0, PostSend(link.requester.get(), Write(mr.get(), sink_.address())));
  EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, PollOne(device_, requester_cq_.get()).status);
}

TEST_F(Regions, ReregisteringChangesTheProtectionDomain) {
  Rule("MR-09");
  const Pd other = MakePd(device_);
  const Mr mr = Register(other.get(), {sink_.data(), 4096});
  ASSERT_EQ(0, ibv_rereg_mr(mr.get(), IBV_REREG_MR_CHANGE_PD, pd_.get(), nullptr, 0, 0));
  EXPECT_EQ(pd_.get(), mr->pd);
  const Link link = MakeLink();
  SendAndExpectSuccess(link.requester.get(), Write(mr.get(), sink_.address()));
}

// Checks that are the kernel's: libibverbs reports them with a code of its own, and the region may
// only be deregistered.
TEST_F(Regions, ReregisteringThatTheDeviceRefusesSaysSo) {
  Rule("MR-08");
  const auto refused = [&](int flags, void* address, size_t length, int access) {
    Mr mr = Register(pd_.get(), {sink_.data(), 4096});
    errno = 0;
    const int result = ibv_rereg_mr(mr.get(), flags, pd_.get(), address, length, access);
    EXPECT_TRUE(result == IBV_REREG_MR_ERR_CMD || result == IBV_REREG_MR_ERR_DONT_FORK_NEW)
        << result;
    EXPECT_NE(0, errno);
    EXPECT_EQ(0, ibv_dereg_mr(mr.release()));
  };
  refused(IBV_REREG_MR_CHANGE_ACCESS, nullptr, 0, IBV_ACCESS_REMOTE_WRITE);
  refused(IBV_REREG_MR_CHANGE_ACCESS, nullptr, 0, IBV_ACCESS_LOCAL_WRITE | 1 << 18);
  refused(0, nullptr, 0, 0);
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* hole = mmap(nullptr, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(MAP_FAILED, hole);
  ASSERT_EQ(0, munmap(hole, page));
  refused(IBV_REREG_MR_CHANGE_TRANSLATION, hole, page, 0);
}

TEST_F(Regions, OnDemandPagingIsRefusedWhereTheDeviceHasNone) {
  Rule("MR-04");
  ibv_device_attr_ex attributes{};
  ASSERT_EQ(0, ibv_query_device_ex(device_.context(), nullptr, &attributes));
  if ((attributes.odp_caps.general_caps & IBV_ODP_SUPPORT) != 0) GTEST_SKIP() << "it has it";
  errno = 0;
  EXPECT_EQ(nullptr, ibv_reg_mr(pd_.get(), source_.data(), 4096,
                                IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND));
  EXPECT_TRUE(errno == EOPNOTSUPP || errno == EINVAL) << errno;
}

}  // namespace
}  // namespace simhca::conformance
