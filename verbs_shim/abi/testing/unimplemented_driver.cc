#include <cerrno>

#include "verbs_shim/driver/driver.h"

// A driver without devices, to link and load the exported verbs alone: it owns nothing, lists
// nothing, and every verb fails with ENOSYS in its own form.

namespace simhca::driver {
namespace {

int Errno() { return ENOSYS; }

int MinusOne() {
  errno = ENOSYS;
  return -1;
}

decltype(nullptr) Null() {
  errno = ENOSYS;
  return nullptr;
}

}  // namespace

bool Owns(const void*) { return false; }
bool OwnsCommandFd(int) { return false; }
int GetDevices(std::vector<ibv_device*>*) { return 0; }
const char* GetDeviceName(ibv_device*) { return Null(); }
__be64 GetDeviceGuid(ibv_device*) { return 0; }
int GetDeviceIndex(ibv_device*) { return MinusOne(); }
ibv_context* OpenDevice(ibv_device*) { return Null(); }
int CloseDevice(ibv_context*) { return MinusOne(); }
ibv_context* ImportDevice(int) { return Null(); }
ibv_pd* ImportPd(ibv_context*, uint32_t) { return Null(); }
void UnimportPd(ibv_pd*) {}
ibv_mr* ImportMr(ibv_pd*, uint32_t) { return Null(); }
void UnimportMr(ibv_mr*) {}
ibv_dm* ImportDm(ibv_context*, uint32_t) { return Null(); }
void UnimportDm(ibv_dm*) {}
int QueryDevice(ibv_context*, ibv_device_attr*) { return Errno(); }
int QueryPort(ibv_context*, uint8_t, _compat_ibv_port_attr*) { return Errno(); }
int QueryGid(ibv_context*, uint8_t, int, ibv_gid*) { return MinusOne(); }
int QueryGidEx(ibv_context*, uint32_t, uint32_t, ibv_gid_entry*, uint32_t, size_t) {
  return Errno();
}
ssize_t QueryGidTable(ibv_context*, ibv_gid_entry*, size_t, uint32_t, size_t) { return -ENOSYS; }
int QueryGidType(ibv_context*, uint8_t, unsigned int, unsigned int*) { return MinusOne(); }
int QueryPkey(ibv_context*, uint8_t, int, __be16*) { return MinusOne(); }
int GetPkeyIndex(ibv_context*, uint8_t, __be16) { return MinusOne(); }
ibv_pd* AllocPd(ibv_context*) { return Null(); }
int DeallocPd(ibv_pd*) { return Errno(); }
ibv_mr* RegMr(ibv_pd*, void*, size_t, int) { return Null(); }
ibv_mr* RegMrIova(ibv_pd*, void*, size_t, uint64_t, int) { return Null(); }
ibv_mr* RegMrIova2(ibv_pd*, void*, size_t, uint64_t, unsigned int) { return Null(); }
ibv_mr* RegDmabufMr(ibv_pd*, uint64_t, size_t, uint64_t, int, int) { return Null(); }
int ReregMr(ibv_mr*, int, ibv_pd*, void*, size_t, int) { return MinusOne(); }
int DeregMr(ibv_mr*) { return Errno(); }
ibv_comp_channel* CreateCompChannel(ibv_context*) { return Null(); }
int DestroyCompChannel(ibv_comp_channel*) { return Errno(); }
ibv_cq* CreateCq(ibv_context*, int, void*, ibv_comp_channel*, int) { return Null(); }
int ResizeCq(ibv_cq*, int) { return Errno(); }
int DestroyCq(ibv_cq*) { return Errno(); }
int GetCqEvent(ibv_comp_channel*, ibv_cq**, void**) { return MinusOne(); }
void AckCqEvents(ibv_cq*, unsigned int) {}
int GetAsyncEvent(ibv_context*, ibv_async_event*) { return MinusOne(); }
void AckAsyncEvent(ibv_async_event*) {}
ibv_srq* CreateSrq(ibv_pd*, ibv_srq_init_attr*) { return Null(); }
int ModifySrq(ibv_srq*, ibv_srq_attr*, int) { return Errno(); }
int QuerySrq(ibv_srq*, ibv_srq_attr*) { return Errno(); }
int DestroySrq(ibv_srq*) { return Errno(); }
ibv_qp* CreateQp(ibv_pd*, ibv_qp_init_attr*) { return Null(); }
ibv_qp_ex* QpToQpEx(ibv_qp*) { return Null(); }
int QueryQp(ibv_qp*, ibv_qp_attr*, int, ibv_qp_init_attr*) { return Errno(); }
int ModifyQp(ibv_qp*, ibv_qp_attr*, int) { return Errno(); }
int DestroyQp(ibv_qp*) { return Errno(); }
int QueryQpDataInOrder(ibv_qp*, ibv_wr_opcode, uint32_t) { return 0; }
int SetEce(ibv_qp*, ibv_ece*) { return Errno(); }
int QueryEce(ibv_qp*, ibv_ece*) { return Errno(); }
int AttachMcast(ibv_qp*, const ibv_gid*, uint16_t) { return Errno(); }
int DetachMcast(ibv_qp*, const ibv_gid*, uint16_t) { return Errno(); }
ibv_ah* CreateAh(ibv_pd*, ibv_ah_attr*) { return Null(); }
int InitAhFromWc(ibv_context*, uint8_t, ibv_wc*, ibv_grh*, ibv_ah_attr*) { return MinusOne(); }
ibv_ah* CreateAhFromWc(ibv_pd*, ibv_wc*, ibv_grh*, uint8_t) { return Null(); }
int DestroyAh(ibv_ah*) { return Errno(); }
int ResolveEthL2FromGid(ibv_context*, ibv_ah_attr*, uint8_t*, uint16_t*) { return -ENOSYS; }

}  // namespace simhca::driver
