#include "bench/model/published_row.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#include "bench/model/endpoint.h"
#include "bench/model/table_reader.h"
#include "sim/fabric/link.h"
#include "sim/profiles/fields.h"
#include "sim/profiles/profile_loader.h"

namespace simhca::bench {

namespace {

constexpr std::array<uint32_t, 5> kMtus = {256, 512, 1024, 2048, 4096};
constexpr uint32_t kMostQps = 16'384;        // of a device, all senders together
constexpr uint32_t kMostInQueues = 1 << 21;  // WQEs of one device that may be posted
constexpr uint32_t kMostReceives = 16'384;
constexpr size_t kLargestFile = size_t{1} << 20;

constexpr std::array<std::string_view, 2> kUses = {"calibrate", "check"};
constexpr std::array<std::string_view, 2> kOperations = {"send", "read"};
constexpr std::array<std::string_view, 2> kQueues = {"rq", "srq"};
constexpr std::array<std::string_view, 2> kListOrders = {"completion_order", "contiguous"};
// In the order of PublishedRow::Metric, and the unit of each.
constexpr std::array<std::string_view, 8> kMetrics = {
    "Gb/s", "Mop/s", "op/s", "ns per message", "latency", "elapsed", "rnr_naks", "limit_events"};
constexpr std::array<std::string_view, 8> kMetricUnits = {"Gb/s", "Mop/s", "op/s", "ns",
                                                          "ns",   "ms",    "",     ""};
// In the order of PublishedRow::Kind, from kPcieWrites on.
constexpr std::array<std::string_view, 8> kQuantities = {
    "pcie_write_rate", "pcie_read_rate", "profile_value", "rnr_timers",
    "ack_timeouts",    "srq_max_wr",     "srq_max_sge",   "srq_stride"};

int DecimalsOf(Value value) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.12Lg", value);
  const char* point = std::strchr(text, '.');
  return point == nullptr || std::strchr(text, 'e') != nullptr
             ? 0
             : static_cast<int>(std::strlen(point + 1));
}

// Takes one [[row]] apart.
class RowReader {
 public:
  RowReader(const std::string& file_name, const toml::table& table,
            const std::vector<PublishedRow>& earlier)
      : file_name_(file_name), reader_(file_name, table), earlier_(earlier) {}

  bool Read() {
    row_.line = reader_.line();
    size_t use = 1;
    if (!reader_.RequiredText("name", &row_.name) ||
        !reader_.RequiredText("source", &row_.source) || !reader_.Choice("use", &use, kUses)) {
      return false;
    }
    if (Earlier(row_.name) != nullptr)
      return reader_.Refuse("there are two rows " + Quoted(row_.name));
    row_.calibrates = use == 0;
    return ReadModel() && ReadRatio() && ReadPublished() && reader_.NoOthers();
  }

  PublishedRow& row() { return row_; }
  const std::string& error() const { return reader_.error(); }

 private:
  static std::string Quoted(const std::string& text) { return '"' + text + '"'; }

  const PublishedRow* Earlier(const std::string& name) const {
    const auto row = std::find_if(earlier_.begin(), earlier_.end(),
                                  [&](const PublishedRow& other) { return other.name == name; });
    return row == earlier_.end() ? nullptr : &*row;
  }

  bool ReadModel() {
    if (reader_.Has("same_as")) {
      row_.kind = PublishedRow::Kind::kSameAs;
      if (!reader_.Text("same_as", &row_.same_as)) return false;
      const PublishedRow* other = Earlier(row_.same_as);
      if (other == nullptr) return NoEarlierRow("same_as");
      row_.unit = other->unit;
      return true;
    }
    if (!ReadProfile()) return false;
    if (reader_.Has("quantity")) return ReadQuantity();
    return ReadScenario() && CheckScenario();
  }

  bool NoEarlierRow(std::string_view key) {
    return reader_.Refuse(*reader_.Find(key),
                          std::string(key) + ": accepted is the name of a row before this one");
  }

  bool ReadRatio() {
    if (!reader_.Text("ratio_to", &row_.ratio_to)) return false;
    if (row_.ratio_to.empty()) return true;
    if (Earlier(row_.ratio_to) == nullptr) return NoEarlierRow("ratio_to");
    row_.unit = "times";
    return true;
  }

