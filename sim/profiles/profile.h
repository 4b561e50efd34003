#ifndef SIMHCA_SIM_PROFILES_PROFILE_H_
#define SIMHCA_SIM_PROFILES_PROFILE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "sim/timing/time.h"

namespace simhca {

enum class LinkLayer : uint8_t {
  kEthernet,    // RoCEv2: GIDs are the addresses, LID 0
  kInfiniband,  // LID-routed port for programs that use no GRH
};

// How queue sizes that a program asks for become those that it gets.
enum class Rounding : uint8_t {
  kExact,  // as asked
  kMlx5,   // powers of two and strides of the mlx5 driver
};

// Where the driver puts a freed SRQ entry.
enum class SrqListOrder : uint8_t {
  kCompletionOrder,  // at the tail, in the order of completions (rdma-core before 4827e3388)
  kContiguous,       // next run of neighbouring free entries (rdma-core since 4827e3388)
};

// Values of enum ibv_atomic_cap.
enum class AtomicCap : uint8_t {
  kNone,  // no atomics
  kHca,   // atomic among the queue pairs of this device
  kGlob,  // also towards the host's CPUs
};

// Everything that tells one simulated device from another.  Values are those that the verbs report
// (struct ibv_device_attr, struct ibv_port_attr) unless said otherwise.  The list of all fields
// with their ranges and units is in fields.cc; the values are in *.toml.
struct DeviceProfile {
  struct Identity {
    std::string name;  // of the profile
    uint32_t vendor_id = 0;
    uint32_t vendor_part_id = 0;
    uint32_t hw_ver = 0;
    std::string fw_ver;
    std::string board_id;
    LinkLayer link_layer = LinkLayer::kEthernet;
  };

  struct Limits {
    uint64_t max_mr_size = 0;    // bytes
    uint64_t page_size_cap = 0;  // bit n: pages of 2^n bytes
    uint32_t max_qp = 0;
    uint32_t max_qp_wr = 0;
    uint32_t max_sge = 0;     // per work request
    uint32_t max_sge_rd = 0;  // per READ
    uint32_t max_cq = 0;
    uint32_t max_cqe = 0;
    uint32_t max_mr = 0;
    uint32_t max_pd = 0;
    uint32_t max_mw = 0;
    uint32_t max_ah = 0;
    uint32_t max_qp_rd_atom = 0;       // READs and atomics in flight per QP as responder
    uint32_t max_qp_init_rd_atom = 0;  // as requester
    uint32_t max_res_rd_atom = 0;      // as responder, whole device
    uint32_t max_srq = 0;
    uint32_t max_srq_wr = 0;
    uint32_t max_srq_sge = 0;
    uint32_t max_inline_data = 0;  // bytes; the largest that create QP grants
    uint32_t max_msg_sz = 0;       // bytes
    uint32_t max_mcast_grp = 0;
    uint32_t max_mcast_qp_attach = 0;
    uint32_t max_total_mcast_qp_attach = 0;
    uint32_t max_pkeys = 0;
    uint32_t gid_table_len = 0;
    uint32_t num_comp_vectors = 0;
    uint32_t local_ca_ack_delay = 0;  // coded as an ACK timeout
    uint64_t hca_core_clock_khz = 0;  // of completion timestamps and ibv_query_rt_values_ex
    uint64_t completion_timestamp_mask = 0;
    uint32_t phys_port_cnt = 1;
  };

  struct Port {
    uint32_t max_mtu = 0;       // code 1..5: 256..4096 bytes
    uint32_t active_mtu = 0;    // the same
    uint32_t active_speed = 0;  // per lane: 1 2.5, 2 5, 4 10, 8 10, 16 14, 32 25, 64 50 Gb/s
    uint32_t active_width = 0;  // 1 1x, 2 4x, 4 8x, 8 12x, 16 2x
    uint32_t pkey_table_len = 0;
  };

  struct Features {
    bool srq = true;
    bool srq_resize = true;  // IBV_DEVICE_SRQ_RESIZE
    bool xrc = true;         // IBV_DEVICE_XRC
    Rounding rounding = Rounding::kExact;
    SrqListOrder srq_list_order = SrqListOrder::kContiguous;
    bool limit_event_at_once = true;  // arming a limit above the fill raises the event at once
    AtomicCap atomic_cap = AtomicCap::kHca;
  };

  // What a step takes on the device, and how much of a thing it has, for the paced and the virtual
  // clock.
  struct Costs {
    Duration doorbell_latency = 0;      // CPU's store until the device has seen it
    Duration pcie_read_latency = 0;     // host memory read, first byte
    Duration pcie_write_latency = 0;    // posted write until it is visible to the CPU
    uint64_t pcie_bits_per_second = 0;  // each direction, after the link layer
    Duration wqe_fetch = 0;             // per WQE of a list that can be read ahead
    Duration packet_processing = 0;     // per packet and direction, in the pipeline
    Duration cqe_write = 0;             // per completion
    Duration event_latency = 0;         // event queue entry until the program's fd is readable
    uint64_t wire_bits_per_second = 0;
    Duration wire_propagation = 0;     // between two ports, cables and switches
    uint32_t wire_overhead_bytes = 0;  // per packet, on top of what lies from BTH to the payload
    uint32_t rx_buffer_bytes = 0;      // received and not yet processed, before the wire is held

    uint32_t pcie_max_payload = 0;        // bytes of one write or completion TLP, a power of two
    uint32_t pcie_max_read_request = 0;   // bytes that one read request asks for, a power of two
    uint32_t pcie_outstanding_reads = 0;  // read requests not yet answered in full

    uint32_t send_fetch_batch = 0;  // WQEs that one read of a send queue brings
    // Neighbouring receive WQEs that one read brings, and how many the fetcher holds before they
    // are claimed.
    uint32_t receive_prefetch = 0;
    // Receive WQEs of messages in progress that all SRQs keep at hand together, and what it takes
    // to bring back one that was displaced.
    uint32_t active_receive_wqes = 0;
    Duration active_wqe_reload = 0;

    // Contexts kept on the chip; the others lie in host memory.
    uint32_t qp_cache_entries = 0;
    uint32_t cq_cache_entries = 0;
    uint32_t srq_cache_entries = 0;
    uint32_t mr_cache_entries = 0;
    uint32_t cache_misses_in_flight = 0;  // served at a time, of all caches together
    Duration cache_miss = 0;              // until the context is on the chip

    // CPU time of a call, whatever it does.
    Duration cpu_post_send = 0;
    Duration cpu_post_receive = 0;
    Duration cpu_poll = 0;
  };

  Identity identity;
  Limits limits;
  Port port;
  Features features;
  Costs costs;

  // Where a value comes from, by "section.key"; every cost has one.
  std::map<std::string, std::string, std::less<>> sources;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_PROFILES_PROFILE_H_
