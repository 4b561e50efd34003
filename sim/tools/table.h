#ifndef SIMHCA_SIM_TOOLS_TABLE_H_
#define SIMHCA_SIM_TOOLS_TABLE_H_

#include <ostream>
#include <string>
#include <vector>

namespace simhca {

// Rows of text in columns as wide as their widest entry; the last column is not padded.
class Table {
 public:
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  void Print(std::ostream& out) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace simhca

#endif  // SIMHCA_SIM_TOOLS_TABLE_H_
