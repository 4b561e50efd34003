#ifndef SIMHCA_TESTS_CONFORMANCE_FIXTURE_H_
#define SIMHCA_TESTS_CONFORMANCE_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/conformance/objects.h"

// What most tests start from.

namespace simhca::conformance {

// Names the rows of rules.md that the running test shows ("CQ-03, CQ-04"); the report repeats them.
inline void Rule(const char* ids) { testing::Test::RecordProperty("rule", ids); }

// Two connected RC queue pairs: one that a test requests from, one that answers.
struct Link {
  Qp requester;
  Qp responder;
};

// A refusal for which providers differ between EINVAL and ENOMEM; EINVAL is the recommended one.
void ExpectRefusedPost(const Device& device, int result);

// Statuses of `completions` in order, for whole-sequence comparisons.
std::vector<ibv_wc_status> StatusesOf(const std::vector<ibv_wc>& completions);
std::vector<uint64_t> IdsOf(const std::vector<ibv_wc>& completions);

// A device with a protection domain, a CQ for each side and a buffer for each side.
class RcTest : public testing::Test {
 protected:
  static constexpr size_t kBufferBytes = 64 * 1024;

  RcTest();

  // Options for one side's queue pair.
  QpOptions RequesterOptions() const;
  QpOptions ResponderOptions(ibv_srq* srq = nullptr) const;
  Link MakeLink(const ConnectOptions& options = {}, ibv_srq* srq = nullptr);

  // Sends `segments` and expects success.
  void SendAndExpectSuccess(ibv_qp* qp, SendRequest request);

  // Notes a duration of the device clock in the report.
  void Record(const std::string& what, Nanoseconds duration);

  Device device_;
  Pd pd_;
  Cq requester_cq_;
  Cq responder_cq_;
  Buffer source_;
  Buffer sink_;
};

// The vocabulary of the table of SRQ cases: P(n) posts, S(n) sends.
class SrqTest : public RcTest {
 protected:
  static constexpr size_t kSlotBytes = 32;

  // Creates the SRQ under test; `capacity_` becomes the max_wr that creation returned.
  void CreateSrq(uint32_t max_wr, uint32_t max_sge = 1);
  ibv_srq_attr Query() const;
  int SetLimit(uint32_t limit);
  int Resize(uint32_t max_wr);

  // Posts `count` receives with the next wr_ids one by one; stops at a refusal and returns it.
  int P(uint32_t count);
  // Sends `count` messages and waits until the requester has seen them succeed.
  void S(ibv_qp* requester, uint32_t count);
  // Takes exactly `count` successful receive completions; returns their wr_ids.
  std::vector<uint64_t> Receive(size_t count);
  // S on `link` and the receives that belong to it.
  std::vector<uint64_t> SendAndReceive(const Link& link, uint32_t count);
  // How many messages the SRQ still takes: sends on a link of its own until one meets no receive.
  uint32_t CountReceivable();
  // Every entry is somewhere: `completed` of capacity_ posted ones have completed and the rest can
  // still be received.  Afterwards the SRQ, then empty, takes capacity_ entries and not one more.
  void ExpectNothingLost(uint32_t completed);
  // The limit events of the SRQ among all that come within kQuiet; any other is a failure.
  size_t LimitEvents();

  Srq srq_;
  uint32_t capacity_ = 0;
  uint64_t next_id_ = 0;
};

// Small inputs that went wrong in real stacks; each test begins with its row in the table of cases.
class SrqCases : public SrqTest {};
// The same for rows that concern queue pairs without an SRQ.
class RcCases : public RcTest {};

}  // namespace simhca::conformance

#endif  // SIMHCA_TESTS_CONFORMANCE_FIXTURE_H_
