#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/conformance/device.h"
#include "tests/conformance/peer_process.h"
#include "tests/conformance/report.h"

namespace simhca::conformance {
namespace {

// Which tests do not apply to the device or the run, as patterns of --gtest_filter.
std::vector<std::string> LeftOut(const Device& device) {
  std::vector<std::string> patterns;
  if (!device.simulated()) patterns.push_back("SimulatorOnly*");
  if (!device.connectx()) patterns.push_back("Mlx5Sizes.*");
  if (device.can_resize_srq()) patterns.push_back("WithoutSrqResize.*");
  // Of several processes or many threads: how they interleave is a matter of wall time.
  if (VirtualTime()) {
    for (const char* suite : {"TwoProcesses.*", "LifeAndDeath.*", "Fork.*", "EightThreads.*"}) {
      patterns.push_back(suite);
    }
  }
#ifdef __SANITIZE_THREAD__
  patterns.push_back("Fork.*");  // its runtime starts no threads after a fork
#endif
#ifdef __SANITIZE_ADDRESS__
  patterns.push_back("CancelledThread.*");  // its runtime cannot follow one
#endif
  return patterns;
}

void AddToFilter(const std::vector<std::string>& patterns) {
  std::string filter = testing::GTEST_FLAG(filter);
  for (const std::string& pattern : patterns) {
    filter += (filter.find('-') == std::string::npos ? "-" : ":") + pattern;
  }
  testing::GTEST_FLAG(filter) = filter;
}

int RunTests(const std::string& report_file, int expected_skips) {
  std::vector<std::string> left_out;
  {
    const Device device;
    run_options().device = ibv_get_device_name(device.context()->device);
    left_out = LeftOut(device);
  }
  for (const std::string& pattern : left_out) {
    std::printf("left out for this device and clock: %s\n", pattern.c_str());
  }
  AddToFilter(left_out);
  Report* report = new Report(left_out);
  testing::UnitTest::GetInstance()->listeners().Append(report);  // owns it
  int result = RUN_ALL_TESTS();
  if (expected_skips >= 0 && report->skipped() != expected_skips) {
    std::printf("%d tests were skipped, %d expected\n", report->skipped(), expected_skips);
    result = 1;
  }
  if (!report_file.empty()) {
    std::ofstream out(report_file);
    report->Write(out, run_options().device, run_options().clock);
    if (!out.flush()) {
      std::fprintf(stderr, "cannot write %s\n", report_file.c_str());
      result = 1;
    }
  }
  return result;
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Conformance tests of an RDMA device, by the public verbs only.  Options of "
      "GoogleTest (--gtest_filter, --gtest_output, ...) are accepted too.");
  app.allow_extras();
  RunOptions& options = run_options();
  std::string report_file;
  std::string peer;
  int expected_skips = -1;
  app.add_option("--device", options.device, "Name of the device (default: the first)");
  app.add_option("--port", options.port, "Port of the device")->capture_default_str();
  app.add_option("--gid-index", options.gid_index,
                 "Index of the source GID (-1: the first RoCE v2 entry)")
      ->capture_default_str();
  app.add_option("--clock", options.clock,
                 "Clock of the device; `virtual` checks durations exactly and leaves out tests "
                 "of two processes or many threads")
      ->check(CLI::IsMember({"wall", "paced", "virtual"}))
      ->envname("SIMHCA_CLOCK")
      ->capture_default_str();
  app.add_option("--report", report_file, "Write results and device-clock durations as JSON");
  app.add_option("--expect-skipped", expected_skips,
                 "Fail unless exactly this many tests skip themselves");
  app.add_option("--peer", peer, "")->group("");  // for the program's own second process
  CLI11_PARSE(app, argc, argv);
  if (!peer.empty()) return RunPeer(peer);
  for (const std::string& extra : app.remaining()) {
    if (extra.rfind("--gtest_", 0) != 0) {
      std::fprintf(stderr, "unknown argument %s; see --help\n", extra.c_str());
      return 2;
    }
  }
  testing::InitGoogleTest(&argc, argv);
  return RunTests(report_file, expected_skips);
}

}  // namespace
}  // namespace simhca::conformance

int main(int argc, char** argv) {
  try {
    return simhca::conformance::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "conformance: %s\n", error.what());
    return 2;
  }
}
