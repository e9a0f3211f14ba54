// Tensors are matched to parameters by name (ChosenTensors), rows by meaning (warm_rows.cpp). Every parameter and every
// tensor gets a line of the log that says what became of it, so that nothing is dropped in silence; shapes that do not
// fit are an error that lists all of them. tests/cli/training/test_warm_start.cpp and test_warm_refusals.cpp.
#include "run/warm_start/warm_start.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/error.hpp"
#include "core/strings/pattern.hpp"
#include "core/strings/strings.hpp"
#include "run/setup/weights_origin.hpp"
#include "run/yaml/config_writer.hpp"
#include "train/checkpoints/checkpoint.hpp"

namespace capstan {
namespace fs = std::filesystem;

namespace {

using Tensors = std::map<std::string, const FileTensor*>;

/// The tensors of a file without those that train.init_skip names.
struct ChosenTensors {
  Tensors tensors;
  std::vector<std::string> skipped;  // names of the tensors that were left out
};

std::string names_in(const SafetensorsFile& file) {
  std::vector<std::string> names;
  for (const FileTensor& tensor : file.tensors()) names.push_back(tensor.name);
  return join_first(names);
}

/// Chooses the tensors that no pattern of train.init_skip names. A tensor with an alias is listed under both names.
/// Throws Error for a pattern that matches nothing.
ChosenTensors choose_tensors(const WeightsOrigin& origin, const std::vector<std::string>& skip) {
  ChosenTensors chosen;
  std::set<std::string> used;
  const auto skips = [&](const std::string& name) {
    bool skipped = false;
    for (const std::string& pattern : skip) {
      if (!matches(name, pattern)) continue;
      used.insert(pattern);
      skipped = true;
    }
    return skipped;
  };
  for (const FileTensor& tensor : origin.tensors->tensors())
    if (skips(tensor.name))
      chosen.skipped.push_back(tensor.name);
    else
      chosen.tensors.emplace(tensor.name, &tensor);
  for (const auto& [alias, target] : origin.aliases())
    if (const FileTensor* const tensor = origin.tensors->find(target);
        tensor != nullptr && !skips(alias) && !skips(target))
      chosen.tensors.emplace(alias, tensor);
  for (const std::string& pattern : skip)
    if (used.count(pattern) == 0)
      throw Error(fmt::format("train.init_skip: no tensor of {} is called {}; it has {}", origin.file, pattern,
                              names_in(*origin.tensors)));
  return chosen;
}

/// What became of a parameter, or of a tensor that no parameter took.
struct Line {
  std::string fate, name, shape, note;  // fate: "loaded", "fresh" (keeps its start) or "left out"; note: why or how
};

/// The lines of the log. Blocks that are alike share a line: "blocks.0.mixer.x" and "blocks.1.mixer.x" become
/// "blocks.N.mixer.x".
std::vector<std::string> table_of(const std::vector<Line>& lines) {
  std::vector<std::pair<Line, int64_t>> groups;
  for (Line line : lines) {
    const int64_t block = block_of(line.name);
    if (block >= 0) line.name = "blocks.N" + line.name.substr(line.name.find('.', 7));
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      return block >= 0 && group.first.name == line.name && group.first.fate == line.fate &&
             group.first.shape == line.shape && group.first.note == line.note;
    });
    if (same == groups.end())
      groups.emplace_back(line, block >= 0 ? 1 : 0);
    else
      ++same->second;
  }
  size_t name_width = 0, shape_width = 0;
  for (const auto& [line, count] : groups) {
    name_width = std::max(name_width, line.name.size());
    shape_width = std::max(shape_width, line.shape.size());
  }
  std::vector<std::string> text;
  for (const auto& [line, count] : groups) {
    const std::string blocks = count > 0 ? fmt::format("in {} block{}", count, count > 1 ? "s" : "") : "";
    std::string row = fmt::format("  {:<8}  {:<{}}  {:<{}}  {}{}{}", line.fate, line.name, name_width, line.shape,
                                  shape_width, blocks, blocks.empty() || line.note.empty() ? "" : "; ", line.note);
    row.erase(row.find_last_not_of(' ') + 1);
    text.push_back(row);
  }
  return text;
}

std::string shape_of(const FileTensor& tensor) { return to_string(Shape(tensor.shape)); }

