#ifndef SIMHCA_TESTS_CONFORMANCE_OBJECTS_H_
#define SIMHCA_TESTS_CONFORMANCE_OBJECTS_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tests/conformance/device.h"

// Owners of verbs objects, and the few steps that every test is made of.

namespace simhca::conformance {

// Destroys an object and makes a refusal a failure of the test.
struct Destroyer {
  void operator()(ibv_pd* pd) const;
  void operator()(ibv_mr* mr) const;
  void operator()(ibv_comp_channel* channel) const;
  void operator()(ibv_cq* cq) const;
  void operator()(ibv_srq* srq) const;
  void operator()(ibv_qp* qp) const;
};
using Pd = std::unique_ptr<ibv_pd, Destroyer>;
using Mr = std::unique_ptr<ibv_mr, Destroyer>;
using Channel = std::unique_ptr<ibv_comp_channel, Destroyer>;
using Cq = std::unique_ptr<ibv_cq, Destroyer>;
using Srq = std::unique_ptr<ibv_srq, Destroyer>;
using Qp = std::unique_ptr<ibv_qp, Destroyer>;

inline constexpr int kAllAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

Pd MakePd(const Device& device);
Mr Register(ibv_pd* pd, std::span<std::byte> memory, int access = kAllAccess);
// A channel whose descriptor does not block.
Channel MakeChannel(const Device& device);
Cq MakeCq(const Device& device, int entries, ibv_comp_channel* channel = nullptr,
          void* context = nullptr);
// `granted`, if given, gets the attributes that creation returned.
Srq MakeSrq(ibv_pd* pd, uint32_t max_wr, uint32_t max_sge = 1, ibv_srq_attr* granted = nullptr);

struct QpOptions {
  ibv_cq* send_cq = nullptr;
  ibv_cq* receive_cq = nullptr;
  ibv_srq* srq = nullptr;
  ibv_qp_cap cap = {64, 64, 4, 4, 64};
  bool signal_all = false;
  uint64_t send_ops = 0;  // not 0: an extended queue pair with these operations
};
// An RC queue pair in RESET.  `granted`, if given, gets the capabilities that creation returned.
Qp MakeQp(const Device& device, ibv_pd* pd, const QpOptions& options,
          ibv_qp_cap* granted = nullptr);

// Registered memory filled with kFiller.
class Buffer {
 public:
  static constexpr std::byte kFiller{0xee};

  Buffer(ibv_pd* pd, size_t size, int access = kAllAccess);

  std::byte* data() { return memory_.data(); }
  size_t size() const { return memory_.size(); }
  uint64_t address(size_t offset = 0) const {
    return reinterpret_cast<uintptr_t>(memory_.data()) + offset;
  }
  uint32_t lkey() const { return mr_->lkey; }
  uint32_t rkey() const { return mr_->rkey; }
  ibv_mr* mr() const { return mr_.get(); }
  ibv_sge Sge(size_t offset, size_t length) const {
    return {address(offset), static_cast<uint32_t>(length), lkey()};
  }

  // Only this part is registered from now on.
  void RegisterOnly(ibv_pd* pd, size_t offset, size_t length);

  // The pattern of `seed`: bytes that differ by seed and by place.
  void Fill(uint32_t seed, size_t offset, size_t length);
  // `from`: the place within the pattern of the byte at `offset`.
  bool Holds(uint32_t seed, size_t offset, size_t length, size_t from = 0) const;
  // No byte of the range was written since the last Clear.
  bool Untouched(size_t offset, size_t length) const;
  void Clear();

 private:
  std::vector<std::byte> memory_;
  Mr mr_;
};

struct ConnectOptions {
  ibv_mtu mtu = IBV_MTU_1024;
  uint8_t rnr_retry = 7;
  uint8_t min_rnr_timer = 12;  // 0.64 ms
  uint8_t timeout = 14;        // 67 ms
  uint8_t retry_count = 7;
  uint32_t psn = 0xfffff0;  // soon wraps around
  int access = kAllAccess;
  uint8_t rd_atomic = 4;
};

// Attributes for each step of a connection to `peer` on the same device, all fields valid.
ibv_qp_attr ConnectionAttributes(const Device& device, uint32_t peer_qpn,
                                 const ConnectOptions& options);
inline constexpr int kInitMask =
    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
inline constexpr int kRtrMask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
inline constexpr int kRtsMask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;

// Takes `qp` from its present state RESET up to `state` (INIT, RTR or RTS).
void BringTo(const Device& device, ibv_qp* qp, ibv_qp_state state, ibv_qp_attr attributes);
void Connect(const Device& device, ibv_qp* a, ibv_qp* b, const ConnectOptions& options = {});
// A modify that names only the state: 0 or errno.
int Move(ibv_qp* qp, ibv_qp_state state);
ibv_qp_state StateOf(ibv_qp* qp);

// A send work request.
struct SendRequest {
  uint64_t wr_id = 0;
  std::vector<ibv_sge> segments = {};
  ibv_wr_opcode opcode = IBV_WR_SEND;
  unsigned flags = IBV_SEND_SIGNALED;
  uint32_t imm_data = 0;  // as it travels
  uint64_t remote_address = 0;
  uint32_t rkey = 0;
};
// The work request that points at the segments of `request`.
ibv_send_wr MakeSendWr(SendRequest& request);
int PostSend(ibv_qp* qp, SendRequest request);
int PostReceive(ibv_qp* qp, uint64_t wr_id, std::vector<ibv_sge> segments);
int PostSrqReceive(ibv_srq* srq, uint64_t wr_id, std::vector<ibv_sge> segments);

// A chain of receives, each with the same segments, wr_ids from `first_id` on.
class ReceiveChain {
 public:
  ReceiveChain(size_t count, std::vector<ibv_sge> segments, uint64_t first_id = 0);
  ibv_recv_wr* head() { return requests_.data(); }
  ibv_recv_wr& operator[](size_t i) { return requests_[i]; }

 private:
  std::vector<ibv_sge> segments_;
  std::vector<ibv_recv_wr> requests_;
};

// Polls until `count` completions have come or `within` of device time has passed.
std::vector<ibv_wc> Poll(const Device& device, ibv_cq* cq, size_t count,
                         Nanoseconds within = kPatience);
// The single next completion; one of status IBV_WC_GENERAL_ERR and a failed test if none comes.
ibv_wc PollOne(const Device& device, ibv_cq* cq, Nanoseconds within = kPatience);
// Nothing completes within `window`.
bool StaysEmpty(const Device& device, ibv_cq* cq, Nanoseconds window = kQuiet);

// Next completion event of `channel`, not yet acknowledged; null if none comes in time.
ibv_cq* NextCqEvent(const Device& device, ibv_comp_channel* channel, Nanoseconds within,
                    void** context = nullptr);

}  // namespace simhca::conformance

#endif  // SIMHCA_TESTS_CONFORMANCE_OBJECTS_H_
