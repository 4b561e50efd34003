#include <cstdint>

#include "verbs_shim/abi/export.h"
#include "verbs_shim/abi/query_gid_type.h"

// The symbols that providers (libmlx5, libefa, ...) and rdma-core's own programs take from the
// private node of libibverbs.  Only the drop-in form carries them: providers must be able to load,
// but they have no device to drive.  Commands fail with ENOSYS, registrations are ignored.
//
// The node's name changes with the release of rdma-core; every release up to 65 is served.

// Exports simhca_private_NAME as NAME in all of them.
#define SIMHCA_PRIVATE_NODES(name)                  \
  __asm__(".symver simhca_private_" #name "," #name \
          "@@IBVERBS_PRIVATE_34\n"                  \
          ".symver simhca_private_" #name "," #name \
          "@IBVERBS_PRIVATE_57\n"                   \
          ".symver simhca_private_" #name "," #name \
          "@IBVERBS_PRIVATE_59\n"                   \
          ".symver simhca_private_" #name "," #name \
          "@IBVERBS_PRIVATE_64\n"                   \
          ".symver simhca_private_" #name "," #name "@IBVERBS_PRIVATE_65\n")

#define SIMHCA_COMMAND(name)  \
  SIMHCA_PRIVATE_NODES(name); \
  SIMHCA_EXPORT int simhca_private_##name() { return ENOSYS; }

// Here the release is part of the name.
#define SIMHCA_REGISTRATION(release) \
  SIMHCA_EXPORT void verbs_register_driver_##release(const void* /*operations*/) {}

namespace simhca::abi {

SIMHCA_REGISTRATION(34)
SIMHCA_REGISTRATION(57)
SIMHCA_REGISTRATION(59)
SIMHCA_REGISTRATION(64)
SIMHCA_REGISTRATION(65)

// Set by providers that survive the removal of their device.
SIMHCA_PRIVATE_NODES(verbs_allow_disassociate_destroy);
SIMHCA_EXPORT bool simhca_private_verbs_allow_disassociate_destroy;
bool simhca_private_verbs_allow_disassociate_destroy = false;

SIMHCA_PRIVATE_NODES(__ioctl_final_num_attrs);
SIMHCA_EXPORT unsigned int simhca_private___ioctl_final_num_attrs(unsigned int, void*) { return 0; }

SIMHCA_PRIVATE_NODES(__verbs_log);
SIMHCA_EXPORT void simhca_private___verbs_log(void*, uint32_t, const char*, ...) {}

SIMHCA_PRIVATE_NODES(_verbs_init_and_alloc_context);
SIMHCA_EXPORT void* simhca_private__verbs_init_and_alloc_context() { return Null(ENOSYS); }

SIMHCA_PRIVATE_NODES(verbs_open_device);
SIMHCA_EXPORT void* simhca_private_verbs_open_device() { return Null(ENOSYS); }

SIMHCA_PRIVATE_NODES(verbs_init_cq);
SIMHCA_EXPORT void simhca_private_verbs_init_cq() {}

SIMHCA_PRIVATE_NODES(verbs_set_ops);
SIMHCA_EXPORT void simhca_private_verbs_set_ops() {}

SIMHCA_PRIVATE_NODES(verbs_uninit_context);
SIMHCA_EXPORT void simhca_private_verbs_uninit_context() {}

SIMHCA_PRIVATE_NODES(ibv_read_ibdev_sysfs_file);
SIMHCA_EXPORT int simhca_private_ibv_read_ibdev_sysfs_file() { return MinusOne(ENOENT); }

// The only one with a meaning here.
SIMHCA_PRIVATE_NODES(ibv_query_gid_type);
SIMHCA_EXPORT int simhca_private_ibv_query_gid_type(ibv_context* context, uint8_t port_num,
                                                    unsigned int index, unsigned int* type) {
  return QueryGidType(context, port_num, index, type);
}

// A positive result would be a count of completions.
SIMHCA_PRIVATE_NODES(ibv_cmd_poll_cq);
SIMHCA_EXPORT int simhca_private_ibv_cmd_poll_cq() { return -ENOSYS; }

SIMHCA_COMMAND(execute_ioctl)
SIMHCA_COMMAND(ibv_cmd_advise_mr)
SIMHCA_COMMAND(ibv_cmd_alloc_dm)
SIMHCA_COMMAND(ibv_cmd_alloc_mw)
SIMHCA_COMMAND(ibv_cmd_alloc_pd)
SIMHCA_COMMAND(ibv_cmd_attach_mcast)
SIMHCA_COMMAND(ibv_cmd_close_xrcd)
SIMHCA_COMMAND(ibv_cmd_create_ah)
SIMHCA_COMMAND(ibv_cmd_create_counters)
SIMHCA_COMMAND(ibv_cmd_create_cq)
SIMHCA_COMMAND(ibv_cmd_create_cq_ex)
SIMHCA_COMMAND(ibv_cmd_create_flow)
SIMHCA_COMMAND(ibv_cmd_create_flow_action_esp)
SIMHCA_COMMAND(ibv_cmd_create_qp)
SIMHCA_COMMAND(ibv_cmd_create_qp_ex)
SIMHCA_COMMAND(ibv_cmd_create_qp_ex2)
SIMHCA_COMMAND(ibv_cmd_create_rwq_ind_table)
SIMHCA_COMMAND(ibv_cmd_create_srq)
SIMHCA_COMMAND(ibv_cmd_create_srq_ex)
SIMHCA_COMMAND(ibv_cmd_create_wq)
SIMHCA_COMMAND(ibv_cmd_dealloc_mw)
SIMHCA_COMMAND(ibv_cmd_dealloc_pd)
SIMHCA_COMMAND(ibv_cmd_dereg_mr)
SIMHCA_COMMAND(ibv_cmd_destroy_ah)
SIMHCA_COMMAND(ibv_cmd_destroy_counters)
SIMHCA_COMMAND(ibv_cmd_destroy_cq)
SIMHCA_COMMAND(ibv_cmd_destroy_flow)
SIMHCA_COMMAND(ibv_cmd_destroy_flow_action)
SIMHCA_COMMAND(ibv_cmd_destroy_qp)
SIMHCA_COMMAND(ibv_cmd_destroy_rwq_ind_table)
SIMHCA_COMMAND(ibv_cmd_destroy_srq)
SIMHCA_COMMAND(ibv_cmd_destroy_wq)
SIMHCA_COMMAND(ibv_cmd_detach_mcast)
SIMHCA_COMMAND(ibv_cmd_free_dm)
SIMHCA_COMMAND(ibv_cmd_get_context)
SIMHCA_COMMAND(ibv_cmd_modify_cq)
SIMHCA_COMMAND(ibv_cmd_modify_flow_action_esp)
SIMHCA_COMMAND(ibv_cmd_modify_qp)
SIMHCA_COMMAND(ibv_cmd_modify_qp_ex)
SIMHCA_COMMAND(ibv_cmd_modify_srq)
SIMHCA_COMMAND(ibv_cmd_modify_wq)
SIMHCA_COMMAND(ibv_cmd_open_qp)
SIMHCA_COMMAND(ibv_cmd_open_xrcd)
SIMHCA_COMMAND(ibv_cmd_post_recv)
SIMHCA_COMMAND(ibv_cmd_post_send)
SIMHCA_COMMAND(ibv_cmd_post_srq_recv)
SIMHCA_COMMAND(ibv_cmd_query_context)
SIMHCA_COMMAND(ibv_cmd_query_device_any)
SIMHCA_COMMAND(ibv_cmd_query_mr)
SIMHCA_COMMAND(ibv_cmd_query_port)
SIMHCA_COMMAND(ibv_cmd_query_qp)
SIMHCA_COMMAND(ibv_cmd_query_srq)
SIMHCA_COMMAND(ibv_cmd_read_counters)
SIMHCA_COMMAND(ibv_cmd_reg_dm_mr)
SIMHCA_COMMAND(ibv_cmd_reg_dmabuf_mr)
SIMHCA_COMMAND(ibv_cmd_reg_mr)
SIMHCA_COMMAND(ibv_cmd_req_notify_cq)
SIMHCA_COMMAND(ibv_cmd_rereg_mr)
SIMHCA_COMMAND(ibv_cmd_resize_cq)
}  // namespace simhca::abi