/// Copies tensors into parameters, and keeps a line for each about what became of it.
class Filling {
 public:
  Filling(const RunConfig& config, const RowNames& rows, const WeightsOrigin& origin, ParamStore& params)
      : origin_(origin), params_(params), rows_(config, rows, origin) {}

  /// Fills all parameters. Throws Error for shapes that do not fit, and where nothing fits.
  void fill(const ChosenTensors& from) {
    std::set<const FileTensor*> taken;
    int64_t loaded = 0;
    for (const Param& param : params_.params()) {
      const auto found = from.tensors.find(param.name);
      const FileTensor* const tensor = found != from.tensors.end() ? found->second : nullptr;
      const int64_t rows = take(param, tensor);
      warn(param, rows);
      if (tensor != nullptr) taken.insert(tensor);
      loaded += rows;
    }
    for (const std::string& name : from.skipped)
      lines_.push_back({"left out", name, shape_of(origin_.tensors->at(name)), "by train.init_skip"});
    for (const auto& [name, tensor] : from.tensors)
      if (taken.insert(tensor).second)
        lines_.push_back({"left out", name, shape_of(*tensor), "the model has no parameter of this name"});
    if (!misfits_.empty())
      throw Error(fmt::format(
          "train.init_from: {} has tensors of other shapes than the model:\n{}\ngive the model their shape, or leave "
          "them out with train.init_skip: [\"{}\"]",
          origin_.file, join(table_of(misfits_), "\n"), misfits_.front().name));
    if (loaded == 0)
      throw Error(fmt::format("train.init_from: nothing in {} fits the model:\n{}", origin_.file,
                              join(table_of(lines_), "\n")));
  }

  std::vector<std::string> table() const { return table_of(lines_); }
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  /// Warns where too few rows were filled: frozen rows would stay random, and few tokens are likely a mistake.
  void warn(const Param& param, int64_t filled) {
    const int64_t rows = param.var.dim(0);
    if (param.frozen && filled < rows)
      warnings_.push_back(fmt::format(
          "{} of {} rows of {} have no value in the file and are frozen at their random start: leave it out "
          "of train.freeze",
          rows - filled, rows, param.name));
    if (param.name == "embed.weight" && filled < rows / 10 && origin_.run)
      warnings_.push_back(
          fmt::format("only {} of {} tokens are in the vocabulary of the file: to keep that vocabulary, set "
                      "data.tokenizer={{type: saved, file: {}}}",
                      filled, rows, origin_.tokenizer_file().string()));
  }

  /// Fills a parameter from a tensor (null: there is none of its name), and returns how many rows were filled.
  int64_t take(const Param& param, const FileTensor* tensor) {
    const int64_t rows = param.var.dim(0);
    const std::string shape = to_string(param.var.shape());
    if (tensor == nullptr) {
      lines_.push_back({"fresh", param.name, shape, "no tensor of this name"});
      return 0;
    }
    const RowMapping mapping = rows_.map(param, *tensor);
    if (mapping.rows.empty()) {
      lines_.push_back({"fresh", param.name, shape, mapping.note});
      if (mapping.misfit) misfits_.push_back(lines_.back());
      return 0;
    }
    const int64_t filled = copy(param, *tensor, mapping);
    std::string note = mapping.note;
    if (filled < rows) note = fmt::format("{} of {} rows{}{}", filled, rows, note.empty() ? "" : ", ", note);
    lines_.push_back({filled > 0 ? "loaded" : "fresh", param.name, shape, note});
    return filled;
  }

  /// Copies the rows that `mapping` has, and returns their number. Where widths differ, the common columns are copied.
  int64_t copy(const Param& param, const FileTensor& tensor, const RowMapping& mapping) {
    const std::vector<float> values = tensor.to_floats();
    const auto bad = std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
    if (bad != values.end())
      throw Error(fmt::format("{}: element {} of {} is not finite: use weights of an earlier step", origin_.file,
                              bad - values.begin(), tensor.name));
    const int64_t rows = param.var.dim(0), width = param.var.size() / std::max<int64_t>(rows, 1);
    const int64_t file_width = tensor.size / std::max<int64_t>(tensor.shape[0], 1);
    real* const out = params_.values() + param.offset;
    int64_t filled = 0;
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t source = mapping.rows[static_cast<size_t>(row)];
      if (source < 0) continue;
      std::copy_n(values.data() + source * file_width, std::min(width, file_width), out + row * width);
      ++filled;
    }
    return filled;
  }

  const WeightsOrigin& origin_;
  ParamStore& params_;
  WarmRows rows_;
  std::vector<Line> lines_, misfits_;
  std::vector<std::string> warnings_;
};

