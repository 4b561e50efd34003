// The shim in programs of different kinds, in both of its forms.  Each case starts one program.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "tests/unit/shim_load_test/program.h"

namespace simhca {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

#ifdef __SANITIZE_THREAD__
constexpr bool kThreadSanitizer = true;
#else
constexpr bool kThreadSanitizer = false;
#endif

#ifdef __SANITIZE_ADDRESS__
constexpr bool kAddressSanitizer = true;
#else
constexpr bool kAddressSanitizer = false;
#endif

class ShimLoad : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kThreadSanitizer) GTEST_SKIP() << "tsan cannot be preloaded into a program without it";
  }
};

// What use_verbs prints about a device that works.
constexpr char kSimulatorWorks[] =
    "device simhca0\nsimhca0 alloc_pd ok\nsimhca0 dealloc_pd 0\nsimhca0 close_device 0\n";
constexpr char kFakeWorks[] =
    "device fake0\nfake0 alloc_pd ok\nfake0 dealloc_pd 0\nfake0 close_device 0\n";

std::string UseVerbs() { return Runfile("use_verbs"); }
std::string LoadAtRunTime() { return Runfile("load_at_run_time"); }

std::string OutputOf(const Program& program) {
  const ProgramResult result = program.Run();
  EXPECT_EQ(result.exit_status, 0) << result.output;
  return result.output;
}

std::string Errno(int error) { return "no list: errno " + std::to_string(error) + ", count 0\n"; }

// pyverbs' modules are linked BIND_NOW: every symbol that they name has to resolve at import.
Program ImportPyverbs() {
  return Program({"/usr/bin/python3", "-c",
                  "import pyverbs.device, pyverbs.qp, pyverbs.srq, pyverbs.cmid\n"
                  "import pyverbs.providers.mlx5.mlx5dv, pyverbs.providers.efa.efadv\n"
                  "print(pyverbs.device.Context(name='simhca0').query_device().phys_port_cnt)"});
}

TEST_F(ShimLoad, DeviceListerRunsWithThePreloadedShim) {
  EXPECT_THAT(OutputOf(Program({"/usr/bin/ibv_devices"}).Preload()), HasSubstr("simhca0"));
}

TEST_F(ShimLoad, DeviceListerRunsWithTheDropInAlone) {
  EXPECT_THAT(OutputOf(Program({"/usr/bin/ibv_devices"}).DropIn()), HasSubstr("simhca0"));
}

TEST_F(ShimLoad, DeviceInspectorFindsThePrivateSymbolThatItNeeds) {
  for (Program program : {Program({"/usr/bin/ibv_devinfo", "-v"}).Preload(),
                          Program({"/usr/bin/ibv_devinfo", "-v"}).DropIn()}) {
    EXPECT_THAT(OutputOf(program.Set("LD_BIND_NOW", "1")),
                AllOf(HasSubstr("hca_id:\tsimhca0"), HasSubstr("RoCE v2")));
  }
}

TEST_F(ShimLoad, VerbsComeFromTheShimAndNullHandlesAreRefused) {
  const std::string preloaded = OutputOf(Program({UseVerbs(), "null-handles"}).Preload());
  EXPECT_THAT(preloaded,
              AllOf(HasSubstr("verbs come from libsimhca.so\n"), HasSubstr("terminator null\n"),
                    HasSubstr("null handles refused\n")));
  const std::string dropped_in = OutputOf(Program({UseVerbs(), "null-handles"}).DropIn());
  EXPECT_THAT(dropped_in, AllOf(HasSubstr("verbs come from libibverbs.so.1\n"),
                                HasSubstr(kSimulatorWorks), HasSubstr("null handles refused\n")));
}

TEST_F(ShimLoad, PythonModulesImportWithThePreloadedShim) {
  if (ImportPyverbs().Set("LD_BIND_NOW", "1").Run().output.find("No module") != std::string::npos) {
    GTEST_SKIP() << "pyverbs is not installed";
  }
  EXPECT_THAT(OutputOf(ImportPyverbs().Preload()), HasSubstr("1\n"));
}

