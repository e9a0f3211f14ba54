// What `capstan train` warns of and `capstan data check` prints, and what both say of lengths and of the bytes of
// files. Sources of data fill it in, apps/commands/data_command.cpp prints it. Names of warnings, tables and columns
// are what programs read (docs/labelled.md): tests/data/labelled/test_checks.cpp and
// tests/cli/inputs/test_data_check.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
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

template <class Count>
double share(int64_t part, Count all) {
  return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0.0;
}
/// "12.5 %" of 0.125.
std::string percent(double part);

/// The first five things of a kind, for a message, and how many there are.
class FirstFew {
 public:
  /// `make` gives the text of one; it is called only for those that are shown.
  template <class Make>
  void add(const Make& make) {
    constexpr size_t shown = 5;
    if (++count_ <= shown) first_.push_back(make());
  }
  size_t count() const { return count_; }
  /// Those shown, joined, with "..." at the end where there are more.
  std::string text(const char* separator) const;

 private:
  size_t count_ = 0;
  std::vector<std::string> first_;
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

/// How a file's bytes are written: UTF-8 or not, line ends, and signs that it was converted wrongly.
struct EncodingFacts {
  int64_t bytes = 0, invalid = 0, nul = 0;  // invalid: bytes that are not UTF-8
  int64_t lf = 0, crlf = 0;                 // lines that end so
  int64_t mojibake = 0;                     // UTF-8 that was read as Latin-1 and written as UTF-8: "Ã©" for "é"
  bool bom = false;                         // a byte order mark of UTF-8
  const char* wide = nullptr;               // wide_encoding()

  bool mixed_line_ends() const { return lf > 0 && crlf > 0; }
  /// What is unusual about the encoding, in words: "byte order mark, 3 NUL bytes"; empty if nothing is.
  std::string remarks() const;
};

/// Collects the facts of a file that comes in pieces; they do not depend on where it is cut.
class EncodingCheck {
 public:
  void push(std::string_view piece);
  EncodingFacts finish();

 private:
  size_t count(std::string_view text, size_t limit);

  EncodingFacts facts_;
  std::string head_;   // the first bytes, among which a byte order mark is
  std::string begun_;  // the end of the last piece: what begins there may continue
};

}  // namespace capstan
