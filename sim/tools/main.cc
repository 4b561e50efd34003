// simhca-tool: what the launcher ./simhca asks about profiles, devices, fabrics and settings, and
// of them.  The launcher has the help texts, and its name is the one in messages.

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdlib>
#include <iostream>
#include <string>

#include "sim/fabric/fabric.h"
#include "sim/tools/commands.h"

namespace {

void AddProfiles(CLI::App& app, int* status) {
  static std::string name;
  static std::string other;
  CLI::App* profiles = app.add_subcommand("profiles");
  profiles->require_subcommand(0, 1);
  CLI::App* show = profiles->add_subcommand("show");
  show->add_option("NAME", name)->required();
  CLI::App* diff = profiles->add_subcommand("diff");
  diff->add_option("NAME", name)->required();
  diff->add_option("OTHER", other)->required();
  profiles->callback([show, diff, status] {
    if (show->parsed()) {
      *status = simhca::ShowProfile(name, std::cout, std::cerr);
    } else if (diff->parsed()) {
      *status = simhca::DiffProfiles(name, other, std::cout, std::cerr);
    } else {
      *status = simhca::ListProfiles(std::cout, std::cerr);
    }
  });
}

void AddFabric(CLI::App* command, std::string& fabric) {
  command->add_option("-f,--fabric", fabric)->envname("SIMHCA_FABRIC")->take_last();
}

void AddFabricCommands(CLI::App& app, int* status) {
  static std::string own_fabric = simhca::kDefaultFabric;
  CLI::App* devices = app.add_subcommand("devices");
  AddFabric(devices, own_fabric);
  devices->callback([status] {
    *status = simhca::ListDevices(own_fabric, simhca::kFabricDirectory, std::cout, std::cerr);
  });

  static std::string fabric;  // empty: all
  CLI::App* stats = app.add_subcommand("stats");
  AddFabric(stats, fabric);
  stats->callback([status] {
    *status = simhca::ShowStats(fabric, simhca::kFabricDirectory, std::cout, std::cerr);
  });

  app.add_subcommand("clean")->callback(
      [status] { *status = simhca::CleanFabrics(simhca::kFabricDirectory, std::cout); });
}

std::string CheckProcessId(const std::string& text) {
  uint32_t pid = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, pid);
  return error == std::errc() && stop == end && pid != 0 ? ""
                                                         : "'" + text + "' is not a process id";
}

void AddControl(CLI::App& app, int* status) {
  static simhca::ControlOptions control;
  control.fabric = simhca::kDefaultFabric;
  CLI::App* ctl = app.add_subcommand("ctl");
  ctl->add_option("DEVICE", control.device)->required();
  ctl->add_option("COMMAND", control.words)->required();
  AddFabric(ctl, control.fabric);
  ctl->add_option("-p,--pid", control.pid)->take_last()->check(CheckProcessId);
  ctl->callback([status] {
    *status = simhca::Control(control, simhca::kFabricDirectory, std::cout, std::cerr);
  });
}

// In the launcher's words.
std::string ProblemOf(const CLI::ParseError& error, const CLI::App& app) {
  const std::string text = error.what();
  switch (static_cast<CLI::ExitCodes>(error.get_exit_code())) {
    case CLI::ExitCodes::ExtrasError: {
      const std::vector<std::string> unknown = app.remaining(true);
      return unknown.empty() ? text : "unknown argument '" + unknown.front() + "'";
    }
    case CLI::ExitCodes::ArgumentMismatch:  // "--pid: 1 required UINT missing"
      return text.substr(0, text.find(':')) + " needs a value";
    default:
      return text;
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app;
  app.set_help_flag();
  app.require_subcommand(1);
  int status = simhca::kDone;
  AddProfiles(app, &status);
  AddFabricCommands(app, &status);
  AddControl(app, &status);
  // Before ./simhca run starts a program; not a command of the launcher.
  app.add_subcommand("check-settings")->callback([&status] {
    status =
        simhca::CheckSettings(std::getenv("SIMHCA_FAULTS"), std::getenv("SIMHCA_SEED"), std::cerr);
  });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return simhca::RefuseUsage(argc > 1 ? argv[1] : "COMMAND", ProblemOf(error, app), std::cerr);
  }
  return status;
}
