#include "sim/profiles/fields.h"

#include <array>
#include <cinttypes>
#include <cstdio>

namespace simhca {
namespace {

constexpr std::array<std::string_view, 2> kLinkLayers = {"ethernet", "infiniband"};
constexpr std::array<std::string_view, 2> kRoundings = {"exact", "mlx5"};
constexpr std::array<std::string_view, 2> kListOrders = {"completion_order", "contiguous"};
constexpr std::array<std::string_view, 3> kAtomicCaps = {"none", "hca", "glob"};
constexpr std::array<uint32_t, 8> kSpeeds = {1, 2, 4, 8, 16, 32, 64, 128};
constexpr std::array<uint32_t, 5> kWidths = {1, 2, 4, 8, 16};

constexpr std::array<uint32_t, 6> kTlpSizes = {128, 256, 512, 1024, 2048, 4096};

constexpr uint64_t kAll = ~uint64_t{0};
constexpr uint64_t kInt = 0x7fffffff;         // the verbs report an int
constexpr uint64_t kNumbers = (1 << 24) - 2;  // object numbers have 24 bits, 0 and 1 are special
constexpr uint64_t kLongestCost = kSecond;
constexpr uint64_t kMostContexts = 1 << 24;  // object numbers have 24 bits
constexpr uint64_t kLargestPacket = 8192;    // an MTU of 4096 bytes, with any headers
constexpr uint64_t kLargestBuffer = 1 << 30;
constexpr uint64_t kFastest = 10'000'000'000'000;  // bits per second

struct UnitRow {
  Quantity quantity;
  std::string_view name;
  uint64_t factor;
};
constexpr std::array<UnitRow, 8> kUnits = {{
    {Quantity::kTime, "ps", kPicosecond},
    {Quantity::kTime, "ns", kNanosecond},
    {Quantity::kTime, "us", kMicrosecond},
    {Quantity::kTime, "ms", kMillisecond},
    {Quantity::kRate, "bit/s", 1},
    {Quantity::kRate, "Mb/s", 1'000'000},
    {Quantity::kRate, "Gb/s", 1'000'000'000},
    {Quantity::kBytes, "B", 1},
}};

template <typename Enum>
uint8_t* Index(Enum* value) {
  static_assert(sizeof(Enum) == 1);
  return reinterpret_cast<uint8_t*>(value);
}

void AddIdentity(DeviceProfile::Identity& id, std::vector<Field>& fields) {
  constexpr std::string_view kSection = "identity";
  fields.insert(fields.end(),
                {{kSection, "name", &id.name, 1, 63},
                 {kSection, "vendor_id", &id.vendor_id, 1, 0xffffff, Quantity::kPlain, true},
                 {kSection, "vendor_part_id", &id.vendor_part_id, 1, 0xffff},
                 {kSection, "hw_ver", &id.hw_ver, 0, 0xffff},
                 {kSection, "fw_ver", &id.fw_ver, 1, 63},
                 {kSection, "board_id", &id.board_id, 1, 63},
                 {kSection, "link_layer", Index(&id.link_layer), 0, 0, Quantity::kPlain, false,
                  kLinkLayers}});
}

// Bounds come from the ring layouts: 16-bit WQE and 24-bit CQE indices, WQEs of at most 1008 bytes.
void AddLimits(DeviceProfile::Limits& limits, std::vector<Field>& fields) {
  constexpr std::string_view kSection = "limits";
  fields.insert(
      fields.end(),
      {{kSection, "max_mr_size", &limits.max_mr_size, 4096, kAll, Quantity::kPlain, true},
       {kSection, "page_size_cap", &limits.page_size_cap, 4096, kAll, Quantity::kPlain, true},
       {kSection, "max_qp", &limits.max_qp, 1, kNumbers},
       {kSection, "max_qp_wr", &limits.max_qp_wr, 1, 32768},
       {kSection, "max_sge", &limits.max_sge, 1, 60},
       {kSection, "max_sge_rd", &limits.max_sge_rd, 1, 60},
       {kSection, "max_cq", &limits.max_cq, 1, kNumbers + 2},
       {kSection, "max_cqe", &limits.max_cqe, 1, (1 << 22) - 1},
       {kSection, "max_mr", &limits.max_mr, 1, kNumbers + 2},
       {kSection, "max_pd", &limits.max_pd, 1, kNumbers + 2},
       {kSection, "max_mw", &limits.max_mw, 0, kNumbers + 2},
       {kSection, "max_ah", &limits.max_ah, 1, kInt},
       {kSection, "max_qp_rd_atom", &limits.max_qp_rd_atom, 0, 128},
       {kSection, "max_qp_init_rd_atom", &limits.max_qp_init_rd_atom, 0, 128},
       {kSection, "max_res_rd_atom", &limits.max_res_rd_atom, 0, kInt},
       {kSection, "max_srq", &limits.max_srq, 0, kNumbers + 2},
       {kSection, "max_srq_wr", &limits.max_srq_wr, 0, 32767},
       {kSection, "max_srq_sge", &limits.max_srq_sge, 0, 31},
       {kSection, "max_inline_data", &limits.max_inline_data, 0, 928, Quantity::kBytes},
       {kSection, "max_msg_sz", &limits.max_msg_sz, 4096, uint64_t{1} << 31, Quantity::kBytes},
       {kSection, "max_mcast_grp", &limits.max_mcast_grp, 0, kInt},
       {kSection, "max_mcast_qp_attach", &limits.max_mcast_qp_attach, 0, kInt},
       {kSection, "max_total_mcast_qp_attach", &limits.max_total_mcast_qp_attach, 0, kInt},
       {kSection, "max_pkeys", &limits.max_pkeys, 1, 0xffff},
       {kSection, "gid_table_len", &limits.gid_table_len, 2, 1024},
       {kSection, "num_comp_vectors", &limits.num_comp_vectors, 1, 1024},
       {kSection, "local_ca_ack_delay", &limits.local_ca_ack_delay, 0, 31},
       {kSection, "hca_core_clock_khz", &limits.hca_core_clock_khz, 1, 1'000'000'000},
       {kSection, "completion_timestamp_mask", &limits.completion_timestamp_mask, 0, kAll,
        Quantity::kPlain, true},
       {kSection, "phys_port_cnt", &limits.phys_port_cnt, 1, 1}});
}

void AddPort(DeviceProfile::Port& port, std::vector<Field>& fields) {
  constexpr std::string_view kSection = "port";
  fields.insert(
      fields.end(),
      {{kSection, "max_mtu", &port.max_mtu, 1, 5},
       {kSection, "active_mtu", &port.active_mtu, 1, 5},
       {kSection, "active_speed", &port.active_speed, 1, 128, Quantity::kPlain, false, {}, kSpeeds},
       {kSection, "active_width", &port.active_width, 1, 16, Quantity::kPlain, false, {}, kWidths},
       {kSection, "pkey_table_len", &port.pkey_table_len, 1, 128}});
}

void AddFeatures(DeviceProfile::Features& features, std::vector<Field>& fields) {
  constexpr std::string_view kSection = "features";
  fields.insert(fields.end(), {{kSection, "srq", &features.srq},
                               {kSection, "srq_resize", &features.srq_resize},
                               {kSection, "xrc", &features.xrc},
                               {kSection, "rounding", Index(&features.rounding), 0, 0,
                                Quantity::kPlain, false, kRoundings},
                               {kSection, "srq_list_order", Index(&features.srq_list_order), 0, 0,
                                Quantity::kPlain, false, kListOrders},
                               {kSection, "limit_event_at_once", &features.limit_event_at_once},
                               {kSection, "atomic_cap", Index(&features.atomic_cap), 0, 0,
                                Quantity::kPlain, false, kAtomicCaps}});
}

void AddCosts(DeviceProfile::Costs& costs, std::vector<Field>& fields) {
  const auto time = [&fields](std::string_view key, Duration* target) {
    fields.push_back({"costs", key, target, 0, kLongestCost, Quantity::kTime});
  };
  const auto rate = [&fields](std::string_view key, uint64_t* target) {
    fields.push_back({"costs", key, target, 1'000'000, kFastest, Quantity::kRate});
  };
  const auto count = [&fields](std::string_view key, uint32_t* target, uint64_t max) {
    fields.push_back({"costs", key, target, 1, max});
  };
  const auto bytes = [&fields](std::string_view key, uint32_t* target, uint64_t min, uint64_t max) {
    fields.push_back({"costs", key, target, min, max, Quantity::kBytes});
  };
  const auto tlp_size = [&fields](std::string_view key, uint32_t* target) {
    fields.push_back({"costs",
                      key,
                      target,
                      kTlpSizes.front(),
                      kTlpSizes.back(),
                      Quantity::kBytes,
                      false,
                      {},
                      kTlpSizes});
  };
  time("doorbell_latency", &costs.doorbell_latency);
  time("pcie_read_latency", &costs.pcie_read_latency);
  time("pcie_write_latency", &costs.pcie_write_latency);
  rate("pcie_bits_per_second", &costs.pcie_bits_per_second);
  time("wqe_fetch", &costs.wqe_fetch);
  time("packet_processing", &costs.packet_processing);
  time("cqe_write", &costs.cqe_write);
  time("event_latency", &costs.event_latency);
  rate("wire_bits_per_second", &costs.wire_bits_per_second);
  time("wire_propagation", &costs.wire_propagation);
  bytes("wire_overhead_bytes", &costs.wire_overhead_bytes, 0, 1024);
  bytes("rx_buffer_bytes", &costs.rx_buffer_bytes, kLargestPacket, kLargestBuffer);
  tlp_size("pcie_max_payload", &costs.pcie_max_payload);
  tlp_size("pcie_max_read_request", &costs.pcie_max_read_request);
  count("pcie_outstanding_reads", &costs.pcie_outstanding_reads, 1024);
  count("send_fetch_batch", &costs.send_fetch_batch, 64);
  count("receive_prefetch", &costs.receive_prefetch, 256);
  count("active_receive_wqes", &costs.active_receive_wqes, 1024);
  time("active_wqe_reload", &costs.active_wqe_reload);
  count("qp_cache_entries", &costs.qp_cache_entries, kMostContexts);
  count("cq_cache_entries", &costs.cq_cache_entries, kMostContexts);
  count("srq_cache_entries", &costs.srq_cache_entries, kMostContexts);
  count("mr_cache_entries", &costs.mr_cache_entries, kMostContexts);
  count("cache_misses_in_flight", &costs.cache_misses_in_flight, 256);
  time("cache_miss", &costs.cache_miss);
  time("cpu_post_send", &costs.cpu_post_send);
  time("cpu_post_receive", &costs.cpu_post_receive);
  time("cpu_poll", &costs.cpu_poll);
}

// The number in the largest unit that shows it in at most three decimals.
std::string FormatQuantity(uint64_t value, Quantity quantity) {
  const UnitRow* chosen = nullptr;
  for (const UnitRow& unit : kUnits) {
    if (unit.quantity != quantity) continue;
    if (chosen == nullptr || (value >= unit.factor && value * 1000 % unit.factor == 0)) {
      chosen = &unit;
    }
  }
  char text[48];
  std::snprintf(text, sizeof(text), "%.12g %s", static_cast<double>(value) / chosen->factor,
                chosen->name.data());
  return text;
}

std::string FormatNumber(uint64_t value, const Field& field) {
  if (field.quantity != Quantity::kPlain) return FormatQuantity(value, field.quantity);
  char text[32];
  std::snprintf(text, sizeof(text), field.hex ? "0x%" PRIx64 : "%" PRIu64, value);
  return text;
}

template <typename List, typename Text>
std::string Join(const List& list, Text text) {
  std::string joined;
  for (const auto& item : list) {
    if (!joined.empty()) joined += ", ";
    joined += text(item);
  }
  return joined;
}

}  // namespace

std::string Field::full_name() const { return std::string(section) + "." + std::string(key); }

std::vector<Field> FieldsOf(DeviceProfile& profile) {
  std::vector<Field> fields;
  AddIdentity(profile.identity, fields);
  AddLimits(profile.limits, fields);
  AddPort(profile.port, fields);
  AddFeatures(profile.features, fields);
  AddCosts(profile.costs, fields);
  return fields;
}

std::string FormatValue(const Field& field) {
  if (auto* text = std::get_if<std::string*>(&field.target)) return **text;
  if (auto* flag = std::get_if<bool*>(&field.target)) return **flag ? "true" : "false";
  if (auto* index = std::get_if<uint8_t*>(&field.target)) return std::string(field.names[**index]);
  if (auto* number = std::get_if<uint32_t*>(&field.target)) return FormatNumber(**number, field);
  if (auto* number = std::get_if<uint64_t*>(&field.target)) return FormatNumber(**number, field);
  return FormatNumber(static_cast<uint64_t>(**std::get_if<Duration*>(&field.target)), field);
}

std::string AcceptedValues(const Field& field) {
  if (std::holds_alternative<bool*>(field.target)) return "true or false";
  if (std::holds_alternative<std::string*>(field.target)) {
    return "a text of " + std::to_string(field.min) + " to " + std::to_string(field.max) +
           " characters";
  }
  if (!field.names.empty()) {
    return "one of " +
           Join(field.names, [](std::string_view name) { return "\"" + std::string(name) + "\""; });
  }
  if (!field.codes.empty()) {
    return "one of " + Join(field.codes, [](uint32_t code) { return std::to_string(code); });
  }
  return FormatNumber(field.min, field) + " to " + FormatNumber(field.max, field);
}

uint64_t UnitFactor(Quantity quantity, std::string_view unit) {
  for (const UnitRow& row : kUnits) {
    if (row.quantity == quantity && row.name == unit) return row.factor;
  }
  return 0;
}

std::string UnitNames(Quantity quantity) {
  std::vector<std::string> names;
  for (const UnitRow& row : kUnits) {
    if (row.quantity == quantity) names.emplace_back(row.name);
  }
  return Join(names, [](const std::string& name) { return name; });
}

}  // namespace simhca
