/* Loads the verbs library at run time, by the name in the first argument, and asks for versioned
   symbols, as NCCL does. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

struct ibv_device;
typedef struct ibv_device** (*get_device_list_t)(int*);
typedef void (*free_device_list_t)(struct ibv_device**);

static const char* object_of(const void* address) {
  Dl_info info;
  const char* slash;
  if (address == NULL || dladdr(address, &info) == 0) return "nothing";
  slash = strrchr(info.dli_fname, '/');
  return slash == NULL ? info.dli_fname : slash + 1;
}

int main(int argc, char** argv) {
  int count = -1;
  struct ibv_device** list;
  get_device_list_t get_list;
  free_device_list_t free_list;
  void* library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
  if (library == NULL) {
    printf("dlopen: %s\n", dlerror());
    return 1;
  }
  get_list = (get_device_list_t)dlvsym(library, "ibv_get_device_list", "IBVERBS_1.1");
  free_list = (free_device_list_t)dlsym(library, "ibv_free_device_list");
  printf("dlvsym finds %s\n", object_of((void*)get_list));
  printf("dlsym finds %s\n", object_of((void*)free_list));
  printf("newer version is in %s\n", object_of(dlvsym(library, "ibv_reg_dmabuf_mr", "IBVERBS_1.12")));
  printf("old version is in %s\n", object_of(dlvsym(library, "ibv_open_device", "IBVERBS_1.0")));
  if (get_list == NULL || free_list == NULL) return 1;
  list = get_list(&count);
  printf("list %s\n", list == NULL ? "null" : "given");
  if (list != NULL) free_list(list);
  printf("dlclose %d\n", dlclose(library));
  printf("afterwards the list is in %s\n", object_of((void*)get_list));
  return 0;
}
