#ifndef SIMHCA_VERBS_SHIM_DRIVER_DEVICE_QUERY_H_
#define SIMHCA_VERBS_SHIM_DRIVER_DEVICE_QUERY_H_

#include <infiniband/verbs.h>

#include <cstddef>

// The queries that verbs_context points to; those that are symbols are in driver.h.
namespace simhca::driver {

// Writes at most `length` bytes of the structure: older programs know fewer members.
int QueryDeviceEx(ibv_context* context, const ibv_query_device_ex_input* input,
                  ibv_device_attr_ex* attr, size_t length);
int QueryPortEx(ibv_context* context, uint8_t port, ibv_port_attr* attr, size_t length);

// raw_clock.tv_nsec is the device clock in ticks of hca_core_clock, tv_sec is 0, as mlx5 does.
int QueryRtValues(ibv_context* context, ibv_values_ex* values);

}  // namespace simhca::driver

#endif  // SIMHCA_VERBS_SHIM_DRIVER_DEVICE_QUERY_H_
