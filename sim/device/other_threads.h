#ifndef SIMHCA_SIM_DEVICE_OTHER_THREADS_H_
#define SIMHCA_SIM_DEVICE_OTHER_THREADS_H_

namespace simhca {

// What the other threads of this process are about, as /proc tells (man proc).
struct OtherThreads {
  int running = 0;   // on a processor or waiting for one
  int sleeping = 0;  // in any other state
  // Whether /proc could be read at all.
  bool known = false;
  // Whether one can still do something, as far as is known.
  bool any() const { return !known || running + sleeping > 0; }

  // Whether the main thread has ended by pthread_exit: costs one small file.
  static bool MainHasEnded();
  // Looks now.  Uses system calls alone: the names of libc may be interposed.
  static OtherThreads Look();
};

}  // namespace simhca

#endif  // SIMHCA_SIM_DEVICE_OTHER_THREADS_H_
