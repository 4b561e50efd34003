#ifndef SIMHCA_SIM_QUEUES_MLX5_LAYOUT_H_
#define SIMHCA_SIM_QUEUES_MLX5_LAYOUT_H_

// Byte layouts of the mlx5 rings, as the device reads and the driver writes them (and the other
// way round for completions and events).  Offsets and values are those of the public header
// infiniband/mlx5dv.h and of the Linux mlx5 driver.

#include <cstddef>
#include <cstdint>

#include "sim/queues/big_endian.h"

namespace simhca::mlx5 {

// ---- Segments of work queue entries ----

// Ends a scatter list that is shorter than the entry allows.
inline constexpr uint32_t kTerminatorKey = 0x100;
// Bit 31 of the length word marks an inline segment.
inline constexpr uint32_t kInlineFlag = 0x80000000u;

// A data segment counts 31 bits: what is longer is also longer than any message, and is refused as
// such.
constexpr uint32_t SegmentLength(uint32_t length) {
  return length < kInlineFlag ? length : kInlineFlag - 1;
}

struct DataSegment {
  Be32 byte_count;
  Be32 lkey;
  Be64 address;

  bool terminates() const { return lkey == kTerminatorKey && byte_count == 0; }
};
static_assert(sizeof(DataSegment) == 16);

struct RemoteAddressSegment {
  Be64 address;
  Be32 rkey;
  Be32 reserved;
};
static_assert(sizeof(RemoteAddressSegment) == 16);

struct AtomicSegment {
  Be64 swap_add;
  Be64 compare;
};
static_assert(sizeof(AtomicSegment) == 16);

// Starts every entry of a shared receive queue; data segments follow.
struct SrqNextSegment {
  Be16 reserved0;
  Be16 next_wqe_index;
  uint8_t signature;
  uint8_t reserved5[11];
};
static_assert(sizeof(SrqNextSegment) == 16 && offsetof(SrqNextSegment, next_wqe_index) == 2);

// ---- Send queue ----

inline constexpr uint32_t kSendBlockBytes = 64;     // a send WQE takes whole blocks
inline constexpr uint32_t kMaxSendWqeBytes = 1008;  // the size field counts up to 63 16-byte units

enum class WqeOpcode : uint8_t {
  kNop = 0x00,
  kSendInvalidate = 0x01,
  kRdmaWrite = 0x08,
  kRdmaWriteImmediate = 0x09,
  kSend = 0x0a,
  kSendImmediate = 0x0b,
  kRdmaRead = 0x10,
  kAtomicCompareSwap = 0x11,
  kAtomicFetchAdd = 0x12,
};

// Bits of ControlSegment::fm_ce_se.
inline constexpr uint8_t kSolicited = 0x02;
inline constexpr uint8_t kCompletionOnSuccess = 0x08;
inline constexpr uint8_t kFenceSmall = 0x20;
inline constexpr uint8_t kFence = 0x80;

// First segment of every send WQE.
struct ControlSegment {
  Be32 opmod_index_opcode;  // 31:24 modifier, 23:8 block index of this WQE, 7:0 opcode
  Be32 qpn_ds;              // 31:8 QP number, 5:0 size in 16-byte units, this segment included
  uint8_t signature;
  uint8_t dci_stream_id[2];
  uint8_t fm_ce_se;
  uint32_t immediate;  // bytes as the program gave them, not converted

  WqeOpcode opcode() const { return static_cast<WqeOpcode>(uint32_t{opmod_index_opcode} & 0xff); }
  uint16_t block_index() const { return static_cast<uint16_t>(opmod_index_opcode >> 8); }
  uint32_t size_units() const { return qpn_ds & 0x3f; }
  bool has(uint8_t flag) const { return (fm_ce_se & flag) != 0; }

  void Set(WqeOpcode opcode, uint16_t block, uint32_t qpn, uint32_t units, uint8_t flags) {
    opmod_index_opcode = uint32_t{block} << 8 | static_cast<uint32_t>(opcode);
    qpn_ds = qpn << 8 | units;
    signature = 0;
    dci_stream_id[0] = dci_stream_id[1] = 0;
    fm_ce_se = flags;
  }
};
static_assert(sizeof(ControlSegment) == 16 && offsetof(ControlSegment, fm_ce_se) == 11);

// Words of a queue pair's doorbell record.
inline constexpr int kReceiveRecord = 0;  // posted receive WQEs & 0xffff
inline constexpr int kSendRecord = 1;     // posted send blocks & 0xffff

// ---- Completion queue ----

enum class CqeOpcode : uint8_t {
  kRequester = 0,
  kResponderWriteImmediate = 1,
  kResponderSend = 2,
  kResponderSendImmediate = 3,
  kResponderSendInvalidate = 4,
  kRequesterError = 13,
  kResponderError = 14,
  kInvalid = 15,
};

enum class Syndrome : uint8_t {
  kLocalLength = 0x01,
  kLocalQpOperation = 0x02,
  kLocalProtection = 0x04,
  kFlushed = 0x05,
  kMwBind = 0x06,
  kBadResponse = 0x10,
  kLocalAccess = 0x11,
  kRemoteInvalidRequest = 0x12,
  kRemoteAccess = 0x13,
  kRemoteOperation = 0x14,
  kRetryExceeded = 0x15,
  kRnrRetryExceeded = 0x16,
  kRemoteAborted = 0x22,
};

struct Cqe {
  uint8_t inline_area[16];  // 0
  uint8_t reserved16;
  uint8_t ml_path;  // 17
  uint8_t reserved18[4];
  Be16 slid;             // 22
  Be32 flags_rqpn;       // 24: 29:28 GRH (1 v6, 2 v4), 27:24 SL, 23:0 source QPN
  uint8_t header_flags;  // 28
  uint8_t l4_header_type;
  Be16 vlan_info;
  Be32 srqn;           // 32: low 24 bits; 0 = the QP's own receive queue
  uint32_t immediate;  // 36: immediate as received, or Be32 invalidated rkey
  uint8_t app;         // 40
  uint8_t app_operation;
  Be16 app_info;
  Be32 byte_count;       // 44
  Be64 timestamp;        // 48
  Be32 sop_qpn;          // 56: 31:24 send opcode (requester), 23:0 local QPN
  Be16 wqe_counter;      // 60: receive slot, or block index of the send WQE
  uint8_t signature;     // 62
  uint8_t opcode_owner;  // 63: 7:4 opcode, 1 solicited, 0 owner; written last

