#include <bitset>
#include <iomanip>
#include <optional>
#include <sstream>

#include "sim/fabric/fabric_list.h"
#include "sim/profiles/device_plan.h"
#include "sim/profiles/fields.h"
#include "sim/profiles/profile_loader.h"
#include "sim/tools/commands.h"
#include "sim/tools/table.h"
#include "sim/wire/gid.h"

namespace simhca {
namespace {

std::optional<DeviceProfile> Find(const std::string& name_or_path, std::ostream& errors) {
  ProfileResult result = FindProfile(name_or_path);
  if (!result) errors << result.error << '\n';
  return std::move(result.profile);
}

// As ibv_devinfo shows a vendor id.
std::string Hex(uint32_t value) {
  std::ostringstream text;
  text << "0x" << std::hex << std::setw(4) << std::setfill('0') << value;
  return text.str();
}

std::string LinkLayerName(LinkLayer layer) {
  return layer == LinkLayer::kEthernet ? "RoCE" : "InfiniBand";
}

std::string Summary(const DeviceProfile& profile) {
  std::ostringstream text;
  text << LinkLayerName(profile.identity.link_layer) << ", "
       << profile.costs.wire_bits_per_second / 1'000'000'000 << " Gb/s, "
       << (profile.features.rounding == Rounding::kExact ? "exact sizes" : "mlx5 sizes") << ", ";
  if (profile.features.srq) {
    text << profile.limits.max_srq << " SRQs of " << profile.limits.max_srq_wr << " WRs";
  } else {
    text << "no SRQ";
  }
  return text.str();
}

std::string SourceOf(const DeviceProfile& profile, const Field& field) {
  const auto source = profile.sources.find(field.full_name());
  return source == profile.sources.end() ? "" : source->second;
}

}  // namespace

int ListProfiles(std::ostream& out, std::ostream& errors) {
  Table table;
  table.Add({"PROFILE", "VENDOR", "PART", "WHAT IT IS"});
  for (std::string_view name : BuiltinProfileNames()) {
    const std::optional<DeviceProfile> profile = Find(std::string(name), errors);
    if (!profile) return 1;
    table.Add({std::string(name), Hex(profile->identity.vendor_id),
               Hex(profile->identity.vendor_part_id), Summary(*profile)});
  }
  table.Print(out);
  return 0;
}

int ShowProfile(const std::string& name_or_path, std::ostream& out, std::ostream& errors) {
  std::optional<DeviceProfile> profile = Find(name_or_path, errors);
  if (!profile) return 1;
  Table table;
  table.Add({"KEY", "VALUE", "SOURCE"});
  for (const Field& field : FieldsOf(*profile)) {
    table.Add({field.full_name(), FormatValue(field), SourceOf(*profile, field)});
  }
  table.Print(out);
  return 0;
}

int DiffProfiles(const std::string& left, const std::string& right, std::ostream& out,
                 std::ostream& errors) {
  std::optional<DeviceProfile> left_profile = Find(left, errors);
  std::optional<DeviceProfile> right_profile = Find(right, errors);
  if (!left_profile || !right_profile) return 1;
  const std::vector<Field> left_fields = FieldsOf(*left_profile);
  const std::vector<Field> right_fields = FieldsOf(*right_profile);
  Table table;
  table.Add({"KEY", left, right, "SOURCE OF " + left, "SOURCE OF " + right});
  for (size_t i = 0; i < left_fields.size(); ++i) {
    const std::string left_value = FormatValue(left_fields[i]);
    const std::string right_value = FormatValue(right_fields[i]);
    if (left_value != right_value) {
      table.Add({left_fields[i].full_name(), left_value, right_value,
                 SourceOf(*left_profile, left_fields[i]),
                 SourceOf(*right_profile, right_fields[i])});
    }
  }
  table.Print(out);
  return 0;
}

int ListDevices(const std::string& fabric, const std::string& directory, std::ostream& out,
                std::ostream& errors) {
  const DevicePlan plan = PlanDevicesFromEnvironment();
  if (!plan.ok()) {
    errors << plan.error << '\n';
    return 1;
  }
  std::bitset<kMaxFabricPorts> down;  // on a fabric that lives
  for (const FabricInfo& info : ListFabrics(directory)) {
    if (info.name == fabric && !info.processes.empty()) down = info.ports_down;
  }
  Table table;
  table.Add({"DEVICE", "PROFILE", "LINK", "PORT", "GID 0", "GID 1"});
  for (size_t i = 0; i < plan.devices.size(); ++i) {
    const uint16_t port = static_cast<uint16_t>(i);
    const DeviceProfile::Identity& identity = plan.devices[i].profile.identity;
    table.Add({plan.devices[i].name, identity.name, LinkLayerName(identity.link_layer),
               down[port] ? "down" : "active", FormatGid(GidOfPort(port, 0)),
               FormatGid(GidOfPort(port, 1))});
  }
  table.Print(out);
  return 0;
}

}  // namespace simhca
