#ifndef SIMHCA_TESTS_SOAK_CLIENT_H_
#define SIMHCA_TESTS_SOAK_CLIENT_H_

#include <cstdint>

namespace simhca::soak {

// What the server writes to a client's standard input, after its queue pair number.
enum class Order : char {
  kFinish = 'q',      // wait for what is under way, destroy everything, exit
  kExit = 'x',        // write how many messages that makes (8 bytes), send kLastMessages more and
                      // call exit() at once
  kUnderscore = '_',  // the same with _exit()
  kPause = 'p',       // wait for what is under way, write kPaused, send nothing
  kResume = 'r',      // send again
  kFork = 'f',        // fork a child that leaves in one of several ways, then write kForked
};
inline constexpr char kForked = 'F';
inline constexpr char kPaused = 'P';

inline constexpr uint32_t kLastMessages = 10;
inline constexpr uint32_t kClientWindow = 8;  // sends under way
// Messages that the server has not taken yet.  All clients together have a few more than it has
// receives: now and then one meets an empty queue, but none starves there until an RNR NAK that
// gets lost has cost it all its retries.
inline constexpr uint64_t kClientCredit = 24;

// The client process: connects to the server over standard input and output, then streams to it and
// checks what it gets until it is told otherwise.  Returns its exit status.
int RunClient();

}  // namespace simhca::soak

#endif  // SIMHCA_TESTS_SOAK_CLIENT_H_
