// What `capstan train` warns of and `capstan data check` prints, and what both say of lengths. Sources of data fill it
// in, apps/commands/data_command.cpp prints it. Names of warnings, tables and columns are what programs read
// (docs/labelled.md): tests/data/labelled/test_checks.cpp and tests/cli/inputs/test_data_check.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <variant>
#include <vector>

namespace capstan {

/// Data that can be used, but probably are not what their owner means.
struct DataWarning {
  std::string check;    // a name that programs can rely on: "header", "seen-once"
  std::string message;  // the place, what is noticed, and the key to set
};

/// A part of a report: to people a table, to programs a list of objects.
struct DataTable {
  using Cell = std::variant<int64_t, double, std::string>;

  std::string name;   // for programs
  std::string title;  // for people
  std::vector<std::string> columns;
  std::vector<std::vector<Cell>> rows;
};

struct DataReport {
  std::vector<DataTable> tables;
  std::vector<DataWarning> warnings;
  std::vector<std::string> errors;  // what would stop the training
};

/// How long texts are, in tokens or whatever was given.
struct LengthSummary {
  int64_t least = 0, median = 0, percentile_95 = 0, greatest = 0;  // percentile_95: 95 % are at most that long
  double mean = 0;
};

/// All are 0 for no lengths. The median is the lower one of two.
inline LengthSummary summary_of(std::vector<int64_t> lengths) {
  if (lengths.empty()) return {};
  std::sort(lengths.begin(), lengths.end());
  const size_t count = lengths.size();
  const auto sum = static_cast<double>(std::accumulate(lengths.begin(), lengths.end(), int64_t{0}));
  return {lengths.front(), lengths[(count - 1) / 2], lengths[(count * 95 + 99) / 100 - 1], lengths.back(),
          sum / static_cast<double>(count)};
}

}  // namespace capstan
