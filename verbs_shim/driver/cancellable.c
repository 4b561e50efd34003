#include "verbs_shim/driver/cancellable.h"

#include <pthread.h>

int simhca_run_cancellable(int (*body)(void*), void (*cancelled)(void*), void* argument) {
  int result;
  pthread_cleanup_push(cancelled, argument);
  result = body(argument);
  pthread_cleanup_pop(0);
  return result;
}
