#include "verbs_shim/driver/qp_sizes.h"

#include <algorithm>
#include <bit>

#include "sim/queues/mlx5/layout.h"
#include "verbs_shim/driver/ring_memory.h"

namespace simhca::driver {

namespace {

constexpr uint32_t kSegment = 16;
constexpr uint32_t kControl = 16;
constexpr uint32_t kRemoteAddress = 16;
constexpr uint32_t kAtomic = 16;
constexpr uint32_t kDatagram = 48;
constexpr uint32_t kXrc = 16;
constexpr uint32_t kInlineHeader = 4;
// UMR control, memory key context and pointer, for binding windows.
constexpr uint32_t kUmr = 48 + 64 + 64;

// Positions in a ring are counted in 16 bits.
constexpr uint64_t kMaxRingUnits = 32768;

// The smallest receive ring of the mlx5 driver.
constexpr uint32_t kMlx5MinReceiveRing = 64;

constexpr uint32_t AlignUp(uint32_t value, uint32_t unit) {
  return (value + unit - 1) / unit * unit;
}

// Bytes of a send WQE before its data segments, in the mlx5 driver: for the largest operation
// that may be posted.
uint32_t Mlx5Overhead(ibv_qp_type type, uint64_t ops) {
  uint32_t overhead = kControl;
  if (ops == 0) {
    overhead += type == IBV_QPT_UD ? 0 : kUmr;
  } else if ((ops & (IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV)) != 0) {
    overhead += kUmr;
  } else if ((ops & (IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)) !=
             0) {
    overhead += kRemoteAddress + kAtomic;
  } else if ((ops & (IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                     IBV_QP_EX_WITH_RDMA_READ)) != 0) {
    overhead += kRemoteAddress;
  }
  if (type == IBV_QPT_UD) overhead += kDatagram;
  if (type == IBV_QPT_XRC_SEND) overhead += kXrc;
  return overhead;
}

uint32_t ExactOverhead(ibv_qp_type type) {
  if (type == IBV_QPT_UD) return kControl + kDatagram;
  return kControl + kRemoteAddress + kAtomic + (type == IBV_QPT_XRC_SEND ? kXrc : 0);
}

const char* SendSizes(const DeviceProfile& profile, ibv_qp_type type, uint64_t ops,
                      const ibv_qp_cap& cap, QpSizes* sizes) {
  const bool mlx5 = profile.features.rounding == Rounding::kMlx5;
  const uint32_t overhead = mlx5 ? Mlx5Overhead(type, ops) : ExactOverhead(type);
  const uint32_t inline_bytes =
      cap.max_inline_data == 0 ? 0 : AlignUp(kInlineHeader + cap.max_inline_data, kSegment);
  const uint32_t wqe = AlignUp(overhead + std::max(kSegment * cap.max_send_sge, inline_bytes),
                               mlx5::kSendBlockBytes);
  if (wqe > AlignUp(mlx5::kMaxSendWqeBytes, mlx5::kSendBlockBytes)) {
    return "a send WQE of that many SGEs or inline bytes is above 1008 bytes";
  }
  sizes->granted.max_send_sge = cap.max_send_sge;
  sizes->granted.max_inline_data = cap.max_inline_data;
  if (cap.max_send_wr == 0) return nullptr;
  const uint64_t bytes = std::bit_ceil(uint64_t{cap.max_send_wr} * wqe);
  if (bytes / mlx5::kSendBlockBytes > kMaxRingUnits) {
    return "a send ring of that many WRs and SGEs is above 32768 blocks of 64 bytes";
  }
  sizes->send_blocks = static_cast<uint32_t>(bytes / mlx5::kSendBlockBytes);
  sizes->granted.max_send_wr = mlx5 ? static_cast<uint32_t>(bytes / wqe) : cap.max_send_wr;
  if (mlx5) {
    sizes->granted.max_send_sge = std::min((wqe - overhead) / kSegment, profile.limits.max_sge);
    sizes->granted.max_inline_data = wqe - overhead - kInlineHeader;
  }
  return nullptr;
}

const char* ReceiveSizes(const DeviceProfile& profile, const ibv_qp_cap& cap, QpSizes* sizes) {
  if (cap.max_recv_wr == 0) {
    sizes->granted.max_recv_sge = cap.max_recv_sge;
    return nullptr;
  }
  sizes->receive_stride =
      static_cast<uint32_t>(std::bit_ceil(uint64_t{kSegment} * std::max(cap.max_recv_sge, 1u)));
  sizes->receive_entries = static_cast<uint32_t>(std::bit_ceil(cap.max_recv_wr));
  if (profile.features.rounding == Rounding::kMlx5) {
    sizes->receive_entries =
        std::max(sizes->receive_entries, kMlx5MinReceiveRing / sizes->receive_stride);
    sizes->granted.max_recv_wr = sizes->receive_entries;
    sizes->granted.max_recv_sge = sizes->receive_stride / kSegment;
  } else {
    sizes->granted.max_recv_wr = cap.max_recv_wr;
    sizes->granted.max_recv_sge = cap.max_recv_sge;
  }
  return sizes->receive_entries > kMaxRingUnits ? "max_recv_wr is above 32768" : nullptr;
}

}  // namespace

const char* ComputeQpSizes(const DeviceProfile& profile, ibv_qp_type type, bool has_srq,
                           uint64_t send_ops, const ibv_qp_cap& cap, QpSizes* sizes) {
  const DeviceProfile::Limits& limits = profile.limits;
  if (cap.max_send_wr > limits.max_qp_wr) return "max_send_wr is above max_qp_wr";
  if (cap.max_send_sge > limits.max_sge) return "max_send_sge is above max_sge";
  if (cap.max_inline_data > limits.max_inline_data) return "max_inline_data is too large";
  if (const char* broken = SendSizes(profile, type, send_ops, cap, sizes)) return broken;
  if (has_srq) return nullptr;
  if (cap.max_recv_wr > limits.max_qp_wr) return "max_recv_wr is above max_qp_wr";
  if (cap.max_recv_sge > limits.max_sge) return "max_recv_sge is above max_sge";
  return ReceiveSizes(profile, cap, sizes);
}

}  // namespace simhca::driver
