// What `capstan train` warns of and `capstan data check` prints.
#pragma once

#include <cstdint>
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

}  // namespace capstan
