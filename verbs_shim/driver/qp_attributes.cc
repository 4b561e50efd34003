#include "verbs_shim/driver/qp_attributes.h"

#include <algorithm>
#include <cstring>

namespace simhca::driver {

namespace {

constexpr uint32_t kPsnMask = 0xffffff;

AddressVector ToDevice(const ibv_ah_attr& attr) {
  AddressVector av;
  std::memcpy(av.dgid.data(), attr.grh.dgid.raw, av.dgid.size());
  av.flow_label = attr.grh.flow_label;
  av.sgid_index = attr.grh.sgid_index;
  av.hop_limit = attr.grh.hop_limit;
  av.traffic_class = attr.grh.traffic_class;
  av.dlid = attr.dlid;
  av.sl = attr.sl;
  av.src_path_bits = attr.src_path_bits;
  av.static_rate = attr.static_rate;
  av.port = attr.port_num;
  av.is_global = attr.is_global != 0;
  return av;
}

void FromDevice(const AddressVector& av, ibv_ah_attr* attr) {
  std::memcpy(attr->grh.dgid.raw, av.dgid.data(), av.dgid.size());
  attr->grh.flow_label = av.flow_label;
  attr->grh.sgid_index = av.sgid_index;
  attr->grh.hop_limit = av.hop_limit;
  attr->grh.traffic_class = av.traffic_class;
  attr->dlid = av.dlid;
  attr->sl = av.sl;
  attr->src_path_bits = av.src_path_bits;
  attr->static_rate = av.static_rate;
  attr->port_num = av.port;
  attr->is_global = av.is_global ? 1 : 0;
}

// The application may have put any number there: what is too large stays too large.
template <typename Enum>
uint8_t ToByte(Enum value) {
  return static_cast<uint8_t>(std::min(static_cast<uint32_t>(value), 0xffu));
}

}  // namespace

QpAttributes ToDevice(const ibv_qp_attr& attr, int mask) {
  QpAttributes out;
  const auto has = [mask](int bit) { return (mask & bit) != 0; };
  if (has(IBV_QP_STATE)) out.state = static_cast<QpState>(attr.qp_state);
  if (has(IBV_QP_CUR_STATE)) out.current_state = static_cast<QpState>(attr.cur_qp_state);
  if (has(IBV_QP_EN_SQD_ASYNC_NOTIFY)) out.en_sqd_async_notify = attr.en_sqd_async_notify != 0;
  if (has(IBV_QP_ACCESS_FLAGS)) out.access_flags = attr.qp_access_flags;
  if (has(IBV_QP_PKEY_INDEX)) out.pkey_index = attr.pkey_index;
  if (has(IBV_QP_PORT)) out.port = attr.port_num;
  if (has(IBV_QP_QKEY)) out.qkey = attr.qkey;
  if (has(IBV_QP_AV)) out.av = ToDevice(attr.ah_attr);
  if (has(IBV_QP_PATH_MTU)) out.path_mtu = ToByte(attr.path_mtu);
  if (has(IBV_QP_TIMEOUT)) out.timeout = attr.timeout;
  if (has(IBV_QP_RETRY_CNT)) out.retry_count = attr.retry_cnt;
  if (has(IBV_QP_RNR_RETRY)) out.rnr_retry = attr.rnr_retry;
  if (has(IBV_QP_RQ_PSN)) out.rq_psn = attr.rq_psn & kPsnMask;
  if (has(IBV_QP_MAX_QP_RD_ATOMIC)) out.max_rd_atomic = attr.max_rd_atomic;
  if (has(IBV_QP_ALT_PATH)) {
    out.alt_av = ToDevice(attr.alt_ah_attr);
    out.alt_port = attr.alt_port_num;
  }
  if (has(IBV_QP_MIN_RNR_TIMER)) out.min_rnr_timer = attr.min_rnr_timer;
  if (has(IBV_QP_SQ_PSN)) out.sq_psn = attr.sq_psn & kPsnMask;
  if (has(IBV_QP_MAX_DEST_RD_ATOMIC)) out.max_dest_rd_atomic = attr.max_dest_rd_atomic;
  if (has(IBV_QP_PATH_MIG_STATE)) out.path_mig_state = ToByte(attr.path_mig_state);
  if (has(IBV_QP_DEST_QPN)) out.dest_qpn = attr.dest_qp_num;
  return out;
}

void FromDevice(const QpAttributes& in, ibv_qp_attr* attr) {
  attr->qp_state = static_cast<ibv_qp_state>(in.state);
  attr->cur_qp_state = static_cast<ibv_qp_state>(in.state);
  attr->path_mtu = static_cast<ibv_mtu>(in.path_mtu);
  attr->path_mig_state = static_cast<ibv_mig_state>(in.path_mig_state);
  attr->qkey = in.qkey;
  attr->rq_psn = in.rq_psn;
  attr->sq_psn = in.sq_psn;
  attr->dest_qp_num = in.dest_qpn;
  attr->qp_access_flags = in.access_flags;
  FromDevice(in.av, &attr->ah_attr);
  FromDevice(in.alt_av, &attr->alt_ah_attr);
  attr->pkey_index = in.pkey_index;
  attr->en_sqd_async_notify = in.en_sqd_async_notify ? 1 : 0;
  attr->sq_draining = in.sq_draining ? 1 : 0;
  attr->max_rd_atomic = in.max_rd_atomic;
  attr->max_dest_rd_atomic = in.max_dest_rd_atomic;
  attr->min_rnr_timer = in.min_rnr_timer;
  attr->port_num = in.port;
  attr->timeout = in.timeout;
  attr->retry_cnt = in.retry_count;
  attr->rnr_retry = in.rnr_retry;
  attr->alt_port_num = in.alt_port;
}

}  // namespace simhca::driver
