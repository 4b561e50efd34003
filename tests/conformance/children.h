#ifndef SIMHCA_TESTS_CONFORMANCE_CHILDREN_H_
#define SIMHCA_TESTS_CONFORMANCE_CHILDREN_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace simhca::conformance {

// The ways in which a program that has a device open starts a child.
enum class ChildKind {
  kExit,        // fork, and exit() in the child
  kQuit,        // fork, _exit()
  kExec,        // fork, exec of another program
  kOwnContext,  // fork; the child opens the device itself, sends to itself and receives
  kVfork,       // vfork, exec
  kSpawn,       // posix_spawn
  kSystem,      // system(): the program waits for the child
};
inline constexpr ChildKind kAllChildren[] = {
    ChildKind::kExit,  ChildKind::kQuit,  ChildKind::kExec,  ChildKind::kOwnContext,
    ChildKind::kVfork, ChildKind::kSpawn, ChildKind::kSystem};

const char* NameOf(ChildKind kind);

// A child of this process.
class Child {
 public:
  explicit Child(ChildKind kind);
  // Ends a child that is still running.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Looks without waiting; true as well once the child has taken far too long.
  bool Ended();
  // After Ended: it did what it was to do.
  bool DidWell() const;

 private:
  const ChildKind kind_;
  pid_t pid_ = -1;
  std::optional<int> status_;  // as waitpid gives it
  int64_t give_up_ns_ = 0;
};

// Opens the device anew and moves messages between two of its queue pairs.
bool TalkToItself();

}  // namespace simhca::conformance

#endif  // SIMHCA_TESTS_CONFORMANCE_CHILDREN_H_
