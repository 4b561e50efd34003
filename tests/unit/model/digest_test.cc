// The same calls under virtual time give the same figures on every machine and in every build: those
// in digest.txt.  Where a change of the model is meant to change them:
//
//   bazel run //tests/unit/model:digest_test -- --print > tests/unit/model/digest.txt

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include "bench/model/scenario.h"
#include "sim/profiles/profile_loader.h"

namespace simhca::bench {
namespace {

std::string Line(const std::string& name, const Scenario& scenario) {
  const ScenarioResult result = Run(scenario);
  std::ostringstream line;
  line << name << ": ";
  if (!result.error.empty()) {
    line << result.error;
  } else {
    line << "picoseconds " << result.elapsed << ", first " << result.latency << ", reads "
         << result.dma_reads << ", writes " << result.dma_writes << ", tlps " << result.tlps
         << ", misses " << result.cache_misses << ", rnr " << result.rnr_naks << ", limit "
         << result.limit_events;
  }
  line << '\n';
  return line.str();
}

std::string Digest() {
  std::string digest;
  for (const std::string_view name : BuiltinProfileNames()) {
    Scenario scenario;
    scenario.profile = *FindProfile(name).profile;
    scenario.warm_up = 200;
    scenario.messages = 2'000;
    scenario.qps = 4;
    const std::string profile(name);
    digest += Line(profile + " rq", scenario);
    if (scenario.profile.limits.max_srq == 0) continue;
    scenario.srq = true;
    digest += Line(profile + " srq", scenario);
    scenario.message_bytes = 4096;
    scenario.list_order = SrqListOrder::kCompletionOrder;
    digest += Line(profile + " srq, completion order, 4 KiB", scenario);
    scenario.watermark = 32;
    scenario.refill_latency = 20 * kMicrosecond;
    digest += Line(profile + " srq, watermark", scenario);
    scenario.watermark = 0;
    scenario.senders = 9;
    digest += Line(profile + " incast", scenario);
  }
  return digest;
}

TEST(VirtualTime, GivesTheStoredDigest) {
  std::ifstream file("tests/unit/model/digest.txt");
  ASSERT_TRUE(file.is_open());
  std::stringstream stored;
  stored << file.rdbuf();
  EXPECT_EQ(Digest(), stored.str());
}

}  // namespace
}  // namespace simhca::bench

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--print") == 0) {
    std::fputs(simhca::bench::Digest().c_str(), stdout);
    return 0;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
