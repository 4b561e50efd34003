#include <unistd.h>

#include <cstdio>

#include "tests/conformance/fixture.h"

namespace simhca::conformance {
namespace {

// What the simulated device costs; on hardware most of it would be the adapter's own memory.
class SimulatorOnlyScale : public SrqTest {
 protected:
  static size_t ResidentBytes() {
    size_t total = 0, resident = 0;
    std::FILE* file = std::fopen("/proc/self/statm", "r");
    if (file == nullptr) return 0;
    EXPECT_EQ(2, std::fscanf(file, "%zu %zu", &total, &resident));
    std::fclose(file);
    return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  }
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr size_t kShadowFactor = 8;  // the sanitizers' own memory
#else
constexpr size_t kShadowFactor = 1;
#endif

TEST_F(SimulatorOnlyScale, AThousandQueuePairsOnOneSrqStayBelow64MiB) {
  constexpr int kQueuePairs = 1000;
  constexpr uint32_t kSrqEntries = 4096;
  const size_t before = ResidentBytes();
  CreateSrq(kSrqEntries);
  ASSERT_EQ(0, P(kSrqEntries));
  std::vector<Link> links;
  for (int i = 0; i < kQueuePairs; ++i) {
    QpOptions requester = RequesterOptions();
    requester.cap = {16, 1, 1, 1, 0};
    QpOptions responder = ResponderOptions(srq_.get());
    responder.cap = {16, 0, 1, 0, 0};
    links.push_back({MakeQp(device_, pd_.get(), requester), MakeQp(device_, pd_.get(), responder)});
    Connect(device_, links.back().requester.get(), links.back().responder.get());
  }
  for (const Link& link : links) ASSERT_EQ(1u, SendAndReceive(link, 1).size());
  // Twice as many queue pairs as the bound is for: both ends are here.
  EXPECT_LT(ResidentBytes() - before, 2 * kShadowFactor * (size_t{64} << 20));
  std::printf("%d connections: %zu KiB resident\n", kQueuePairs, (ResidentBytes() - before) >> 10);
}

}  // namespace
}  // namespace simhca::conformance
