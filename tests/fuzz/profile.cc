// A device profile that anybody may have written: it is accepted, with values in range, or refused
// with a reason.

#include <string_view>

#include "sim/profiles/profile_loader.h"
#include "tests/fuzz/input.h"

namespace simhca::fuzz {
namespace {

void CheckProfile(std::string_view text) {
  const ProfileResult result = ParseProfile(text, "fuzz.toml");
  Require(result.profile.has_value() == result.error.empty(), "a profile or a reason, never both");
  if (!result) {
    Require(result.error.starts_with("fuzz.toml"), "a reason names the file");
    return;
  }
}

}  // namespace
}  // namespace simhca::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  simhca::fuzz::CheckProfile({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
