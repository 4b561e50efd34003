#include "verbs_shim/abi/export.h"
#include "verbs_shim/driver/driver.h"
#include "verbs_shim/driver/log.h"
#include "verbs_shim/route/router.h"

// Devices and contexts: man ibv_get_device_list, ibv_open_device, ibv_query_device, ibv_query_port,
// ibv_query_gid, ibv_query_pkey, ibv_import_device.

namespace simhca::abi {

SIMHCA_EXPORT ibv_device** ibv_get_device_list(int* num_devices) {
  return route::ListDevices(num_devices);
}

SIMHCA_EXPORT void ibv_free_device_list(ibv_device** list) { route::FreeDevices(list); }

SIMHCA_EXPORT const char* ibv_get_device_name(ibv_device* device) {
  SIMHCA_REAL_VERB(ibv_get_device_name, "IBVERBS_1.1");
  if (driver::Owns(device)) return driver::GetDeviceName(device);
  if (auto* call = real.For(device)) return call(device);
  return Null(Foreign(__func__, device));
}

SIMHCA_EXPORT __be64 ibv_get_device_guid(ibv_device* device) {
  SIMHCA_REAL_VERB(ibv_get_device_guid, "IBVERBS_1.1");
  if (driver::Owns(device)) return driver::GetDeviceGuid(device);
  if (auto* call = real.For(device)) return call(device);
  Foreign(__func__, device);
  return 0;
}

SIMHCA_EXPORT int ibv_get_device_index(ibv_device* device) {
  SIMHCA_REAL_VERB(ibv_get_device_index, "IBVERBS_1.9");
  if (driver::Owns(device)) return driver::GetDeviceIndex(device);
  if (auto* call = real.For(device)) return call(device);
  return MinusOne(Foreign(__func__, device));
}

SIMHCA_EXPORT ibv_context* ibv_open_device(ibv_device* device) {
  SIMHCA_REAL_VERB(ibv_open_device, "IBVERBS_1.1");
  if (driver::Owns(device)) return driver::OpenDevice(device);
  if (auto* call = real.For(device)) return call(device);
  return Null(Foreign(__func__, device));
}

SIMHCA_EXPORT int ibv_close_device(ibv_context* context) {
  SIMHCA_REAL_VERB(ibv_close_device, "IBVERBS_1.1");
  if (driver::Owns(context)) return driver::CloseDevice(context);
  if (auto* call = real.For(context)) return call(context);
  return MinusOne(Foreign(__func__, context));
}

SIMHCA_EXPORT ibv_context* ibv_import_device(int cmd_fd) {
  SIMHCA_REAL_VERB(ibv_import_device, "IBVERBS_1.10");
  if (driver::OwnsCommandFd(cmd_fd)) return driver::ImportDevice(cmd_fd);
  if (auto* call = real.Get()) return call(cmd_fd);
  return Null(driver::Refuse(EINVAL, __func__, nullptr,
                             "descriptor {} is not of a simulated device", cmd_fd));
}

SIMHCA_EXPORT int ibv_query_device(ibv_context* context, ibv_device_attr* attr) {
  SIMHCA_REAL_VERB(ibv_query_device, "IBVERBS_1.1");
  if (driver::Owns(context)) return driver::QueryDevice(context, attr);
  if (auto* call = real.For(context)) return call(context, attr);
  return Foreign(__func__, context);
}

SIMHCA_EXPORT int ibv_query_port(ibv_context* context, uint8_t port_num,
                                 _compat_ibv_port_attr* attr) {
  SIMHCA_REAL_VERB(ibv_query_port, "IBVERBS_1.1");
  if (driver::Owns(context)) return driver::QueryPort(context, port_num, attr);
  if (auto* call = real.For(context)) return call(context, port_num, attr);
  return Foreign(__func__, context);
}

SIMHCA_EXPORT int ibv_query_gid(ibv_context* context, uint8_t port_num, int index, ibv_gid* gid) {
  SIMHCA_REAL_VERB(ibv_query_gid, "IBVERBS_1.1");
  if (driver::Owns(context)) return driver::QueryGid(context, port_num, index, gid);
  if (auto* call = real.For(context)) return call(context, port_num, index, gid);
  return MinusOne(Foreign(__func__, context));
}

SIMHCA_EXPORT int _ibv_query_gid_ex(ibv_context* context, uint32_t port_num, uint32_t gid_index,
                                    ibv_gid_entry* entry, uint32_t flags, size_t entry_size) {
  SIMHCA_REAL_VERB(_ibv_query_gid_ex, "IBVERBS_1.11");
  if (driver::Owns(context)) {
    return driver::QueryGidEx(context, port_num, gid_index, entry, flags, entry_size);
  }
  if (auto* call = real.For(context)) {
    return call(context, port_num, gid_index, entry, flags, entry_size);
  }
  return Foreign(__func__, context);
}

SIMHCA_EXPORT ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries,
                                           size_t max_entries, uint32_t flags, size_t entry_size) {
  SIMHCA_REAL_VERB(_ibv_query_gid_table, "IBVERBS_1.11");
  if (driver::Owns(context)) {
    return driver::QueryGidTable(context, entries, max_entries, flags, entry_size);
  }
  if (auto* call = real.For(context)) return call(context, entries, max_entries, flags, entry_size);
  return -Foreign(__func__, context);
}

SIMHCA_EXPORT int ibv_query_pkey(ibv_context* context, uint8_t port_num, int index, __be16* pkey) {
  SIMHCA_REAL_VERB(ibv_query_pkey, "IBVERBS_1.1");
  if (driver::Owns(context)) return driver::QueryPkey(context, port_num, index, pkey);
  if (auto* call = real.For(context)) return call(context, port_num, index, pkey);
  return MinusOne(Foreign(__func__, context));
}

SIMHCA_EXPORT int ibv_get_pkey_index(ibv_context* context, uint8_t port_num, __be16 pkey) {
  SIMHCA_REAL_VERB(ibv_get_pkey_index, "IBVERBS_1.5");
  if (driver::Owns(context)) return driver::GetPkeyIndex(context, port_num, pkey);
  if (auto* call = real.For(context)) return call(context, port_num, pkey);
  return MinusOne(Foreign(__func__, context));
}

}  // namespace simhca::abi
