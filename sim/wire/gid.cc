#include "sim/wire/gid.h"

#include <cstdio>

namespace simhca {

std::string FormatGid(const Gid& gid) {
  std::string text;
  for (int i = 0; i < 16; i += 2) {
    char group[6];
    std::snprintf(group, sizeof(group), i == 0 ? "%02x%02x" : ":%02x%02x", gid[i], gid[i + 1]);
    text += group;
  }
  return text;
}

}  // namespace simhca