  bool ReadProfile() {
    std::string name;
    if (!reader_.RequiredText("profile", &name)) return false;
    const bool relative = name.find('/') != std::string::npos || name.ends_with(".toml");
    const size_t folder = file_name_.rfind('/');
    if (relative && name[0] != '/' && folder != std::string::npos) {
      name.insert(0, file_name_, 0, folder + 1);
    }
    ProfileResult found = FindProfile(name);
    if (!found) return reader_.Refuse(*reader_.Find("profile"), "profile: " + found.error);
    row_.scenario.profile = *std::move(found.profile);
    const toml::node* costs = reader_.Find("costs");
    if (costs == nullptr) return true;
    if (!costs->is_table()) {
      return reader_.Refuse(*costs, "costs: accepted is a table such as { cpu_poll = \"100 ns\" }");
    }
    for (const auto& [key, node] : *costs->as_table()) {
      if (!OverrideCost(key.str(), node)) return false;
    }
    return true;
  }

  bool OverrideCost(std::string_view key, const toml::node& node) {
    std::vector<Field> fields = FieldsOf(row_.scenario.profile);
    std::string keys;
    for (const Field& field : fields) {
      if (field.section != "costs") continue;
      if (field.key != key) {
        keys += (keys.empty() ? "" : ", ") + std::string(field.key);
        continue;
      }
      uint64_t number = 0;
      if (!ReadCost(field, node, &number) || number < field.min || number > field.max ||
          (!field.codes.empty() &&
           std::find(field.codes.begin(), field.codes.end(), number) == field.codes.end())) {
        const std::string units = UnitNames(field.quantity);
        return reader_.Refuse(
            node, "costs." + std::string(key) + ": accepted is " + AcceptedValues(field) +
                      (units.empty() ? "" : ", a text with its unit of " + units));
      }
      if (auto* target = std::get_if<uint32_t*>(&field.target)) **target = number;
      if (auto* target = std::get_if<uint64_t*>(&field.target)) **target = number;
      if (auto* target = std::get_if<Duration*>(&field.target)) **target = number;
      return true;
    }
    return reader_.Refuse(node, "unknown key costs." + std::string(key) + "; accepted are " + keys);
  }

  // "25 Gb/s", or a plain number where the cost has no unit.
  static bool ReadCost(const Field& field, const toml::node& node, uint64_t* number) {
    if (field.quantity == Quantity::kPlain) {
      const auto* plain = node.as_integer();
      if (plain == nullptr || plain->get() < 0) return false;
      *number = static_cast<uint64_t>(plain->get());
      return true;
    }
    const auto* text = node.as_string();
    if (text == nullptr) return false;
    const std::string& written = text->get();
    double value = 0;
    const auto [end, status] =
        std::from_chars(written.data(), written.data() + written.size(), value);
    if (status != std::errc() || !(value >= 0)) return false;
    const std::string_view unit(end, written.data() + written.size());
    const uint64_t factor =
        unit.starts_with(' ') ? UnitFactor(field.quantity, unit.substr(1)) : uint64_t{0};
    const double product = std::round(value * static_cast<double>(factor));
    if (factor == 0 || !(product < 1e18)) return false;
    *number = static_cast<uint64_t>(product);
    return true;
  }

  bool ReadScenario() {
    Scenario& scenario = row_.scenario;
    size_t operation = 0, queue = 0, metric = 0;
    size_t order = static_cast<size_t>(scenario.profile.features.srq_list_order);
    uint32_t refill_us = 0;
    const bool read =
        reader_.Choice("operation", &operation, kOperations) &&
        reader_.Flag("both_ways", &scenario.both_ways) &&
        reader_.Flag("repeat", &scenario.repeat) &&
        reader_.Flag("inline", &scenario.inline_sends) &&
        reader_.Choice("queue", &queue, kQueues) &&
        reader_.Choice("list_order", &order, kListOrders) &&
        reader_.Number("senders", &scenario.senders, 1, kMaxFabricPorts - 1) &&
        reader_.Number("qps", &scenario.qps, 1, kMostQps) &&
        reader_.Choice("mtu", &scenario.path_mtu, kMtus) &&
        reader_.Number("message_bytes", &scenario.message_bytes, 1, 1 << 24) &&
        reader_.Number("receives", &scenario.receives, 1, kMostReceives) &&
        reader_.Number("receive_entries", &scenario.receive_entries, 2, 2 * kMostReceives) &&
        reader_.Number("segments", &scenario.segments, 1, 31) &&
        reader_.Number("outstanding", &scenario.outstanding, 1, kMostReceives) &&
        reader_.Number("window", &scenario.window, 1, kMostInQueues) &&
        reader_.Number("post_batch", &scenario.post_batch, 1, kMostReceives) &&
        reader_.Number("min_rnr_timer", &scenario.min_rnr_timer, 0, 31) &&
        reader_.Number("watermark", &scenario.watermark, 1, kMostReceives) &&
        reader_.Number("refill_latency_us", &refill_us, 0, 1'000'000) &&
        reader_.Number("warm_up", &scenario.warm_up, 0, 10'000'000) &&
        reader_.Number("messages", &scenario.messages, 1, 100'000'000) &&
        reader_.Choice("metric", &metric, kMetrics);
    if (!read) return false;
    scenario.operation = static_cast<Scenario::Operation>(operation);
    scenario.srq = queue == 1;
    scenario.list_order = static_cast<SrqListOrder>(order);
    scenario.refill_latency = refill_us * kMicrosecond;
    row_.metric = static_cast<PublishedRow::Metric>(metric);
    row_.unit = kMetricUnits[metric];
    if (!reader_.Has("metric")) return reader_.Refuse("metric is missing");
    return true;
  }

