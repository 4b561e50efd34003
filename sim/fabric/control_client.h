#ifndef SIMHCA_SIM_FABRIC_CONTROL_CLIENT_H_
#define SIMHCA_SIM_FABRIC_CONTROL_CLIENT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/fabric/control.h"
#include "sim/fabric/layout.h"
#include "sim/fabric/lock_file.h"

namespace simhca {

// Asks the processes of a fabric for things, without being one of them.  One client at a time: the
// next one waits in Open.  What the fabric's memory says is not trusted.
class ControlClient {
 public:
  struct Process {
    uint32_t slot = 0;
    uint32_t generation = 0;
    uint32_t pid = 0;  // as the process itself sees it
    std::string name;
  };

  // Returns 0 or a positive errno with an explanation: ENOENT no such fabric, EPERM/EACCES another
  // user's, EPROTO of another version, EBUSY another client is at work for too long.
  static int Open(const std::string& directory, const std::string& name,
                  std::unique_ptr<ControlClient>* client, std::string* error);
  ~ControlClient();

  // Those that live.
  std::vector<Process> Processes();

  // Sets the state of a port of the fabric, which processes find by themselves when they are asked
  // anything, and when they start.  False if that was its state.
  bool SetPort(uint16_t port, bool down);

  // Returns 0 with the process's reply, ETIMEDOUT it does not answer within `milliseconds` and has
  // not begun what was asked for, EINPROGRESS it has begun and not answered, ESRCH it is gone.
  int Ask(const Process& process, const ControlRequest& request, int milliseconds,
          ControlReply* reply);

 private:
  ControlClient() = default;
  int Map(const std::string& path, std::string* error);
  bool Lives(const Process& process);
  static ControlReply ReadReply(const ControlMailbox& mailbox);

  std::shared_ptr<LockFile> lock_;
  bool locked_ = false;
  FabricLayout* layout_ = nullptr;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_FABRIC_CONTROL_CLIENT_H_
