// The verbs that only convert values, compared with the machine's own libibverbs.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <infiniband/sa.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>

#include <cstring>
#include <fstream>
#include <random>
#include <string>

#include "tests/unit/shim_load_test/program.h"

namespace simhca {
namespace {

// One function in the shim and in the real library.
template <typename Function>
struct Pair {
  Function* shim;
  Function* real;
};

class ShimHelpers : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    shim_ = dlopen(PreloadObject().c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(shim_, nullptr) << dlerror();
    real_ = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(real_, nullptr) << dlerror();
  }

  template <typename Function>
  static Pair<Function> Find(const char* name) {
    Pair<Function> pair{reinterpret_cast<Function*>(dlsym(shim_, name)),
                        reinterpret_cast<Function*>(dlsym(real_, name))};
    EXPECT_NE(pair.shim, nullptr) << name;
    EXPECT_NE(pair.real, nullptr) << name;
    EXPECT_NE(pair.shim, pair.real) << name;
    return pair;
  }

  static void ExpectSameNumbers(const char* name, int first, int last) {
    const auto pair = Find<int(int)>(name);
    for (int value = first; value <= last; ++value) {
      ASSERT_EQ(pair.shim(value), pair.real(value)) << name << "(" << value << ")";
    }
  }

  static void ExpectSameTexts(const char* name) {
    const auto pair = Find<const char*(int)>(name);
    for (int value = -300; value <= 300; ++value) {
      ASSERT_STREQ(pair.shim(value), pair.real(value)) << name << "(" << value << ")";
    }
  }

  // Converts random bytes with both; the targets start out the same, so that a member left alone
  // by one of them shows.
  template <typename To, typename From>
  static void ExpectSameCopies(const char* name) {
    const auto pair = Find<void(To*, From*)>(name);
    std::mt19937 random(7);
    for (int round = 0; round < 100; ++round) {
      From from;
      for (size_t i = 0; i < sizeof(from); ++i) {
        reinterpret_cast<uint8_t*>(&from)[i] = static_cast<uint8_t>(random());
      }
      To by_shim;
      To by_real;
      std::memset(&by_shim, round, sizeof(To));
      std::memset(&by_real, round, sizeof(To));
      pair.shim(&by_shim, &from);
      pair.real(&by_real, &from);
      ASSERT_EQ(std::memcmp(&by_shim, &by_real, sizeof(To)), 0) << name;
    }
  }

  static void* shim_;
  static void* real_;
};

void* ShimHelpers::shim_ = nullptr;
void* ShimHelpers::real_ = nullptr;

TEST_F(ShimHelpers, RateConversionsGiveTheLibrarysValuesForAllInputs) {
  ExpectSameNumbers("ibv_rate_to_mult", -300, 300);
  ExpectSameNumbers("ibv_rate_to_mbps", -300, 300);
  ExpectSameNumbers("mult_to_ibv_rate", -300, 10000);
  ExpectSameNumbers("mbps_to_ibv_rate", -300, 2'000'000);
}

TEST_F(ShimHelpers, NamesOfEnumValuesAreTheLibrarysForAllInputs) {
  ExpectSameTexts("ibv_node_type_str");
  ExpectSameTexts("ibv_port_state_str");
  ExpectSameTexts("ibv_event_type_str");
  ExpectSameTexts("ibv_wc_status_str");
}

TEST_F(ShimHelpers, KernelStructuresAreConvertedAsTheLibraryDoes) {
  ExpectSameCopies<ibv_ah_attr, ib_uverbs_ah_attr>("ibv_copy_ah_attr_from_kern");
  ExpectSameCopies<ibv_qp_attr, ib_uverbs_qp_attr>("ibv_copy_qp_attr_from_kern");
  ExpectSameCopies<ibv_sa_path_rec, ib_user_path_rec>("ibv_copy_path_rec_from_kern");
  ExpectSameCopies<ib_user_path_rec, ibv_sa_path_rec>("ibv_copy_path_rec_to_kern");
}

TEST_F(ShimHelpers, SysfsFilesAreReadAsTheLibraryDoes) {
  const auto path = Find<const char*()>("ibv_get_sysfs_path");
  EXPECT_STREQ(path.shim(), path.real());

  const auto read = Find<int(const char*, const char*, char*, size_t)>("ibv_read_sysfs_file");
  const std::string folder = ::testing::TempDir();
  for (const std::string text : {"", "\n", "abc", "abc\n", "ab\ncd\n\n", "abcdefg", "abcdefg\n",
                                 "abcdefgh", "abcdefgh\n", "abcdefghi"}) {
    std::ofstream(folder + "/attribute") << text;
    char by_shim[8] = {'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x'};
    char by_real[8] = {'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x'};
    const int shim_result = read.shim(folder.c_str(), "attribute", by_shim, sizeof(by_shim));
    EXPECT_EQ(shim_result, read.real(folder.c_str(), "attribute", by_real, sizeof(by_real)))
        << "'" << text << "'";
    if (shim_result > 0) {
      EXPECT_EQ(std::string(by_shim, sizeof(by_shim)), std::string(by_real, sizeof(by_real)))
          << "'" << text << "'";
    }
  }
  char buffer[8];
  EXPECT_EQ(read.shim(folder.c_str(), "no_such_attribute", buffer, sizeof(buffer)), -1);
  EXPECT_EQ(read.real(folder.c_str(), "no_such_attribute", buffer, sizeof(buffer)), -1);
}

}  // namespace
}  // namespace simhca
