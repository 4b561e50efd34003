#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>

#include "sim/fabric/control_client.h"
#include "sim/tools/commands.h"
#include "sim/tools/table.h"

namespace simhca {
namespace {

using Process = ControlClient::Process;

std::optional<uint16_t> PortOf(std::string_view device) {
  constexpr std::string_view kPrefix = "simhca";
  if (!device.starts_with(kPrefix)) return std::nullopt;
  device.remove_prefix(kPrefix.size());
  uint16_t port;
  const auto [end, error] = std::from_chars(device.begin(), device.end(), port);
  const bool number = error == std::errc() && end == device.end();
  return number && port < kMaxFabricPorts ? std::optional(port) : std::nullopt;
}

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

// What the words say; null, with an explanation, if they say nothing.
const ControlCommand* Parse(const std::vector<std::string>& words, ControlRequest* request,
                            std::string* error) {
  size_t used = 1;
  const ControlCommand* command = words.empty() ? nullptr : FindControlCommand(words[0]);
  if (command == nullptr && words.size() > 1) {
    command = FindControlCommand(words[0] + " " + words[1]);
    used = 2;
  }
  if (command == nullptr) {
    std::string said;
    for (const std::string& word : words) said += (said.empty() ? "" : " ") + word;
    *error = "'" + said + "' is not a command; known:\n" + ControlHelp();
    return nullptr;
  }
  request->kind = command->kind;
  const size_t left = words.size() - used;
  const std::string name(command->words);
  if (command->target == ControlTarget::kDevice) {
    if (left == 0) return command;
    *error = name + " takes nothing more, not '" + words[used] + "'";
    return nullptr;
  }
  const std::optional<uint32_t> number = left == 1 ? NumberOf(words[used]) : std::nullopt;
  if (!number) {
    *error = name + " takes the number of one " + NounOf(command->target) + ", or all";
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
                << " ms: is it stopped?  "
                << (error == EINPROGRESS ? "It has begun with it"
                    : IsPort()           ? "It will see the port's state when it runs again"
                                         : "Nothing has happened there")
                << '\n';
      }
    }
  }

  // The exit status, after a word on what nobody has.
  int Conclude() {
    if (refused_ != 0 || silent_ != 0) return 1;
    if (have_device_ == 0) {
      errors_ << "no process of the fabric has a device " << options_.device << '\n';
      return 1;
    }
    if (found_ != 0 || IsPort() || command_.kind == ControlKind::kList) return 0;
    if (command_.target == ControlTarget::kDevice) {
      errors_ << "no process has " << options_.device << " open\n";
    } else {
      errors_ << options_.device << " has no " << NounOf(command_.target);
      if (request_.number != ControlRequest::kAll) errors_ << ' ' << options_.words.back();
      errors_ << ": ./simhca ctl " << options_.device << " list shows what there is\n";
    }
    return 1;
  }

  bool IsPort() const {
    return command_.kind == ControlKind::kPortDown || command_.kind == ControlKind::kPortUp;
  }
  // Nobody who answered has the device, and everybody answered.
  bool nobody_has_it() const { return have_device_ == 0 && silent_ == 0; }

 private:
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
      errors_ << NameOf(process) << ": "
              << (reply.status == EALREADY ? "it has failed before"
                  : reply.status == EIO    ? "the device has failed before"
                                           : strerror(reply.status))
              << '\n';
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

int RunRound(Round& round, ControlClient& client, const ControlRequest& request,
             const std::vector<Process>& processes, std::ostream& out) {
  if (!round.IsPort()) {
    round.AskAll(processes);
    return round.Conclude();
  }
  const bool down = request.kind == ControlKind::kPortDown;
  const bool changed = client.SetPort(request.port, down);
  if (!changed) out << "the port was " << (down ? "down" : "up") << " before\n";
  round.AskAll(processes);
  if (changed && round.nobody_has_it()) client.SetPort(request.port, !down);
  return round.Conclude();
}

}  // namespace

int Control(const ControlOptions& options, const std::string& directory, std::ostream& out,
            std::ostream& errors) {
  const auto refuse = [&errors](const std::string& text) {
    errors << text << '\n';
    return 1;
  };
  const std::optional<uint16_t> port = PortOf(options.device);
  if (!port) return refuse("'" + options.device + "' is not a device: simhca0, simhca1, ...");
  ControlRequest request{.port = *port};
  std::string error;
  const ControlCommand* command = Parse(options.words, &request, &error);
  if (command == nullptr) return refuse(error);

  std::unique_ptr<ControlClient> client;
  if (ControlClient::Open(directory, options.fabric, &client, &error) != 0) return refuse(error);
  Round round(*client, options, *command, request, out, errors);
  if (round.IsPort() && options.pid != 0) {
    return refuse("a port belongs to all processes of the fabric: no --pid");
  }
  std::vector<Process> processes = client->Processes();
  if (processes.empty()) return refuse("nobody is on fabric '" + options.fabric + "'");
  if (options.pid != 0) {
    std::erase_if(processes, [&](const Process& process) { return process.pid != options.pid; });
    if (processes.empty()) {
      return refuse("process " + std::to_string(options.pid) + " is not on fabric '" +
                    options.fabric + "'");
    }
  }
  return RunRound(round, *client, request, processes, out);
}

std::string ControlHelp() {
  std::string help;
  for (const ControlCommand& command : ControlCommands()) {
    std::string words = "  " + std::string(command.words);
    if (command.target == ControlTarget::kQp) words += " QPN|all";
    if (command.target == ControlTarget::kSrq) words += " SRQN|all";
    words.resize(28, ' ');
    help += words + std::string(command.effect) + '\n';
  }
  return help;
}

}  // namespace simhca