  CqeOpcode opcode() const { return static_cast<CqeOpcode>(opcode_owner >> 4); }
  uint32_t qpn() const { return sop_qpn & 0xffffff; }
  WqeOpcode send_opcode() const { return static_cast<WqeOpcode>(sop_qpn >> 24); }
  bool solicited() const { return (opcode_owner & 0x02) != 0; }

  static uint8_t OpcodeOwner(CqeOpcode opcode, bool solicited, uint8_t owner) {
    return static_cast<uint8_t>(static_cast<uint8_t>(opcode) << 4 | (solicited ? 0x02 : 0) | owner);
  }
  // Owner bit of the entry for consumer or producer index `n` in a ring of `entries` (2^k).
  static uint8_t OwnerBit(uint32_t n, uint32_t entries) { return (n & entries) != 0 ? 1 : 0; }
};
static_assert(sizeof(Cqe) == 64 && offsetof(Cqe, flags_rqpn) == 24 && offsetof(Cqe, srqn) == 32 &&
              offsetof(Cqe, byte_count) == 44 && offsetof(Cqe, timestamp) == 48 &&
              offsetof(Cqe, sop_qpn) == 56 && offsetof(Cqe, opcode_owner) == 63);

// An entry whose opcode is kRequesterError or kResponderError.
struct ErrorCqe {
  uint8_t reserved0[32];
  Be32 srqn;  // 32
  uint8_t reserved36[18];
  uint8_t vendor_syndrome;  // 54
  Syndrome syndrome;        // 55
  Be32 opcode_qpn;          // 56
  Be16 wqe_counter;
  uint8_t signature;
  uint8_t opcode_owner;
};
static_assert(sizeof(ErrorCqe) == 64 && offsetof(ErrorCqe, syndrome) == 55);

// Words of a completion queue's doorbell record.
inline constexpr int kConsumerRecord = 0;  // consumer index & 0xffffff
inline constexpr int kArmRecord = 1;
// Fields of the arm word; 23:0 is the consumer index.
inline constexpr uint32_t kArmSolicitedOnly = 1u << 24;
inline constexpr int kArmSequenceShift = 28;

// ---- Event queue ----

enum class EventType : uint8_t {
  kCompletion = 0x00,
  kPathMigrated = 0x01,
  kCommunicationEstablished = 0x02,
  kSendQueueDrained = 0x03,
  kCqError = 0x04,
  kWorkQueueCatastrophic = 0x05,
  kPathMigrationFailed = 0x07,
  kInternalError = 0x08,
  kPortChange = 0x09,
  kInvalidRequest = 0x10,
  kAccessViolation = 0x11,
  kSrqCatastrophic = 0x12,
  kSrqLastWqe = 0x13,
  kSrqLimit = 0x14,
};

// Sub types of EventType::kPortChange.
enum class PortChange : uint8_t {
  kDown = 1,
  kActive = 4,
  kInitialised = 5,
  kLid = 6,
  kPkey = 7,
  kGuid = 8,
  kReregister = 9,
  // Ours: mlx5 devices learn of a new subnet manager by a management packet, and their firmware has
  // no event for it.
  kSubnetManager = 0x80,
};

struct Eqe {
  uint8_t reserved0;
  EventType type;
  uint8_t reserved2;
  uint8_t sub_type;
  uint8_t reserved4[28];
  Be32 cq_error_cqn;  // 32
  uint8_t reserved36[4];
  uint8_t port;  // 40: number in the high nibble
  uint8_t reserved41[2];
  uint8_t cq_error_syndrome;  // 43
  uint8_t reserved44[8];
  uint8_t queue_kind;  // 52: 0 QP, 1 RQ, 2 SQ
  uint8_t reserved53[3];
  Be32 number;  // 56: CQ, QP or SRQ number, low 24 bits
  uint8_t reserved60[2];
  uint8_t signature;
  uint8_t owner;  // written last; same parity rule as a CQE
};
static_assert(sizeof(Eqe) == 64 && offsetof(Eqe, number) == 56 && offsetof(Eqe, owner) == 63);

}  // namespace simhca::mlx5

#endif  // SIMHCA_SIM_QUEUES_MLX5_LAYOUT_H_
