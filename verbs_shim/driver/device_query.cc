#include "verbs_shim/driver/device_query.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "sim/wire/gid.h"
#include "verbs_shim/driver/context.h"
#include "verbs_shim/driver/driver.h"
#include "verbs_shim/driver/log.h"
#include "verbs_shim/driver/process.h"
#include "verbs_shim/driver/result.h"

// man ibv_query_device, ibv_query_device_ex, ibv_query_port, ibv_query_rt_values_ex.

namespace simhca::driver {

namespace {

constexpr uint8_t kLinkUp = 5;  // physical port states
constexpr uint8_t kLinkDisabled = 3;
constexpr uint8_t kLinkLayerMaxVl = 4;
constexpr uint8_t kSubnetTimeout = 18;
// Of ibv_port_attr, what programs built with old headers have room for.
constexpr size_t kOldPortAttrBytes = offsetof(ibv_port_attr, flags) + 1;

__be64 GuidOf(size_t port_index) {
  return std::bit_cast<__be64>(NodeGuidOfPort(static_cast<uint16_t>(port_index)));
}

void Fill(const Context& context, ibv_device_attr* attr) {
  const DeviceProfile& profile = context.profile;
  const DeviceProfile::Limits& limits = profile.limits;
  *attr = {};
  std::snprintf(attr->fw_ver, sizeof(attr->fw_ver), "%s", profile.identity.fw_ver.c_str());
  attr->node_guid = attr->sys_image_guid = GuidOf(context.listed.index);
  attr->max_mr_size = limits.max_mr_size;
  attr->page_size_cap = limits.page_size_cap;
  attr->vendor_id = profile.identity.vendor_id;
  attr->vendor_part_id = profile.identity.vendor_part_id;
  attr->hw_ver = profile.identity.hw_ver;
  attr->max_qp = static_cast<int>(limits.max_qp);
  attr->max_qp_wr = static_cast<int>(limits.max_qp_wr);
  attr->device_cap_flags = IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID |
                           IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_CURR_QP_STATE_MOD;
  if (profile.features.srq && profile.features.srq_resize) {
    attr->device_cap_flags |= IBV_DEVICE_SRQ_RESIZE;
  }
  attr->max_sge = static_cast<int>(limits.max_sge);
  attr->max_sge_rd = static_cast<int>(limits.max_sge_rd);
  attr->max_cq = static_cast<int>(limits.max_cq);
  attr->max_cqe = static_cast<int>(limits.max_cqe);
  attr->max_mr = static_cast<int>(limits.max_mr);
  attr->max_pd = static_cast<int>(limits.max_pd);
  attr->max_qp_rd_atom = static_cast<int>(limits.max_qp_rd_atom);
  attr->max_res_rd_atom = static_cast<int>(limits.max_res_rd_atom);
  attr->max_qp_init_rd_atom = static_cast<int>(limits.max_qp_init_rd_atom);
  attr->atomic_cap = static_cast<ibv_atomic_cap>(profile.features.atomic_cap);
  attr->max_mw = static_cast<int>(limits.max_mw);
  attr->max_mcast_grp = static_cast<int>(limits.max_mcast_grp);
  attr->max_mcast_qp_attach = static_cast<int>(limits.max_mcast_qp_attach);
  attr->max_total_mcast_qp_attach = static_cast<int>(limits.max_total_mcast_qp_attach);
  attr->max_ah = static_cast<int>(limits.max_ah);
  if (profile.features.srq) {
    attr->max_srq = static_cast<int>(limits.max_srq);
    attr->max_srq_wr = static_cast<int>(limits.max_srq_wr);
    attr->max_srq_sge = static_cast<int>(limits.max_srq_sge);
  }
  attr->max_pkeys = static_cast<uint16_t>(limits.max_pkeys);
  attr->local_ca_ack_delay = static_cast<uint8_t>(limits.local_ca_ack_delay);
  attr->phys_port_cnt = static_cast<uint8_t>(limits.phys_port_cnt);
}

void Fill(const Context& context, bool up, ibv_port_attr* attr) {
  const DeviceProfile& profile = context.profile;
  const bool ethernet = profile.identity.link_layer == LinkLayer::kEthernet;
  *attr = {};
  attr->state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  attr->max_mtu = static_cast<ibv_mtu>(profile.port.max_mtu);
  attr->active_mtu = static_cast<ibv_mtu>(profile.port.active_mtu);
  attr->gid_tbl_len = static_cast<int>(profile.limits.gid_table_len);
  attr->port_cap_flags = ethernet ? IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS : IBV_PORT_CM_SUP;
  attr->max_msg_sz = profile.limits.max_msg_sz;
  attr->pkey_tbl_len = static_cast<uint16_t>(std::max(profile.limits.max_pkeys, 1u));
  attr->max_vl_num = kLinkLayerMaxVl;
  attr->subnet_timeout = kSubnetTimeout;
  attr->active_width = static_cast<uint8_t>(profile.port.active_width);
  attr->active_speed = static_cast<uint8_t>(profile.port.active_speed);
  attr->phys_state = up ? kLinkUp : kLinkDisabled;
  if (ethernet) {
    attr->link_layer = IBV_LINK_LAYER_ETHERNET;
  } else {
    attr->link_layer = IBV_LINK_LAYER_INFINIBAND;
    attr->lid = LidOfPort(static_cast<uint16_t>(context.listed.index));
    attr->sm_lid = 1;
  }
}

// The port number of ports that exist is 1 (up to phys_port_cnt).
bool IsPort(const Context& context, uint32_t port) {
  return port >= 1 && port <= context.profile.limits.phys_port_cnt;
}

Gid GidAt(const Context& context, uint32_t index) {
  return GidOfPort(static_cast<uint16_t>(context.listed.index), index);
}

uint32_t GidTypeOf(const Context& context) {
  return context.profile.identity.link_layer == LinkLayer::kEthernet ? IBV_GID_TYPE_ROCE_V2
                                                                     : IBV_GID_TYPE_IB;
}

// Entries in use at the start of the GID table.
uint32_t UsedGids(const Context& context) {
  return std::min(kGidsPerPort, context.profile.limits.gid_table_len);
}

ibv_gid_entry GidEntry(const Context& context, uint32_t port, uint32_t index) {
  ibv_gid_entry entry{};
  const Gid gid = GidAt(context, index);
  std::memcpy(entry.gid.raw, gid.data(), gid.size());
  entry.gid_index = index;
  entry.port_num = port;
  entry.gid_type = GidTypeOf(context);
  return entry;
}

const ListedDevice* FindListed(ibv_device* device) {
  if (device == nullptr || !Objects().IsLive(device, Kind::kDevice)) return nullptr;
  return reinterpret_cast<const ListedDevice*>(device);
}

constexpr uint16_t kDefaultPkey = 0xffff;
constexpr const char* kHasFailed = "the device has had a fatal error";

}  // namespace

bool Owns(const void* object) { return Objects().Owns(object); }

int GetDevices(std::vector<ibv_device*>* devices) {
  if (const int error = Process::Get().Configure()) return error;
  for (ListedDevice* device : Process::Get().devices()) devices->push_back(&device->verbs);
  return 0;
}

const char* GetDeviceName(ibv_device* device) { return device->name; }

__be64 GetDeviceGuid(ibv_device* device) {
  const ListedDevice* listed = FindListed(device);
  return listed != nullptr ? GuidOf(listed->index) : 0;
}

std::string GetBoardId(ibv_device* device) {
  const ListedDevice* listed = FindListed(device);
  return listed != nullptr ? listed->profile->identity.board_id : std::string();
}

int GetDeviceIndex(ibv_device* device) {
  const ListedDevice* listed = FindListed(device);
  return listed != nullptr ? static_cast<int>(kFirstUverbsNumber + listed->index) : -1;
}

int QueryDevice(ibv_context* public_context, ibv_device_attr* attr) {
  Context* context;
  if (const int error = FindContext(public_context, &context)) {
    return Refuse(error, "ibv_query_device", public_context, "not an open context");
  }
  if (attr == nullptr) return EINVAL;
  if (context->device->failed()) {
    return Refuse(EIO, "ibv_query_device", public_context, kHasFailed);
  }
  Fill(*context, attr);
  return 0;
}

int QueryDeviceEx(ibv_context* public_context, const ibv_query_device_ex_input* input,
                  ibv_device_attr_ex* attr, size_t length) {
  Context* context;
  if (const int error = FindContext(public_context, &context)) {
    return Refuse(error, "ibv_query_device_ex", public_context, "not an open context");
  }
  if ((input != nullptr && input->comp_mask != 0) || attr == nullptr) return EINVAL;
  if (context->device->failed()) {
    return Refuse(EIO, "ibv_query_device_ex", public_context, kHasFailed);
  }
  ibv_device_attr_ex full{};
  Fill(*context, &full.orig_attr);
  const DeviceProfile::Limits& limits = context->profile.limits;
  full.completion_timestamp_mask = limits.completion_timestamp_mask;
  full.hca_core_clock = limits.hca_core_clock_khz;
  full.device_cap_flags_ex = full.orig_attr.device_cap_flags;
  full.phys_port_cnt_ex = limits.phys_port_cnt;
  std::memset(attr, 0, length);
  std::memcpy(attr, &full, std::min(length, sizeof(full)));
  return 0;
}

int QueryPortEx(ibv_context* public_context, uint8_t port, ibv_port_attr* attr, size_t length) {
  Context* context;
  if (const int error = FindContext(public_context, &context)) {
    return Refuse(error, "ibv_query_port", public_context, "not an open context");
  }
  if (!IsPort(*context, port)) {
    return Refuse(EINVAL, "ibv_query_port", public_context, "there is no port {}", port);
  }
  if (attr == nullptr) return EINVAL;
  bool up;
  if (const int error = context->device->QueryPort(&up)) {
    return Refuse(error, "ibv_query_port", public_context, kHasFailed);
  }
  ibv_port_attr full;
  Fill(*context, up, &full);
  std::memset(attr, 0, length);
  std::memcpy(attr, &full, std::min(length, sizeof(full)));
  return 0;
}

int QueryPort(ibv_context* context, uint8_t port, _compat_ibv_port_attr* attr) {
  return QueryPortEx(context, port, reinterpret_cast<ibv_port_attr*>(attr), kOldPortAttrBytes);
}

int QueryRtValues(ibv_context* public_context, ibv_values_ex* values) {
  Context* context;
  if (const int error = FindContext(public_context, &context)) return error;
  if (values == nullptr) return EINVAL;
  uint32_t answered = 0;
  if ((values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK) != 0) {
    values->raw_clock.tv_sec = 0;
    values->raw_clock.tv_nsec = static_cast<long>(ReadRawClock(*context));
    answered |= IBV_VALUES_MASK_RAW_CLOCK;
  }
  values->comp_mask = answered;
  return 0;
}

int QueryGid(ibv_context* public_context, uint8_t port, int index, ibv_gid* gid) {
  Context* context;
  if (const int error = FindContext(public_context, &context)) return MinusOne(error);
  if (!IsPort(*context, port) || index < 0 ||
      static_cast<uint32_t>(index) >= context->profile.limits.gid_table_len || gid == nullptr) {
    return MinusOne(
        Refuse(EINVAL, "ibv_query_gid", public_context, "port {}, index {}", port, index));
  }
  const Gid value = GidAt(*context, static_cast<uint32_t>(index));
  std::memcpy(gid->raw, value.data(), value.size());
  return 0;
}

int QueryGidEx(ibv_context* public_context, uint32_t port, uint32_t index, ibv_gid_entry* entry,
               uint32_t flags, size_t entry_size) {
  Context* context;
  if (const int error = FindContext(public_context, &context)) return error;
  if (!IsPort(*context, port) || index >= context->profile.limits.gid_table_len || flags != 0 ||
      entry == nullptr || entry_size < sizeof(ibv_gid_entry)) {
    return Refuse(EINVAL, "ibv_query_gid_ex", public_context, "port {}, index {}", port, index);
  }
  if (index >= UsedGids(*context)) return ENODATA;
  const ibv_gid_entry value = GidEntry(*context, port, index);
  std::memset(static_cast<void*>(entry), 0, entry_size);
  std::memcpy(entry, &value, sizeof(value));
  return 0;
}

ssize_t QueryGidTable(ibv_context* public_context, ibv_gid_entry* entries, size_t max_entries,
                      uint32_t flags, size_t entry_size) {
  Context* context;
  if (const int error = FindContext(public_context, &context)) return -error;
  const uint32_t used = UsedGids(*context);
  const size_t needed = size_t{used} * context->profile.limits.phys_port_cnt;
  if (entries == nullptr || flags != 0 || entry_size < sizeof(ibv_gid_entry) ||
      max_entries < needed) {
    return -Refuse(EINVAL, "ibv_query_gid_table", public_context, "room for {} of {} entries",
                   max_entries, needed);
  }
  auto* place = reinterpret_cast<std::byte*>(entries);
  for (uint32_t port = 1; port <= context->profile.limits.phys_port_cnt; ++port) {
    for (uint32_t index = 0; index < used; ++index, place += entry_size) {
      const ibv_gid_entry value = GidEntry(*context, port, index);
      std::memset(place, 0, entry_size);
      std::memcpy(place, &value, sizeof(value));
    }
  }
  return static_cast<ssize_t>(needed);
}

int QueryGidType(ibv_context* public_context, uint8_t port, unsigned int index,
                 unsigned int* type) {
  Context* context;
  if (const int error = FindContext(public_context, &context)) return MinusOne(error);
  if (!IsPort(*context, port) || index >= context->profile.limits.gid_table_len) {
    return MinusOne(EINVAL);
  }
  constexpr unsigned int kIbOrRoceV1 = 0;
  constexpr unsigned int kRoceV2 = 1;
  const bool used = index < UsedGids(*context);
  *type = used && GidTypeOf(*context) == IBV_GID_TYPE_ROCE_V2 ? kRoceV2 : kIbOrRoceV1;
  return 0;
}

int QueryPkey(ibv_context* public_context, uint8_t port, int index, __be16* pkey) {
  Context* context;
  if (const int error = FindContext(public_context, &context)) return MinusOne(error);
  if (!IsPort(*context, port) || index < 0 ||
      static_cast<uint32_t>(index) >= std::max(context->profile.limits.max_pkeys, 1u)) {
    return MinusOne(
        Refuse(EINVAL, "ibv_query_pkey", public_context, "port {}, index {}", port, index));
  }
  *pkey = index == 0 ? kDefaultPkey : 0;
  return 0;
}

int GetPkeyIndex(ibv_context* public_context, uint8_t port, __be16 pkey) {
  Context* context;
  if (const int error = FindContext(public_context, &context)) return MinusOne(error);
  // The same partition whichever of the two membership bits is asked for.
  const bool found = IsPort(*context, port) && (pkey | 0x0080) == kDefaultPkey;
  return found ? 0 : MinusOne(EINVAL);
}

int ResolveEthL2FromGid(ibv_context* public_context, ibv_ah_attr* attr,
                        uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t* vid) {
  constexpr uint16_t kNoVlan = 0xffff;
  Context* context;
  if (const int error = FindContext(public_context, &context)) return -error;
  if (attr == nullptr || attr->is_global == 0 || !IsPort(*context, attr->port_num)) return -EINVAL;
  Gid gid;
  std::memcpy(gid.data(), attr->grh.dgid.raw, gid.size());
  const std::optional<uint16_t> port = PortOfGid(gid);
  if (!port) return -EHOSTUNREACH;
  const MacAddress mac = MacOfPort(*port);
  std::memcpy(eth_mac, mac.data(), mac.size());
  if (vid != nullptr) *vid = kNoVlan;
  return 0;
}

}  // namespace simhca::driver