TEST_F(ShimLoad, PythonModulesAndProvidersImportWithTheDropInAlone) {
  if (ImportPyverbs().Run().output.find("No module") != std::string::npos) {
    GTEST_SKIP() << "pyverbs is not installed";
  }
  EXPECT_THAT(OutputOf(ImportPyverbs().DropIn()), HasSubstr("1\n"));
}

TEST_F(ShimLoad, AddressSanitizerProgramRunsCleanWithItsRuntimeFirst) {
  const std::string program = Runfile("use_verbs_asan");
  const auto runtime =
      ShellLines("ldd '" + program + "' | sed -n 's/.*=> \\(.*libasan[^ ]*\\).*/\\1/p'");
  ASSERT_EQ(runtime.size(), 1u);
  const ProgramResult result = Program({program, "null-handles"})
                                   .Set("ASAN_OPTIONS", "verify_asan_link_order=1")
                                   .Preload(runtime[0])
                                   .Run();
  EXPECT_EQ(result.exit_status, 0) << result.output;
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("verbs come from libsimhca.so\n"),
                    HasSubstr("null handles refused\n"), Not(HasSubstr("AddressSanitizer"))));
}

TEST_F(ShimLoad, ExceptionsOfAProgramWithItsOwnRuntimeAreCaughtThere) {
  EXPECT_EQ(OutputOf(Program({Runfile("throw_exceptions")}).Preload()), "caught 100 and 100\n");
  EXPECT_EQ(OutputOf(Program({Runfile("throw_exceptions")}).DropIn()), "caught 100 and 100\n");
}

// What load_at_run_time prints if all symbols come from `object`.
std::string AllFoundIn(const std::string& object) {
  return "dlvsym finds " + object + "\ndlsym finds " + object + "\nnewer version is in " + object +
         "\nold version is in " + object + "\nlist given\ndlclose 0\n" +
         "afterwards the list is in " + object + "\n";
}

TEST_F(ShimLoad, LibraryLoadedAtRunTimeIsThePreloadedShim) {
  for (const char* name : {"libibverbs.so.1", "libibverbs.so"}) {
    EXPECT_EQ(OutputOf(Program({LoadAtRunTime(), name}).Preload()), AllFoundIn("libsimhca.so"));
  }
}

TEST_F(ShimLoad, LibraryLoadedAtRunTimeIsTheDropIn) {
  EXPECT_EQ(OutputOf(Program({LoadAtRunTime(), "libibverbs.so.1"}).DropIn()),
            AllFoundIn("libibverbs.so.1"));
}

TEST_F(ShimLoad, RealLibraryLoadedByItsPathIsLeftAlone) {
  const auto path =
      ShellLines("ldd '" + UseVerbs() + "' | sed -n 's/.*=> \\(.*libibverbs[^ ]*\\).*/\\1/p'");
  ASSERT_EQ(path.size(), 1u);
  EXPECT_THAT(Program({LoadAtRunTime(), path[0]}).Preload().Run().output,
              HasSubstr("dlvsym finds libibverbs.so.1\n"));
}

TEST_F(ShimLoad, InterposedDlopenKeepsTheSearchPathOfItsCaller) {
  if (kAddressSanitizer) GTEST_SKIP() << "the sanitizer's own dlopen loses the search path";
  const std::string expected = "answer 42\nself found\nmissing library explained\n";
  for (const char* name : {"load_with_runpath", "load_with_rpath"}) {
    ASSERT_EQ(OutputOf(Program({Runfile(name)})), expected) << "without the shim";
    EXPECT_EQ(OutputOf(Program({Runfile(name)}).Preload()), expected) << name;
  }
}

TEST_F(ShimLoad, WrongRouteIsExplainedInOneLineAndGivesNoList) {
  const std::string output =
      OutputOf(Program({UseVerbs(), "null-handles"}).Preload().Set("SIMHCA_ROUTE", "sim,hardware"));
  EXPECT_THAT(output, AllOf(HasSubstr("simhca: SIMHCA_ROUTE: 'hardware' is not a route"),
                            HasSubstr(Errno(EINVAL)), HasSubstr("null handles refused\n")));
}

