#ifndef SIMHCA_VERBS_SHIM_ROUTE_ROUTER_H_
#define SIMHCA_VERBS_SHIM_ROUTE_ROUTER_H_

#include <infiniband/verbs.h>

namespace simhca::route {

// The device list that SIMHCA_ROUTE asks for, as ibv_get_device_list returns it: an array ending
// in null, to be given back with FreeDevices.  `count` may be null.  On failure returns null and
// sets errno: EINVAL for a wrong SIMHCA_ROUTE (explained on standard error, once), ENOSYS if the
// route asks for nothing but hardware and the machine has no verbs library, else what the real
// library or the simulator's configuration said.
ibv_device** ListDevices(int* count);

// Frees the array and the real library's list behind it.  Null is allowed.
void FreeDevices(ibv_device** list);

}  // namespace simhca::route

#endif  // SIMHCA_VERBS_SHIM_ROUTE_ROUTER_H_
