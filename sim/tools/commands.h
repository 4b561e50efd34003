#ifndef SIMHCA_SIM_TOOLS_COMMANDS_H_
#define SIMHCA_SIM_TOOLS_COMMANDS_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

// What the subcommands of simhca-tool do.  Each writes to `out`, or what is wrong to `errors`, and
// returns the exit status of the program, one of those below.

namespace simhca {

inline constexpr int kDone = 0;
inline constexpr int kRefused = 1;
inline constexpr int kWrongUsage = 2;  // the arguments make no sense; the launcher's status for it

// Says in one line what is wrong with the arguments of `./simhca COMMAND` and where its help is.
// Returns kWrongUsage.
int RefuseUsage(const std::string& command, const std::string& problem, std::ostream& errors);

// Where fabrics are.
inline constexpr char kFabricDirectory[] = "/dev/shm";

// Every built-in profile in one line.
int ListProfiles(std::ostream& out, std::ostream& errors);

// All values of a profile, inherited ones included, each with its source.
int ShowProfile(const std::string& name_or_path, std::ostream& out, std::ostream& errors);

// The values in which two profiles differ, with their sources.
int DiffProfiles(const std::string& left, const std::string& right, std::ostream& out,
                 std::ostream& errors);

// Who lives on the fabrics of this user and what they have counted; of `fabric` only, unless empty.
int ShowStats(const std::string& fabric, const std::string& directory, std::ostream& out,
              std::ostream& errors);

// Removes the fabrics of this user that nobody lives on, and names them.
int CleanFabrics(const std::string& directory, std::ostream& out);

// The devices that a program started with this environment would see, on `fabric`.
int ListDevices(const std::string& fabric, const std::string& directory, std::ostream& out,
                std::ostream& errors);

// Whether ./simhca run may start a program with these values of SIMHCA_FAULTS and SIMHCA_SEED; null
// or empty means: not given.  kWrongUsage otherwise, with the launcher's option named.
int CheckSettings(const char* faults, const char* seed, std::ostream& errors);

// Asks the processes of a fabric for an event; see sim/fabric/control.h.
struct ControlOptions {
  std::string device;              // simhcaN
  std::vector<std::string> words;  // the command, and the number or `all` that it takes
  std::string fabric;
  uint32_t pid = 0;          // only this process; 0: all
  int milliseconds = 2'000;  // that a process may take to answer
};
int Control(const ControlOptions& options, const std::string& directory, std::ostream& out,
            std::ostream& errors);

}  // namespace simhca

#endif  // SIMHCA_SIM_TOOLS_COMMANDS_H_
