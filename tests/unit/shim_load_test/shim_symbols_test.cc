// What the shared objects export and need.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "tests/unit/shim_load_test/program.h"

namespace simhca {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::IsSupersetOf;
using ::testing::StartsWith;

using Symbols = std::set<std::string>;

Symbols ReadList(const std::string& file) {
  std::ifstream stream(Runfile(file));
  EXPECT_TRUE(stream) << file;
  Symbols symbols;
  for (std::string line; std::getline(stream, line);) symbols.insert(line);
  return symbols;
}

// NAME, NAME@NODE or NAME@@NODE of everything that `object` defines for others.
Symbols Exported(const std::string& object) {
  const auto lines = ShellLines("nm -D --defined-only '" + object + "' | sed 's/.* //'");
  Symbols symbols;
  for (const std::string& line : lines) {
    if (!line.starts_with("IBVERBS_")) symbols.insert(line);
  }
  return symbols;
}

std::vector<std::string> Needed(const std::string& object) {
  return ShellLines("readelf -dW '" + object + "' | sed -n 's/.*(NEEDED).*\\[\\(.*\\)\\]/\\1/p'");
}

std::string SoName(const std::string& object) {
  const auto lines =
      ShellLines("readelf -dW '" + object + "' | sed -n 's/.*(SONAME).*\\[\\(.*\\)\\]/\\1/p'");
  return lines.size() == 1 ? lines[0] : "";
}

std::string DropInObject() { return DropInFolder() + "/libibverbs.so.1"; }

// A sanitizer build exports the sanitizer's own markers as well.
void ExpectExports(const std::string& object, const Symbols& expected) {
  Symbols exported = Exported(object);
  std::erase_if(exported, [](const std::string& name) {
    return name.starts_with("__asan") || name.starts_with("__odr_asan");
  });
  EXPECT_EQ(exported, expected);
}

TEST(ShimSymbols, PreloadFormExportsEveryPublicVerbAndTheInterposedNamesOnly) {
  Symbols expected = ReadList("symbols_public.txt");
  expected.merge(ReadList("symbols_newer.txt"));
  expected.merge(ReadList("symbols_unversioned.txt"));
  ExpectExports(PreloadObject(), expected);
}

TEST(ShimSymbols, DropInFormExportsEveryPublicAndPrivateVerbOnly) {
  Symbols expected = ReadList("symbols_public.txt");
  expected.merge(ReadList("symbols_newer.txt"));
  for (const std::string& name : ReadList("symbols_private.txt")) {
    if (name == "verbs_register_driver_34") continue;
    expected.insert(name + "@@IBVERBS_PRIVATE_34");
    for (const char* release : {"57", "59", "64", "65"}) {
      expected.insert(name + "@IBVERBS_PRIVATE_" + release);
    }
  }
  for (const std::string release : {"34", "57", "59", "64", "65"}) {
    expected.insert("verbs_register_driver_" + release + "@@IBVERBS_PRIVATE_" + release);
  }
  ExpectExports(DropInObject(), expected);
}

TEST(ShimSymbols, DropInFormTakesThePlaceOfTheVerbsLibraryAndThePreloadFormDoesNot) {
  EXPECT_EQ(SoName(DropInObject()), "libibverbs.so.1");
  EXPECT_EQ(SoName(PreloadObject()), "libsimhca.so");
}

TEST(ShimSymbols, BothFormsNeedNothingButTheCLibrary) {
  for (const std::string& object : {PreloadObject(), DropInObject()}) {
    EXPECT_THAT(Needed(object), IsSupersetOf({"libc.so.6"})) << object;
#ifdef SIMHCA_SANITIZED
    // The sanitizer's runtime and the C++ library that it brings.
    EXPECT_THAT(Needed(object),
                Each(AnyOf("libc.so.6", "libm.so.6", StartsWith("ld-linux"), StartsWith("libasan"),
                           StartsWith("libtsan"), StartsWith("libubsan"), StartsWith("libstdc++"),
                           StartsWith("libgcc_s"))))
        << object;
#else
    EXPECT_THAT(Needed(object), Each(AnyOf("libc.so.6", "libm.so.6", StartsWith("ld-linux"))))
        << object;
#endif
  }
}

}  // namespace
}  // namespace simhca
