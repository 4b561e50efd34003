// On the simulator's route a handle that is not one of its own is refused, in the form that the
// verb's callers look at, and never read.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>

#include "tests/unit/shim_load_test/program.h"

namespace simhca {
namespace {

// How a verb says EINVAL (or, in node IBVERBS_1.0, ENOSYS).
enum class Form { kErrno, kNull, kMinusOne, kNegativeErrno, kZero, kNothing };

struct Verb {
  const char* name;
  Form form;
};

constexpr Verb kVerbs[] = {
    {"ibv_get_device_name", Form::kNull},
    {"ibv_get_device_guid", Form::kZero},
    {"ibv_get_device_index", Form::kMinusOne},
    {"ibv_open_device", Form::kNull},
    {"ibv_close_device", Form::kMinusOne},
    {"ibv_query_device", Form::kErrno},
    {"ibv_query_port", Form::kErrno},
    {"ibv_query_gid", Form::kMinusOne},
    {"_ibv_query_gid_ex", Form::kErrno},
    {"_ibv_query_gid_table", Form::kNegativeErrno},
    {"ibv_query_gid_type", Form::kMinusOne},
    {"ibv_query_pkey", Form::kMinusOne},
    {"ibv_get_pkey_index", Form::kMinusOne},
    {"ibv_alloc_pd", Form::kNull},
    {"ibv_dealloc_pd", Form::kErrno},
    {"ibv_import_pd", Form::kNull},
    {"ibv_unimport_pd", Form::kNothing},
    {"ibv_reg_mr", Form::kNull},
    {"ibv_reg_mr_iova", Form::kNull},
    {"ibv_reg_mr_iova2", Form::kNull},
    {"ibv_reg_dmabuf_mr", Form::kNull},
    {"ibv_rereg_mr", Form::kMinusOne},
    {"ibv_dereg_mr", Form::kErrno},
    {"ibv_import_mr", Form::kNull},
    {"ibv_unimport_mr", Form::kNothing},
    {"ibv_import_dm", Form::kNull},
    {"ibv_unimport_dm", Form::kNothing},
    {"ibv_create_comp_channel", Form::kNull},
    {"ibv_destroy_comp_channel", Form::kErrno},
    {"ibv_create_cq", Form::kNull},
    {"ibv_resize_cq", Form::kErrno},
    {"ibv_destroy_cq", Form::kErrno},
    {"ibv_get_cq_event", Form::kMinusOne},
    {"ibv_ack_cq_events", Form::kNothing},
    {"ibv_get_async_event", Form::kMinusOne},
    {"ibv_create_srq", Form::kNull},
    {"ibv_modify_srq", Form::kErrno},
    {"ibv_query_srq", Form::kErrno},
    {"ibv_destroy_srq", Form::kErrno},
    {"ibv_create_qp", Form::kNull},
    {"ibv_query_qp", Form::kErrno},
    {"ibv_modify_qp", Form::kErrno},
    {"ibv_destroy_qp", Form::kErrno},
    {"ibv_query_qp_data_in_order", Form::kZero},
    {"ibv_set_ece", Form::kErrno},
    {"ibv_query_ece", Form::kErrno},
    {"ibv_attach_mcast", Form::kErrno},
    {"ibv_detach_mcast", Form::kErrno},
    {"ibv_create_ah", Form::kNull},
    {"ibv_init_ah_from_wc", Form::kMinusOne},
    {"ibv_create_ah_from_wc", Form::kNull},
    {"ibv_destroy_ah", Form::kErrno},
    {"ibv_resolve_eth_l2_from_gid", Form::kNegativeErrno},
};

using AnyVerb = intptr_t(const void*, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t);

// Calls the verb on `object` and checks that it says `error` in its form.
void ExpectRefusal(void* function, const Verb& verb, const void* object, int error) {
  ASSERT_NE(function, nullptr) << verb.name;
  errno = 0;
  const intptr_t result = reinterpret_cast<AnyVerb*>(function)(object, 0, 0, 0, 0, 0);
  const int number = static_cast<int>(result);
  switch (verb.form) {
    case Form::kErrno:
      EXPECT_EQ(number, error) << verb.name;
      break;
    case Form::kNull:
      EXPECT_EQ(result, 0) << verb.name;
      EXPECT_EQ(errno, error) << verb.name;
      break;
    case Form::kMinusOne:
      EXPECT_EQ(number, -1) << verb.name;
      EXPECT_EQ(errno, error) << verb.name;
      break;
    case Form::kNegativeErrno:
      EXPECT_EQ(number, -error) << verb.name;
      break;
    case Form::kZero:
      EXPECT_EQ(result, 0) << verb.name;
      break;
    case Form::kNothing:
      break;
  }
}

class ShimRefusals : public ::testing::Test {
 protected:
  void SetUp() override {
    shim_ = dlopen(PreloadObject().c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(shim_, nullptr) << dlerror();
    foreign_ = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(foreign_, MAP_FAILED);
  }

  void TearDown() override {
    munmap(foreign_, 4096);
    dlclose(shim_);
  }

  void* shim_ = nullptr;
  void* foreign_ = nullptr;  // reading through it is fatal
};

TEST_F(ShimRefusals, NullHandlesAreRefusedInTheVerbsOwnForm) {
  for (const Verb& verb : kVerbs) ExpectRefusal(dlsym(shim_, verb.name), verb, nullptr, EINVAL);
}

TEST_F(ShimRefusals, ForeignHandlesAreRefusedUnread) {
  for (const Verb& verb : kVerbs) ExpectRefusal(dlsym(shim_, verb.name), verb, foreign_, EINVAL);
  auto* to_qp_ex = reinterpret_cast<decltype(&ibv_qp_to_qp_ex)>(dlsym(shim_, "ibv_qp_to_qp_ex"));
  EXPECT_EQ(to_qp_ex(static_cast<ibv_qp*>(foreign_)), nullptr);
}

TEST_F(ShimRefusals, EventsOfForeignObjectsAreLeftAlone) {
  auto* acknowledge =
      reinterpret_cast<decltype(&ibv_ack_async_event)>(dlsym(shim_, "ibv_ack_async_event"));
  ibv_async_event event{};
  for (int type = IBV_EVENT_CQ_ERR; type <= IBV_EVENT_WQ_FATAL; ++type) {
    event.event_type = static_cast<ibv_event_type>(type);
    event.element.qp = static_cast<ibv_qp*>(foreign_);
    acknowledge(&event);
    EXPECT_EQ(event.element.qp, foreign_);
  }
}

TEST_F(ShimRefusals, CommandDescriptorsOfOthersAreNotImported) {
  auto* import_device =
      reinterpret_cast<decltype(&ibv_import_device)>(dlsym(shim_, "ibv_import_device"));
  for (int fd : {-1, 0, 1'000'000}) {
    errno = 0;
    EXPECT_EQ(import_device(fd), nullptr);
    EXPECT_EQ(errno, EINVAL);
  }
}

TEST_F(ShimRefusals, EntriesOfTheOldestVersionFailWithEnosys) {
  int found = 0;
  for (const Verb& verb : kVerbs) {
    void* old = dlvsym(shim_, verb.name, "IBVERBS_1.0");
    if (old == nullptr || old == dlsym(shim_, verb.name)) continue;
    ++found;
    ExpectRefusal(old, verb, foreign_, ENOSYS);
  }
  EXPECT_EQ(found, 30);  // all but ibv_get_device_list, ibv_free_device_list, ibv_ack_async_event
}

}  // namespace
}  // namespace simhca
