// The names of classes, and which class a label of the data means. The index of a name is the column of a model's
// output, and a run saves the names in this order (classes.txt), so the order must not change:
// tests/data/labelled/test_labelled_source.cpp
// ("class names") and tests/cli/runs/test_old_runs.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace capstan {

/// The names of classes by index, and the look-up of labels.
class ClassNames {
 public:
  /// Names in the order of their indices. In data, an integer is the number of its class, counted from
  /// 0, unless some name is an integer itself. Throws Error for a name that occurs twice; `origin` says
  /// where they come from.
  static ClassNames from_list(std::vector<std::string> names, const std::string& origin);
  /// The different labels of training data, sorted: as numbers when all are integers, otherwise by bytes. `origin`
  /// names the data.
  static ClassNames gather(const std::vector<std::string>& labels, const std::string& origin);

  const std::vector<std::string>& names() const { return names_; }
  /// The index of a label; none if it is unknown. A label that another format writes otherwise is known, too: "true"
  /// and "True", 1 and 1.0, with and without quotes, unless several classes differ by this alone.
  std::optional<int32_t> find(const std::string& label) const;
  /// Throws Error for an unknown label, with the nearest and the known ones; `place` is its file:line. For one thread
  /// at a time: it counts the hints that it has given.
  int32_t index_of(const std::string& label, const std::string& place) const;

 private:
  explicit ClassNames(std::vector<std::string> names);

  std::vector<std::string> names_;
  std::unordered_map<std::string, int32_t> indices_,
      forms_;  // by name; by common_form(), -1 if several classes have it
  bool accepts_indices_ = false;
  mutable int hints_ = 0;  // given by index_of() so far
};

}  // namespace capstan
