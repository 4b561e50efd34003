#ifndef SIMHCA_VERBS_SHIM_DRIVER_CANCELLABLE_H_
#define SIMHCA_VERBS_SHIM_DRIVER_CANCELLABLE_H_

#ifdef __cplusplus
extern "C" {
#endif

// Returns body(argument).  If the thread is cancelled inside, cancelled(argument) runs first.  In C,
// where a clean-up handler needs no C++ frame to unwind: the runtime that unwinds is the program's,
// not the one that is linked in here.
int simhca_run_cancellable(int (*body)(void*), void (*cancelled)(void*), void* argument);

#ifdef __cplusplus
}
#endif

#endif  // SIMHCA_VERBS_SHIM_DRIVER_CANCELLABLE_H_
