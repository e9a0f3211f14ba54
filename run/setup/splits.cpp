// The rules of the types of data that are files, by which a split is read or held out of the training data, and what to
// do where a split is missing. tests/cli/runs/test_eval.cpp.
#include "run/setup/splits.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/io/log.hpp"
#include "core/strings/strings.hpp"
#include "data/files/file_list.hpp"

namespace capstan {
namespace {

/// The share of the training data that is held out for a split.
double held_out(const PairSourceConfig& data, Split split) { return split == Split::valid ? data.valid_fraction : 0; }
double held_out(const LabelledSourceConfig& data, Split split) {
  return split == Split::valid ? (data.folds > 0 ? 1 / static_cast<double>(data.folds) : data.valid_fraction) : 0;
}
double held_out(const TextSourceConfig& data, Split split) {
  return split == Split::valid ? data.valid_fraction : split == Split::test ? data.test_fraction : 0;
}

/// Takes a split out of a configuration: its files, and the share of the training data that is held out for it. Without
/// training data, no split can be held out of them.
template <class Source>
void leave_out(Source& data, Split split) {
  part_of(data, split).clear();
  if (split != Split::test) data.valid_fraction = 0;
  if constexpr (std::is_same_v<Source, LabelledSourceConfig>)
    if (split == Split::train) data.folds = 0;
  if constexpr (std::is_same_v<Source, TextSourceConfig>) {
    if (split != Split::valid) data.test_fraction = 0;
    if (split == Split::train) data.weights.clear();
  }
}

/// visit(data) where the data are files, of a type that has rules above.
template <class Data, class Visit>
void with_files(Data& data, const Visit& visit) {
  std::visit(
      [&](auto& source) {
        using Source = std::decay_t<decltype(source)>;
        if constexpr (std::is_same_v<Source, TextSourceConfig> || std::is_same_v<Source, LabelledSourceConfig> ||
                      std::is_same_v<Source, PairSourceConfig>)
          visit(source);
      },
      data);
}

/// May a share of the training data be held out for the split?
bool is_cut_from_train(Split split, const SourceConfig& config) {
  bool cut = false;
  with_files(config, [&](const auto& data) {
    constexpr bool is_text = std::is_same_v<std::decay_t<decltype(data)>, TextSourceConfig>;
    cut = split == Split::valid || (is_text && split == Split::test);
  });
  return cut;
}

bool has_files(const SourceConfig& config) {
  bool files = false;
  with_files(config, [&](const auto&) { files = true; });
  return files;
}

/// Is a share of the training data held out for the split?
bool is_held_out(Split split, const SourceConfig& config) {
  bool held = false;
  with_files(config, [&](const auto& data) { held = part_of(data, split).empty() && held_out(data, split) > 0; });
  return held;
}

}  // namespace

Split split_named(const std::string& name) {
  for (const Split split : all_splits)
    if (name == to_string(split)) return split;
  throw ConfigError(fmt::format("--split: {} is not one of train, valid, test", name));
}

Split split_to_evaluate(std::optional<Split> asked, const RunConfig& config) {
  Split split = asked.value_or(Split::valid);
  with_files(config.data, [&](const auto& data) {
    const auto has = [&](Split of) { return !part_of(data, of).empty() || held_out(data, of) > 0; };
    if (!asked && !has(Split::valid) && has(Split::test)) split = Split::test;
  });
  if (!asked && split == Split::test) log_info("the run has no validation data: its test data are used (--split test)");
  return split;
}

bool is_cut(Split split, const SourceConfig& config) {
  bool own_files = false;
  with_files(config, [&](const auto& data) { own_files = split != Split::train && !part_of(data, split).empty(); });
  return !own_files && (is_held_out(Split::valid, config) || is_held_out(Split::test, config));
}

SourceConfig without_missing_files(SourceConfig config, Split only) {
  with_files(config, [&](auto& data) {
    const bool from_train = part_of(data, only).empty() && held_out(data, only) > 0;
    for (const Split split : all_splits) {
      const std::vector<std::string>& paths = part_of(data, split);
      const bool missing =
          std::any_of(paths.begin(), paths.end(), [](const std::string& path) { return !missing_file(path).empty(); });
      if (missing && split != only && !(split == Split::train && from_train)) leave_out(data, split);
    }
  });
  return config;
}

std::string how_to_get_split(Split split, const SourceConfig& config) {
  if (!has_files(config)) return fmt::format("data.{}=1000, a number of examples", to_string(split));
  return fmt::format(is_cut_from_train(split, config) ? "data.{0}=[FILE] or data.{0}_fraction=0.1" : "data.{0}=[FILE]",
                     to_string(split));
}

void require_split(Split split, const RunConfig& config, const DataSource& data) {
  if (data.has(split)) return;
  const std::string absent = fmt::format("data: there is no {} split: ", to_string(split));
  if (split == Split::train || !has_files(config.data))
    throw Error(absent + "give --set " + how_to_get_split(split, config.data));
  std::vector<std::string> instead;
  if (split == Split::test && data.has(Split::valid)) instead.emplace_back("the validation data with --split valid");
  if (split == Split::valid && data.has(Split::test)) instead.emplace_back("the test data with --split test");
  instead.emplace_back("files that the run has not seen with --set data.test=[FILE] --split test");
  std::string again;
  if (is_cut_from_train(split, config.data))
    again = fmt::format("; another run that is trained with data.{}_fraction=0.1 has one", to_string(split));
  const bool cross_validated = split == Split::valid && facts_of(config.model).is_solved;
  throw Error(
      fmt::format("{}evaluate {}{}{}", absent, join(instead, ", or "), again,
                  cross_validated ? "; figures in the log are from cross-validation on the training data" : ""));
}

}  // namespace capstan
