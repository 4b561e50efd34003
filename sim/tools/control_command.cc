#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>

#include "sim/fabric/control_client.h"
#include "sim/profiles/device_plan.h"
#include "sim/tools/commands.h"
#include "sim/tools/table.h"

namespace simhca {
namespace {

using Process = ControlClient::Process;

// A QP or SRQ number, decimal or 0x...; kAll for "all".
std::optional<uint32_t> NumberOf(std::string_view text) {
  if (text == "all") return ControlRequest::kAll;
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (hexadecimal) text.remove_prefix(2);
  uint32_t number;
  const auto [end, error] =
      std::from_chars(text.begin(), text.end(), number, hexadecimal ? 16 : 10);
  const bool valid = error == std::errc() && end == text.end() && number < 1u << 24;
  return valid ? std::optional(number) : std::nullopt;
}

const char* NounOf(ControlTarget target) {
  return target == ControlTarget::kQp    ? "queue pair"
         : target == ControlTarget::kSrq ? "SRQ"
                                         : "context";
}

std::string NameOf(const Process& process) {
  return "process " + std::to_string(process.pid) + " (" + process.name + ")";
}

bool IsPort(ControlKind kind) {
  return kind == ControlKind::kPortDown || kind == ControlKind::kPortUp;
}

// "a, b LAST c"
std::string Enumerate(const std::vector<std::string>& items, const std::string& last) {
  std::string text;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i != 0) text += i + 1 == items.size() ? last : ", ";
    text += items[i];
  }
  return text;
}

// Why the words are no command: the second one is missing or wrong, or the first is.
std::string ExplainUnknown(const std::vector<std::string>& words) {
  std::vector<std::string> known;
  std::vector<std::string> seconds;
  for (const ControlCommand& command : ControlCommands()) {
    known.emplace_back(command.words);
    if (command.words.starts_with(words[0] + " ")) {
      seconds.emplace_back(command.words.substr(words[0].size() + 1));
    }
  }
  if (seconds.empty()) {
    return "'" + words[0] + "' is not a command; known: " + Enumerate(known, ", ");
  }
  const std::string instead = words.size() > 1 ? ", not '" + words[1] + "'" : "";
  return words[0] + " takes " + Enumerate(seconds, " or ") + instead;
}

// What the words say; null, with an explanation, if they say nothing.
const ControlCommand* Parse(const std::vector<std::string>& words, ControlRequest* request,
                            std::string* error) {
  if (words.empty()) {
    *error = "no command given";
    return nullptr;
  }
  size_t used = 1;
  const ControlCommand* command = FindControlCommand(words[0]);
  if (command == nullptr && words.size() > 1) {
    command = FindControlCommand(words[0] + " " + words[1]);
    used = 2;
  }
  if (command == nullptr) {
    *error = ExplainUnknown(words);
    return nullptr;
  }
  request->kind = command->kind;
  const std::vector<std::string> left(words.begin() + static_cast<ptrdiff_t>(used), words.end());
  const std::string name(command->words);
  if (command->target == ControlTarget::kDevice) {
    if (left.empty()) return command;
    *error = name + " takes nothing more, not '" + left[0] + "'";
    return nullptr;
  }
  const std::optional<uint32_t> number = left.size() == 1 ? NumberOf(left[0]) : std::nullopt;
  if (!number) {
    *error = name + " takes the number of one " + NounOf(command->target) + ", or all";
    if (!left.empty()) *error += ", not '" + Enumerate(left, " ") + "'";
    return nullptr;
  }
  request->number = *number;
  return command;
}

// Carries one command to the processes, one after the other, and says what each answered.
class Round {
 public:
  Round(ControlClient& client, const ControlOptions& options, const ControlCommand& command,
        const ControlRequest& request, std::ostream& out, std::ostream& errors)
      : client_(client),
        options_(options),
        command_(command),
        request_(request),
        out_(out),
        errors_(errors) {}

  void AskAll(const std::vector<Process>& processes) {
    for (const Process& process : processes) {
      ControlReply reply;
      const int error = command_.kind == ControlKind::kList
                            ? AskForList(process, &reply)
                            : client_.Ask(process, request_, options_.milliseconds, &reply);
      if (error == 0) {
        Report(process, reply);
      } else if (error != ESRCH) {
        ++silent_;
        errors_ << NameOf(process) << " does not answer within " << options_.milliseconds
                << " ms: is it stopped?" << Consequence(error) << '\n';
      }
    }
  }

  // The exit status, after a word on what nobody has.
  int Conclude() {
    if (refused_ != 0 || silent_ != 0) return kRefused;
    if (have_device_ == 0) return RefuseForLackOf("a device " + options_.device);
    if (found_ != 0 || IsPort(command_.kind) || command_.kind == ControlKind::kList) return kDone;
    if (command_.target == ControlTarget::kDevice) {
      return RefuseForLackOf(options_.device + " open");
    }
    const std::string noun = NounOf(command_.target);
    return RefuseForLackOf((AsksForAll() ? "any " + noun : noun + " " + options_.words.back()) +
                           " on " + options_.device + ": ./simhca ctl " + options_.device +
                           " list shows what there is");
  }

  // Nobody who answered has the device, and everybody answered.
  bool nobody_has_it() const { return have_device_ == 0 && silent_ == 0; }

 private:
  bool AsksForAll() const { return request_.number == ControlRequest::kAll; }