  // What single keys do not show.
  bool CheckScenario() {
    const Scenario& scenario = row_.scenario;
    const DeviceProfile& profile = scenario.profile;
    const auto refuse = [this](std::string_view key, const std::string& why) {
      const toml::node* node = reader_.Find(key);
      return node == nullptr ? reader_.Refuse(std::string(key) + ": " + why)
                             : reader_.Refuse(*node, std::string(key) + ": " + why);
    };
    const uint32_t largest_mtu = 128u << profile.port.max_mtu;
    if (scenario.path_mtu > largest_mtu) {
      return refuse("mtu", "accepted by the profile is at most " + std::to_string(largest_mtu));
    }
    const uint32_t qps = scenario.senders * scenario.qps;
    const uint32_t most_qps = std::min(kMostQps, profile.limits.max_qp / 2);
    if (qps > most_qps) {
      return refuse("qps", "accepted are at most " + std::to_string(most_qps) +
                               " queue pairs of all senders");
    }
    const uint64_t posted = uint64_t{qps} * std::bit_ceil(scenario.outstanding);
    if (posted > kMostInQueues) {
      return refuse("outstanding", "accepted are at most " + std::to_string(kMostInQueues) +
                                       " of all queue pairs, in powers of two for each");
    }
    if (uint64_t{scenario.window} > uint64_t{scenario.qps} * scenario.outstanding) {
      return refuse("window",
                    "accepted is at most what the queue pairs of a sender may have "
                    "outstanding, " +
                        std::to_string(scenario.qps * scenario.outstanding));
    }
    if (row_.metric == PublishedRow::Metric::kLatency && qps * scenario.outstanding != 1) {
      return refuse("metric", "latency needs one queue pair with one message outstanding");
    }
    const uint32_t entries = scenario.receive_entries;
    const uint32_t least = scenario.receives + (scenario.srq ? 1 : 0);
    if (entries != 0 && (!std::has_single_bit(entries) || entries < least)) {
      return refuse("receive_entries",
                    "accepted is a power of two of at least " + std::to_string(least));
    }
    if (!scenario.srq && uint64_t{qps} * std::max(entries, scenario.receives) > kMostInQueues) {
      return refuse("receives", "accepted are at most " + std::to_string(kMostInQueues) +
                                    " of all queue pairs");
    }
    if (scenario.watermark > scenario.receives) {
      return refuse("watermark",
                    "accepted is at most what is posted, " + std::to_string(scenario.receives));
    }
    if (scenario.post_batch > scenario.receives) {
      return refuse("post_batch",
                    "accepted is at most what is posted, " + std::to_string(scenario.receives));
    }
    if (!scenario.srq && scenario.watermark != 0)
      return refuse("watermark", "needs queue = \"srq\"");
    if (!scenario.srq && reader_.Has("list_order")) {
      return refuse("list_order", "needs queue = \"srq\"");
    }
    const uint64_t needed = uint64_t{scenario.warm_up} + scenario.messages;
    const uint64_t once = scenario.window != 0 ? uint64_t{scenario.window} * scenario.senders
                                               : uint64_t{qps} * scenario.outstanding;
    if (!scenario.repeat && needed > once) {
      return refuse("messages",
                    "accepted without repeat is at most what is outstanding, warm_up "
                    "included, " +
                        std::to_string(once));
    }
    const bool reads = scenario.operation == Scenario::Operation::kRead;
    if (scenario.inline_sends && (reads || scenario.message_bytes > Endpoint::kMostInline)) {
      return refuse("inline", "accepted with SENDs of at most " +
                                  std::to_string(Endpoint::kMostInline) + " bytes");
    }
    if (scenario.both_ways && !reads) return refuse("both_ways", "needs operation = \"read\"");
    return true;
  }