bool is_number(const std::string& name) {
  return !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
}

/// Are all classes called 0, 1, ..., but not the same ones? Such names match, although they may mean other classes.
bool numbers_may_mislead(const std::vector<std::string>& ours, const std::vector<std::string>& theirs) {
  return ours != theirs && !ours.empty() && !theirs.empty() && std::all_of(ours.begin(), ours.end(), is_number) &&
         std::all_of(theirs.begin(), theirs.end(), is_number);
}

/// Keys of the model that change what weights compute, with both values: a line each. `harmless` keys do not.
std::vector<std::string> model_differences(const RunConfig& config, const WeightsOrigin& origin) {
  std::vector<std::string> lines;
  if (!origin.run) return lines;
  const TaskConfig& theirs = origin.run->config.model;
  const std::set<std::string> harmless = {"dropout", "recompute", "max_length", "loss"};
  const ConfigNode was = to_node(theirs), is = to_node(config.model);
  for (const ConfigNode& key : is.children) {
    const ConfigNode* const old = was.find(key.key);
    if (old == nullptr || key.key == "type" || harmless.count(key.key) > 0) continue;
    for (const ConfigDifference& difference : diff_trees(*old, key))
      lines.push_back(fmt::format("  model.{}{}{} was {}, is {}", key.key, difference.path.empty() ? "" : ".",
                                  difference.path, difference.a, difference.b));
  }
  const bool before = facts_of(theirs).is_causal, now = facts_of(config.model).is_causal;
  if (before != now && theirs.index() != config.model.index())  // otherwise model.causal is named
    lines.push_back(before
                        ? "  tokens saw those before them only, and see all now; a text-classifier with model.causal: "
                          "true reads as the language model did"
                        : "  tokens saw all others, and see those before them only now");
  return lines;
}

}  // namespace

WarmStart warm_start(const RunConfig& config, const RowNames& rows, const RunParts& parts) {
  const WeightsOrigin origin = open_weights(config.train.init_from);
  WarmStart result;
  result.ancestry.push_back(origin.ancestor());
  if (origin.state)
    result.ancestry.insert(result.ancestry.end(), origin.state->ancestry.begin(), origin.state->ancestry.end());
  constexpr size_t longest = 100;  // runs that start from each other again and again must not grow every state.json
  result.ancestry.resize(std::min(result.ancestry.size(), longest));
  result.report.push_back("starts from " + to_text(result.ancestry.front()));
  if (facts_of(config.model).is_solved) return result;  // its base classifier was read with the n-grams
  Filling filling(config, rows, origin, parts.params);
  filling.fill(choose_tensors(origin, config.train.init_skip));
  for (const std::string& line : filling.table()) result.report.push_back(line);
  result.warnings = filling.warnings();
  if (parts.params.known("head.weight") && origin.run && numbers_may_mislead(rows.classes, origin.run->classes))
    result.warnings.push_back(
        "classes whose names are numbers were matched by number, whatever they mean; if they mean something else now, "
        "leave them out with train.init_skip=[\"head.*\"]");
  if (const auto differences = model_differences(config, origin); !differences.empty()) {
    result.warnings.push_back("the weights were trained in another model, and compute something else here:\n" +
                              join(differences, "\n"));
  }
  return result;
}

void check_init_from(const RunConfig& config, Problems& problems) {
  const std::string& from = config.train.init_from;
  const fs::path folder = folder_of(config);
  std::error_code error;
  if (from.empty() || Checkpoints(folder / "checkpoints").last()) return;
  if (!fs::exists(from, error))
    problems.add("train.init_from",
                 fmt::format("{}: there is no such file or folder; give a run folder, the folder of a checkpoint or a "
                             "safetensors file",
                             from));
  else if (fs::equivalent(from, folder, error))
    problems.add("train.init_from", fmt::format("{} is the folder of this run: give another name or folder", from));
}

}  // namespace capstan
