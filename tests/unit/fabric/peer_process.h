#ifndef SIMHCA_TESTS_UNIT_FABRIC_PEER_PROCESS_H_
#define SIMHCA_TESTS_UNIT_FABRIC_PEER_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace simhca {

// Another process of the test's own program, which runs RunPeer(arguments).  The two talk in
// lines.  Killed and awaited at the end of its scope.
class PeerProcess {
 public:
  explicit PeerProcess(std::vector<std::string> arguments);
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;
  ~PeerProcess();

  // The next line it wrote, without its end; empty if there is none within 10 seconds.
  std::string ReadLine();
  void WriteLine(const std::string& line);

  void Kill();  // SIGKILL, and waits
  // Lets it read the end of its input; returns its exit status, or 128 + signal.
  int Finish();

  pid_t pid() const { return pid_; }

 private:
  int Wait();

  pid_t pid_ = -1;
  int to_ = -1;
  int from_ = -1;
};

// What a peer process does, by arguments[0]; defined in peer_roles.cc.
int RunPeer(const std::vector<std::string>& arguments);

}  // namespace simhca

#endif  // SIMHCA_TESTS_UNIT_FABRIC_PEER_PROCESS_H_
