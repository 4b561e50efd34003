#ifndef SIMHCA_SIM_DEVICE_OTHER_THREADS_H_
#define SIMHCA_SIM_DEVICE_OTHER_THREADS_H_

namespace simhca {

// What the other threads of this process are about, as /proc tells (man proc).
struct OtherThreads {
  int running = 0;   // on a processor or waiting for one
  int sleeping = 0;  // in any other state
  int ended = 0;     // the main thread, after pthread_exit
  // Whether /proc could be read at all.
  bool known = false;

  // Looks now.  Uses system calls alone: the names of libc may be interposed.
  static OtherThreads Look();
};

}  // namespace simhca

#endif  // SIMHCA_SIM_DEVICE_OTHER_THREADS_H_
