#ifndef SIMHCA_VERBS_SHIM_DRIVER_DRIVER_H_
#define SIMHCA_VERBS_SHIM_DRIVER_DRIVER_H_

#include <infiniband/verbs.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// The user-space driver of the simulated devices, as seen from the exported verbs.
//
// Each function implements the verb of the same name (`ibv_create_cq` is CreateCq) with the verb's
// own signature, results and errors (man ibv_*; for the form of the results: 0 or a positive
// errno, or null and errno set, or -1).  The comments below only add what the man page leaves open.
//
// The caller has checked with Owns() the object that decides the route: the first parameter, or the
// one named at the function.  Every other pointer (a CQ in `ibv_qp_init_attr`, an attribute
// structure, ...) is as the application passed it: the driver checks those, null included.  An
// object that Owns() knows may also be a freed one: the verb then fails with EINVAL in its own
// form.  No function throws.
//
// The verbs that <infiniband/verbs.h> defines inline (post, poll, arm and all extended verbs) go
// through the function pointers that OpenDevice puts into `ibv_context` and `verbs_context`.

namespace simhca::driver {

// True if `object` is a device, context, PD, MR, MW, DM, XRCD, thread domain, CQ, completion
// channel, SRQ, QP, AH or WQ of the simulated devices, or was one and is still in quarantine.
// Compares addresses and never reads through `object`; null is never owned.
bool Owns(const void* object);

// True if `cmd_fd` is the command descriptor of a simulated device's context (of any process).
bool OwnsCommandFd(int cmd_fd);

// Appends the simulated devices in the order of their names.  The pointers are valid until the
// process ends.  Reads the configuration at the first call; returns 0, or a positive errno after
// one line on standard error if that is wrong.
int GetDevices(std::vector<ibv_device*>* devices);

const char* GetDeviceName(ibv_device* device);
__be64 GetDeviceGuid(ibv_device* device);
int GetDeviceIndex(ibv_device* device);
// What sysfs shows as the device's board_id; no verb of its own.
std::string GetBoardId(ibv_device* device);

ibv_context* OpenDevice(ibv_device* device);
int CloseDevice(ibv_context* context);

// Routed by OwnsCommandFd(cmd_fd).
ibv_context* ImportDevice(int cmd_fd);
ibv_pd* ImportPd(ibv_context* context, uint32_t pd_handle);
void UnimportPd(ibv_pd* pd);
ibv_mr* ImportMr(ibv_pd* pd, uint32_t mr_handle);
void UnimportMr(ibv_mr* mr);
ibv_dm* ImportDm(ibv_context* context, uint32_t dm_handle);
void UnimportDm(ibv_dm* dm);

int QueryDevice(ibv_context* context, ibv_device_attr* attr);

// The exported symbol behind programs built with old headers: writes only the first 48 bytes of
// `ibv_port_attr`, up to and including `flags`.  `verbs_context.query_port` serves the others.
int QueryPort(ibv_context* context, uint8_t port_num, _compat_ibv_port_attr* attr);

int QueryGid(ibv_context* context, uint8_t port_num, int index, ibv_gid* gid);

// 0 or a positive errno; ENODATA for an empty slot; EINVAL for an `entry_size` below 32.
int QueryGidEx(ibv_context* context, uint32_t port_num, uint32_t gid_index, ibv_gid_entry* entry,
               uint32_t flags, size_t entry_size);

// Number of valid entries, or a negative errno; entries are `entry_size` bytes apart.
ssize_t QueryGidTable(ibv_context* context, ibv_gid_entry* entries, size_t max_entries,
                      uint32_t flags, size_t entry_size);

// ibv_query_gid_type, which is in no public header: 0 or -1.  `*type` is 0 for InfiniBand and
// RoCE v1 (also for an empty slot), 1 for RoCE v2.
int QueryGidType(ibv_context* context, uint8_t port_num, unsigned int index, unsigned int* type);

int QueryPkey(ibv_context* context, uint8_t port_num, int index, __be16* pkey);

// Index, or -1.
int GetPkeyIndex(ibv_context* context, uint8_t port_num, __be16 pkey);

ibv_pd* AllocPd(ibv_context* context);
int DeallocPd(ibv_pd* pd);

// The three registrations differ in where the region starts (`addr` for RegMr) and in how the
// bits of IBV_ACCESS_OPTIONAL_RANGE are treated: RegMrIova2 drops those that are unsupported.
ibv_mr* RegMr(ibv_pd* pd, void* addr, size_t length, int access);
ibv_mr* RegMrIova(ibv_pd* pd, void* addr, size_t length, uint64_t iova, int access);
ibv_mr* RegMrIova2(ibv_pd* pd, void* addr, size_t length, uint64_t iova, unsigned int access);
ibv_mr* RegDmabufMr(ibv_pd* pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access);
int ReregMr(ibv_mr* mr, int flags, ibv_pd* pd, void* addr, size_t length, int access);
int DeregMr(ibv_mr* mr);

ibv_comp_channel* CreateCompChannel(ibv_context* context);
int DestroyCompChannel(ibv_comp_channel* channel);

ibv_cq* CreateCq(ibv_context* context, int cqe, void* cq_context, ibv_comp_channel* channel,
                 int comp_vector);
int ResizeCq(ibv_cq* cq, int cqe);
int DestroyCq(ibv_cq* cq);
int GetCqEvent(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context);
void AckCqEvents(ibv_cq* cq, unsigned int nevents);

int GetAsyncEvent(ibv_context* context, ibv_async_event* event);

// Routed by the CQ, QP, SRQ or WQ that the event names; events of a port or device need no
// acknowledgement and do not arrive here.
void AckAsyncEvent(ibv_async_event* event);

ibv_srq* CreateSrq(ibv_pd* pd, ibv_srq_init_attr* init_attr);
int ModifySrq(ibv_srq* srq, ibv_srq_attr* attr, int attr_mask);
int QuerySrq(ibv_srq* srq, ibv_srq_attr* attr);
int DestroySrq(ibv_srq* srq);

ibv_qp* CreateQp(ibv_pd* pd, ibv_qp_init_attr* init_attr);

// Null (errno untouched) unless the QP was created with send_ops_flags.
ibv_qp_ex* QpToQpEx(ibv_qp* qp);
int QueryQp(ibv_qp* qp, ibv_qp_attr* attr, int attr_mask, ibv_qp_init_attr* init_attr);
int ModifyQp(ibv_qp* qp, ibv_qp_attr* attr, int attr_mask);
int DestroyQp(ibv_qp* qp);
int QueryQpDataInOrder(ibv_qp* qp, ibv_wr_opcode op, uint32_t flags);
int SetEce(ibv_qp* qp, ibv_ece* ece);
int QueryEce(ibv_qp* qp, ibv_ece* ece);
int AttachMcast(ibv_qp* qp, const ibv_gid* gid, uint16_t lid);
int DetachMcast(ibv_qp* qp, const ibv_gid* gid, uint16_t lid);

ibv_ah* CreateAh(ibv_pd* pd, ibv_ah_attr* attr);
int InitAhFromWc(ibv_context* context, uint8_t port_num, ibv_wc* wc, ibv_grh* grh,
                 ibv_ah_attr* ah_attr);
ibv_ah* CreateAhFromWc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh, uint8_t port_num);
int DestroyAh(ibv_ah* ah);

// 0 or a negative errno; `vid` is 0xffff where there is no VLAN.
int ResolveEthL2FromGid(ibv_context* context, ibv_ah_attr* attr, uint8_t eth_mac[ETHERNET_LL_SIZE],
                        uint16_t* vid);

}  // namespace simhca::driver

#endif  // SIMHCA_VERBS_SHIM_DRIVER_DRIVER_H_