  bool ReadQuantity() {
    using Kind = PublishedRow::Kind;
    size_t quantity = 0;
    if (!reader_.Choice("quantity", &quantity, kQuantities)) return false;
    row_.kind = static_cast<Kind>(static_cast<size_t>(Kind::kPcieWrites) + quantity);
    switch (row_.kind) {
      case Kind::kPcieWrites:
      case Kind::kPcieReads:
        row_.unit = "Gb/s";
        if (!reader_.Has("bytes")) return reader_.Refuse("bytes is missing");
        return reader_.Number("bytes", &row_.bytes, 1, 1 << 20);
      case Kind::kProfileValue:
        return ReadField();
      case Kind::kRnrTimers:
      case Kind::kAckTimeouts:
        row_.unit = "values";
        return ReadValues(row_.kind == Kind::kRnrTimers ? 32 : 31);
      default:
        if (row_.kind == Kind::kSrqStride) row_.unit = "B";
        return reader_.Number("max_wr", &row_.max_wr, 1, row_.scenario.profile.limits.max_srq_wr) &&
               reader_.Number("max_sge", &row_.max_sge, 1,
                              row_.scenario.profile.limits.max_srq_sge);
    }
  }

  bool ReadField() {
    if (!reader_.RequiredText("field", &row_.field) || !reader_.Text("unit", &row_.unit)) {
      return false;
    }
    for (const Field& field : FieldsOf(row_.scenario.profile)) {
      if (field.full_name() != row_.field) continue;
      if (std::holds_alternative<std::string*>(field.target)) break;
      const bool needs_unit =
          field.quantity == Quantity::kTime || field.quantity == Quantity::kRate;
      if (!needs_unit || UnitFactor(field.quantity, row_.unit) != 0) return true;
      return reader_.Refuse("unit: accepted is one of " + UnitNames(field.quantity));
    }
    return reader_.Refuse(*reader_.Find("field"),
                          "field: accepted is a number of the profile, such as limits.max_srq_wr "
                          "(./simhca profiles show lists them)");
  }

  bool ReadValues(size_t count) {
    const toml::node* node = reader_.Find("values");
    const toml::array* list = node == nullptr ? nullptr : node->as_array();
    for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
      Value value = 0;
      if (!IsNumber((*list)[i], &value)) break;
      row_.values.push_back(value);
    }
    if (row_.values.size() != count || list->size() != count) {
      const std::string why = "values: accepted is a list of " + std::to_string(count) + " numbers";
      return node == nullptr ? reader_.Refuse(why) : reader_.Refuse(*node, why);
    }
    row_.published = static_cast<Value>(count);
    return true;
  }

  bool ReadPublished() {
    if (!row_.values.empty()) return true;
    if (const toml::node* node = reader_.Find("published")) {
      Value value = 0;
      if (!IsNumber(*node, &value)) return reader_.Refuse(*node, "published: accepted is a number");
      row_.published = value;
      row_.decimals = DecimalsOf(value);
    }
    const toml::node* node = reader_.Find("tolerance");
    if (node == nullptr) return reader_.Refuse("tolerance is missing");
    if (!ReadTolerance(*node)) {
      return reader_.Refuse(*node,
                            "tolerance: accepted is a percentage above 0 and up to 100, \"exact\", "
                            "\"at most\", or { min = ..., max = ... }");
    }
    if (!row_.published && row_.tolerance.kind != Tolerance::Kind::kRange) {
      return reader_.Refuse("published is missing");
    }
    return true;
  }

  bool ReadTolerance(const toml::node& node) {
    Tolerance& tolerance = row_.tolerance;
    if (const auto* text = node.as_string()) {
      tolerance.kind = text->get() == "exact" ? Tolerance::Kind::kExact : Tolerance::Kind::kAtMost;
      return text->get() == "exact" || text->get() == "at most";
    }
    if (const toml::table* range = node.as_table()) {
      tolerance.kind = Tolerance::Kind::kRange;
      const toml::node* min = range->get("min");
      const toml::node* max = range->get("max");
      return range->size() == 2 && min != nullptr && max != nullptr &&
             IsNumber(*min, &tolerance.min) && IsNumber(*max, &tolerance.max) &&
             tolerance.min <= tolerance.max;
    }
    tolerance.kind = Tolerance::Kind::kPercent;
    return IsNumber(node, &tolerance.percent) && tolerance.percent > 0 && tolerance.percent <= 100;
  }

  const std::string& file_name_;
  TableReader reader_;
  const std::vector<PublishedRow>& earlier_;
  PublishedRow row_;
};