  int RefuseForLackOf(const std::string& what) {
    if (options_.pid != 0) {
      errors_ << "process " << options_.pid << " does not have " << what << '\n';
    } else {
      errors_ << "no process of fabric '" << options_.fabric << "' has " << what << '\n';
    }
    return kRefused;
  }

  // What becomes of a request that a process has not answered; `error` is that of Ask.
  std::string Consequence(int error) const {
    if (command_.kind == ControlKind::kList) return "";
    if (error == EINPROGRESS) return "  It has begun with it";
    if (IsPort(command_.kind)) return "  It will see the port's state when it runs again";
    return "  Nothing has happened there";
  }

  // Why a process that has the device did not do it.
  std::string Reason(int status) const {
    if (status == EIO) return options_.device + " has failed before";
    if (status != EALREADY) return options_.device + ": " + strerror(status);
    const std::string noun = NounOf(command_.target);
    return (AsksForAll() ? "every " + noun : noun + " " + options_.words.back()) + " of " +
           options_.device + " has failed before";
  }

  int AskForList(const Process& process, ControlReply* whole) {
    for (;;) {
      ControlReply page;
      request_.number = whole->count;
      const int error = client_.Ask(process, request_, options_.milliseconds, &page);
      if (error != 0) return error;
      whole->status = page.status;
      if (page.status != 0 || page.count == 0) return 0;
      whole->count += page.count;
      whole->text += page.text;
    }
  }

  void Report(const Process& process, const ControlReply& reply) {
    if (reply.status == ENODEV) return;
    ++have_device_;
    if (reply.status == ENOENT) return;
    if (reply.status != 0) {
      ++refused_;
      errors_ << NameOf(process) << ": " << Reason(reply.status) << '\n';
    } else if (command_.kind == ControlKind::kList) {
      PrintList(process, reply.text);
    } else {
      found_ += reply.count;
      out_ << NameOf(process) << ": " << reply.count << ' ' << NounOf(command_.target)
           << (reply.count == 1 ? "" : "s") << " told\n";
    }
  }

  // The first line is about the device.
  void PrintList(const Process& process, const std::string& text) {
    const size_t end = text.find('\n');
    out_ << NameOf(process) << ", " << options_.device << ": " << text.substr(0, end) << '\n';
    for (size_t at = end; at != std::string::npos && at + 1 < text.size();) {
      const size_t next = text.find('\n', at + 1);
      out_ << "  " << text.substr(at + 1, next - at - 1) << '\n';
      at = next;
    }
  }

  ControlClient& client_;
  const ControlOptions& options_;
  const ControlCommand& command_;
  ControlRequest request_;
  std::ostream& out_;
  std::ostream& errors_;
  uint64_t found_ = 0;        // contexts, queue pairs or SRQs told
  uint32_t have_device_ = 0;  // processes
  uint32_t refused_ = 0;
  uint32_t silent_ = 0;
};

int RunRound(Round& round, ControlClient& client, const ControlOptions& options,
             const ControlRequest& request, const std::vector<Process>& processes,
             std::ostream& out) {
  if (!IsPort(request.kind)) {
    round.AskAll(processes);
    return round.Conclude();
  }
  const bool down = request.kind == ControlKind::kPortDown;
  const bool changed = client.SetPort(request.port, down);
  if (!changed) {
    out << "the port of " << options.device << " was " << (down ? "down" : "up") << " before\n";
  }
  round.AskAll(processes);
  if (changed && round.nobody_has_it()) client.SetPort(request.port, !down);
  return round.Conclude();
}

// What is wrong with the options; empty if they make a request.
std::string ParseOptions(const ControlOptions& options, const ControlCommand** command,
                         ControlRequest* request) {
  const std::optional<uint32_t> index = DeviceIndex(options.device);
  if (!index) {
    return "'" + options.device + "' is not a device: they are " + DeviceName(0) + " to " +
           DeviceName(kMaxDevices - 1);
  }
  static_assert(kMaxDevices <= kMaxFabricPorts);
  request->port = static_cast<uint16_t>(*index);
  std::string error;
  *command = Parse(options.words, request, &error);
  if (*command != nullptr && IsPort(request->kind) && options.pid != 0) {
    return std::string((*command)->words) + " takes no --pid: the port of " + options.device +
           " is that of all processes of the fabric";
  }
  return error;
}

}  // namespace

int Control(const ControlOptions& options, const std::string& directory, std::ostream& out,
            std::ostream& errors) {
  const auto refuse = [&errors](const std::string& text) {
    errors << text << '\n';
    return kRefused;
  };
  ControlRequest request;
  const ControlCommand* command = nullptr;
  std::string error = ParseOptions(options, &command, &request);
  if (!error.empty()) return RefuseUsage("ctl", error, errors);

  std::unique_ptr<ControlClient> client;
  if (ControlClient::Open(directory, options.fabric, &client, &error) != 0) return refuse(error);
  std::vector<Process> processes = client->Processes();
  if (processes.empty()) return refuse("nobody is on fabric '" + options.fabric + "'");
  if (options.pid != 0) {
    std::erase_if(processes, [&](const Process& process) { return process.pid != options.pid; });
    if (processes.empty()) {
      return refuse("process " + std::to_string(options.pid) + " is not on fabric '" +
                    options.fabric + "'");
    }
  }
  Round round(*client, options, *command, request, out, errors);
  return RunRound(round, *client, options, request, processes, out);
}

}  // namespace simhca
