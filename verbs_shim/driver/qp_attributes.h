#ifndef SIMHCA_VERBS_SHIM_DRIVER_QP_ATTRIBUTES_H_
#define SIMHCA_VERBS_SHIM_DRIVER_QP_ATTRIBUTES_H_

#include <infiniband/verbs.h>

#include "sim/transport/attributes.h"

namespace simhca::driver {

// Between the verbs' attribute structure and the device's; the values are the same numbers.  Only
// what `mask` names is meaningful in the application's structure.
QpAttributes ToDevice(const ibv_qp_attr& attr, int mask);
// `cap` is the driver's own and left alone.
void FromDevice(const QpAttributes& attributes, ibv_qp_attr* attr);

}  // namespace simhca::driver

#endif  // SIMHCA_VERBS_SHIM_DRIVER_QP_ATTRIBUTES_H_
