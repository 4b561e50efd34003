/* Loads a library that only this program's own search path leads to, and makes the other calls of
   dlopen that an interposed one could spoil. */

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  void* self;
  const char* error;
  void* library = dlopen("libprivate_library.so", RTLD_NOW);
  if (library == NULL) {
    printf("dlopen: %s\n", dlerror());
    return 1;
  }
  printf("answer %d\n", ((int (*)(void))dlsym(library, "private_answer"))());
  self = dlopen(NULL, RTLD_LAZY);
  printf("self %s\n", self != NULL && dlsym(self, "puts") != NULL ? "found" : "MISSING");
  library = dlopen("libdoes_not_exist.so", RTLD_NOW);
  error = dlerror();
  printf("missing library %s\n", library == NULL && error != NULL &&
         strstr(error, "libdoes_not_exist.so") != NULL ? "explained" : "NOT EXPLAINED");
  return 0;
}