// Takes a whole file apart.
class FileReader {
 public:
  FileReader(const std::string& file_name, PublishedRows* result)
      : file_name_(file_name), result_(result) {}

  bool Read(const toml::table& document) {
    TableReader reader(file_name_, document);
    const toml::node* rows = reader.Find("row");
    const toml::node* fitted = reader.Find("fitted");
    if (!reader.NoOthers()) return Failed(reader.error());
    if (rows == nullptr || !rows->is_array_of_tables()) {
      reader.Refuse(rows == nullptr ? document : *rows, "accepted is a list of tables [[row]]");
      return Failed(reader.error());
    }
    for (const toml::node& node : *rows->as_array()) {
      RowReader row(file_name_, *node.as_table(), result_->rows);
      if (!row.Read()) return Failed(row.error());
      result_->rows.push_back(std::move(row.row()));
    }
    if (fitted == nullptr) return true;
    if (!fitted->is_array_of_tables()) {
      reader.Refuse(*fitted, "accepted is a list of tables [[fitted]]");
      return Failed(reader.error());
    }
    for (const toml::node& node : *fitted->as_array()) {
      if (!ReadFitted(*node.as_table())) return false;
    }
    return CheckCounts();
  }

 private:
  bool Failed(const std::string& error) {
    result_->error = error;
    return false;
  }

  const PublishedRow* Find(const std::string& name) const {
    for (const PublishedRow& row : result_->rows) {
      if (row.name == name) return &row;
    }
    return nullptr;
  }

  bool ReadFitted(const toml::table& table) {
    TableReader reader(file_name_, table);
    FittedParameter fitted;
    fitted.line = reader.line();
    if (!reader.RequiredText("profile", &fitted.profile) ||
        !reader.RequiredText("parameter", &fitted.parameter) ||
        !reader.Texts("rows", &fitted.rows) || !reader.NoOthers()) {
      return Failed(reader.error());
    }
    if (fitted.rows.empty()) reader.Refuse("rows is missing");
    for (const std::string& name : fitted.rows) {
      const PublishedRow* row = Find(name);
      if (row == nullptr || !row->calibrates) {
        reader.Refuse(*table.get("rows"), "rows: \"" + name + "\" is no row of use \"calibrate\"");
      }
    }
    ProfileResult profile = FindProfile(fitted.profile);
    if (!profile) {
      reader.Refuse(*table.get("profile"), "profile: " + profile.error);
    } else {
      const std::vector<Field> fields = FieldsOf(*profile.profile);
      const bool known = std::any_of(fields.begin(), fields.end(), [&](const Field& field) {
        return field.section == "costs" && field.full_name() == fitted.parameter;
      });
      if (!known) {
        reader.Refuse(*table.get("parameter"),
                      "parameter: accepted is a cost of the profile, such "
                      "as costs.cache_miss");
      }
    }
    if (!reader.ok()) return Failed(reader.error());
    result_->fitted.push_back(std::move(fitted));
    return true;
  }

  // More parameters than figures would fit anything.
  bool CheckCounts() {
    const auto calibrating = std::count_if(result_->rows.begin(), result_->rows.end(),
                                           [](const PublishedRow& row) { return row.calibrates; });
    if (result_->fitted.size() <= static_cast<size_t>(calibrating)) return true;
    return Failed(file_name_ + ":" + std::to_string(result_->fitted[calibrating].line) + ": " +
                  std::to_string(result_->fitted.size()) + " fitted parameters; accepted are as " +
                  "many as there are rows of use \"calibrate\", " + std::to_string(calibrating));
  }

  const std::string& file_name_;
  PublishedRows* result_;
};

}  // namespace

PublishedRows ParsePublishedRows(std::string_view text, const std::string& file_name) {
  PublishedRows result;
  const toml::parse_result document = toml::parse(text, file_name);
  if (!document) {
    result.error = file_name + ":" + std::to_string(document.error().source().begin.line) + ": " +
                   std::string(document.error().description());
    return result;
  }
  FileReader(file_name, &result).Read(document.table());
  return result;
}

PublishedRows LoadPublishedRows(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  char block[4096];
  while (file && text.size() <= kLargestFile) {
    file.read(block, sizeof(block));
    text.append(block, static_cast<size_t>(file.gcount()));
  }
  // A folder opens, and cannot be read.
  if (!file.eof() || text.size() > kLargestFile) {
    PublishedRows result;
    result.error = path + ": cannot be read: " +
                   (text.size() > kLargestFile ? "it is larger than 1 MiB" : std::strerror(errno));
    return result;
  }
  return ParsePublishedRows(text, path);
}

}  // namespace simhca::bench
