// simhca-tool: what the launcher ./simhca asks about profiles, devices and fabrics, and of them.

#include <CLI/CLI.hpp>
#include <iostream>
#include <string>

#include "sim/fabric/fabric.h"
#include "sim/profiles/profile_loader.h"
#include "sim/tools/commands.h"

namespace {

constexpr char kEnvironment[] =
    "The settings are those of ./simhca run, taken from the environment:\n"
    "  SIMHCA_DEVICES  number of devices (default 1)\n"
    "  SIMHCA_PROFILE  profile of all devices (default generic)\n"
    "  SIMHCA_DEVICE   profiles of single devices: simhca1=connectx5,simhca2=./mine.toml";

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Shows the device profiles, devices and fabrics of simhca.", "simhca-tool"};
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::help);
  int status = 0;
  std::string name;
  std::string other;

  CLI::App* profiles = app.add_subcommand("profiles", "Lists the built-in device profiles.");
  profiles->require_subcommand(0, 1);
  CLI::App* show =
      profiles->add_subcommand("show", "Prints every value of a profile, with its source.");
  show->add_option("PROFILE", name, simhca::ProfileChoices())->required();
  CLI::App* diff =
      profiles->add_subcommand("diff", "Prints the values in which two profiles differ.");
  diff->add_option("LEFT", name, simhca::ProfileChoices())->required();
  diff->add_option("RIGHT", other, "the same")->required();
  profiles->callback([&] {
    if (show->parsed()) {
      status = simhca::ShowProfile(name, std::cout, std::cerr);
    } else if (diff->parsed()) {
      status = simhca::DiffProfiles(name, other, std::cout, std::cerr);
    } else {
      status = simhca::ListProfiles(std::cout, std::cerr);
    }
  });

  CLI::App* devices =
      app.add_subcommand("devices", "Lists the devices that a program would see, with their GIDs.");
  devices->footer(kEnvironment);
  std::string own_fabric = simhca::kDefaultFabric;
  devices->add_option("-f,--fabric", own_fabric, "fabric whose port states are shown")
      ->envname("SIMHCA_FABRIC");
  devices->callback([&] {
    status = simhca::ListDevices(own_fabric, simhca::kFabricDirectory, std::cout, std::cerr);
  });

  std::string fabric;
  CLI::App* stats =
      app.add_subcommand("stats", "Prints the counters of every process that uses devices now.");
  stats->add_option("-f,--fabric", fabric, "only this fabric")->envname("SIMHCA_FABRIC");
  stats->callback(
      [&] { status = simhca::ShowStats(fabric, simhca::kFabricDirectory, std::cout, std::cerr); });

  CLI::App* clean = app.add_subcommand(
      "clean", "Removes what killed processes left in shared memory; spares fabrics in use.");
  clean->callback([&] { status = simhca::CleanFabrics(simhca::kFabricDirectory, std::cout); });

  simhca::ControlOptions control;
  control.fabric = simhca::kDefaultFabric;
  CLI::App* ctl = app.add_subcommand(
      "ctl", "Makes an asynchronous event happen in the programs that use a device now.");
  ctl->add_option("DEVICE", control.device, "simhca0, simhca1, ...")->required();
  ctl->add_option("COMMAND", control.words, "one of those below")->required();
  ctl->add_option("-f,--fabric", control.fabric, "fabric of the programs (default: default)")
      ->envname("SIMHCA_FABRIC");
  ctl->add_option("-p,--pid", control.pid, "only this process (default: all of the fabric)");
  ctl->footer("Commands:\n" + simhca::ControlHelp() +
              "Events with \"nothing else\" leave all values as they are: a LID that has changed "
              "reads as before.\ndocs/events.md tells what follows.");
  ctl->callback(
      [&] { status = simhca::Control(control, simhca::kFabricDirectory, std::cout, std::cerr); });

  CLI11_PARSE(app, argc, argv);
  return status;
}
