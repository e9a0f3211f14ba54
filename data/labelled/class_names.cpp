// Gathers the names of classes, and looks labels up, also in their common forms (label_forms.hpp). The order
// of names is that of a model's outputs and must not change: tests/data/labelled/test_labelled_source.cpp and
// tests/cli/runs/test_old_runs.cpp.
#include "data/labelled/class_names.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "core/base/error.hpp"
#include "core/strings/nearest.hpp"
#include "core/strings/strings.hpp"
#include "core/strings/utf8.hpp"
#include "data/formats/table_format.hpp"
#include "data/labelled/label_forms.hpp"

namespace capstan {

ClassNames::ClassNames(std::vector<std::string> names) : names_(std::move(names)) {
  for (size_t i = 0; i < names_.size(); ++i) {
    const auto [found, added] = forms_.emplace(common_form(names_[i]), static_cast<int32_t>(i));
    if (!added) found->second = -1;
  }
}

ClassNames ClassNames::from_list(std::vector<std::string> names, const std::string& origin) {
  ClassNames classes(std::move(names));
  classes.accepts_indices_ = true;
  for (size_t i = 0; i < classes.names_.size(); ++i) {
    const std::string& name = classes.names_[i];
    check_name(name, origin, "the name of a class");
    if (name.find_first_of("\t\r\n") != std::string::npos)  // classes.txt and tables could not hold it
      throw Error(
          fmt::format("{}: class {} has a tab or a line break in its name; choose another label", origin, i + 1));
    if (!classes.indices_.emplace(name, static_cast<int32_t>(i)).second)
      throw Error(fmt::format("{}: the class '{}' is named twice", origin, name));
    if (parse_integer(name)) classes.accepts_indices_ = false;
  }
  return classes;
}

ClassNames ClassNames::gather(const std::vector<std::string>& labels, const std::string& origin) {
  const std::set<std::string> different(labels.begin(), labels.end());
  std::vector<std::string> names(different.begin(), different.end());
  if (std::all_of(names.begin(), names.end(), [](const std::string& name) { return parse_integer(name).has_value(); }))
    std::stable_sort(names.begin(), names.end(),
                     [](const std::string& a, const std::string& b) { return *parse_integer(a) < *parse_integer(b); });
  ClassNames classes = from_list(std::move(names), origin);
  classes.accepts_indices_ = false;  // a label that the training data do not have must not slip through as an index
  return classes;
}

std::optional<int32_t> ClassNames::find(const std::string& label) const {
  const auto found = indices_.find(label);
  if (found != indices_.end()) return found->second;
  const std::string form = common_form(label);
  if (const auto alike = forms_.find(form); alike != forms_.end() && alike->second >= 0) return alike->second;
  for (const auto& [spelling, synonym] : {std::pair("true", "1"), {"false", "0"}, {"1", "true"}, {"0", "false"}})
    if (form == spelling && forms_.count(spelling) == 0)
      if (const auto known = forms_.find(synonym); known != forms_.end() && known->second >= 0) return known->second;
  const auto index = accepts_indices_ ? parse_integer(form) : std::nullopt;
  if (index && *index >= 0 && *index < static_cast<int64_t>(names_.size())) return static_cast<int32_t>(*index);
  return std::nullopt;
}

int32_t ClassNames::index_of(const std::string& label, const std::string& place) const {
  if (const auto found = find(label)) return *found;
  // A search for the nearest name visits all names, and of a million messages only ten are shown.
  constexpr int max_hints = 100;
  const std::string meant =
      (accepts_indices_ && parse_integer(label)) || hints_ >= max_hints ? "" : nearest(label, names_);
  ++hints_;
  const std::string hint = meant.empty() ? ";" : fmt::format(", did you mean '{}'?", meant);
  throw Error(fmt::format("{}: unknown label '{}'{} known: {}", place, label.substr(0, 100), hint, join_first(names_)));
}

}  // namespace capstan