TEST_F(ShimLoad, RefusedHandlesAreExplainedOnRequest) {
  Program program({UseVerbs(), "null-handles"});
  EXPECT_THAT(OutputOf(program.Preload()), Not(HasSubstr("EINVAL")));
  EXPECT_THAT(OutputOf(program.Set("SIMHCA_LOG", "warn")),
              HasSubstr("ibv_destroy_qp(0x0): EINVAL: the handle is null\n"));
}

// Routes with hardware: a library with the device `fake0` stands in for the machine's.
class ShimRoute : public ShimLoad {
 protected:
  static std::string OutputOnRoute(const std::string& route) {
    return OutputOf(Program({UseVerbs(), "null-handles"})
                        .Preload()
                        .Set("LD_LIBRARY_PATH", Runfile("fake_hardware"))
                        .Set("SIMHCA_ROUTE", route));
  }
};

TEST_F(ShimRoute, SimulatorRouteNeverTouchesTheHardwaresLibrary) {
  EXPECT_THAT(OutputOnRoute("sim"), AllOf(HasSubstr(kSimulatorWorks), Not(HasSubstr("fake"))));
}

TEST_F(ShimRoute, HardwareRouteForwardsEveryCallAndListsNothingElse) {
  const std::string output = OutputOnRoute("hw");
  EXPECT_THAT(output, AllOf(HasSubstr("count 1, terminator null\n"), HasSubstr(kFakeWorks),
                            HasSubstr("fake list freed\n"), HasSubstr("null handles refused\n"),
                            Not(HasSubstr("device simhca"))));
}

TEST_F(ShimRoute, AutomaticRouteTakesHardwareWhereThereIsSome) {
  EXPECT_THAT(OutputOnRoute("auto"),
              AllOf(HasSubstr("count 1, terminator null\n"), HasSubstr(kFakeWorks)));
}

TEST_F(ShimRoute, BothListsTheSimulatorAndThenHardware) {
  EXPECT_THAT(OutputOnRoute("both"), AllOf(HasSubstr("count 2, terminator null\n"),
                                           HasSubstr(std::string(kSimulatorWorks) + kFakeWorks)));
}

TEST_F(ShimRoute, DeviceNamesInARouteSelectAndOrder) {
  EXPECT_THAT(OutputOnRoute("hw:fake0,sim"), HasSubstr(std::string(kFakeWorks) + kSimulatorWorks));
  EXPECT_THAT(OutputOnRoute("hw:other0"), HasSubstr("count 0, terminator null\n"));
  EXPECT_THAT(OutputOnRoute("sim:simhca7,hw"),
              AllOf(HasSubstr("count 1, terminator null\n"), HasSubstr(kFakeWorks)));
  EXPECT_THAT(OutputOnRoute("sim,sim:simhca0,sim"), HasSubstr("count 1, terminator null\n"));
}

TEST_F(ShimRoute, HardwareRouteFailsLikeTheRealLibraryWithoutKernelSupport) {
  const ProgramResult plain = Program({UseVerbs()}).Run();
  if (plain.output.find(Errno(ENOSYS)) == std::string::npos) {
    GTEST_SKIP() << "this machine has kernel support: " << plain.output;
  }
  const std::string output =
      OutputOf(Program({UseVerbs(), "null-handles"}).Preload().Set("SIMHCA_ROUTE", "hw"));
  EXPECT_THAT(output, HasSubstr(Errno(ENOSYS)));
}

TEST_F(ShimRoute, AutomaticRouteTakesTheSimulatorWithoutHardware) {
  const std::string output =
      OutputOf(Program({UseVerbs(), "null-handles"}).Preload().Set("SIMHCA_ROUTE", "auto"));
  EXPECT_THAT(output, AllOf(HasSubstr(kSimulatorWorks), HasSubstr("null handles refused\n")));
}

}  // namespace
}  // namespace simhca
