// Configurations are combined as trees (ConfigNode) and only then read, so that every problem has the place in the file
// where its value is written. tests/run/test_sweep.cpp.
#include "run/training/sweep.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>

#include "core/base/error.hpp"
#include "core/strings/strings.hpp"
#include "run/setup/run_data.hpp"
#include "run/summaries/differing_keys.hpp"
#include "run/yaml/config.hpp"

namespace capstan {
namespace {

constexpr size_t max_runs = 1000, longest_value = 40;  // runs of a sweep; characters of a value in a run's name

/// A key and the values it takes.
struct Axis {
  std::string path;
  ConfigNode values;  // a list
};

/// Removes the key `sweep` from the tree and returns it.
std::optional<ConfigNode> take_sweep(ConfigNode& tree) {
  for (auto child = tree.children.begin(); child != tree.children.end(); ++child) {
    if (child->key != sweep_key) continue;
    ConfigNode sweep = std::move(*child);
    tree.children.erase(child);
    return sweep;
  }
  return std::nullopt;
}

/// What is wrong with an axis; empty when it can be used.
std::string axis_problem(const Axis& axis) {
  if (axis.path == "name" || axis.path == "folder") return "cannot be swept: each run is named after its values";
  if (axis.values.kind != NodeKind::list) return fmt::format("expected a list of values, got {}", shown(axis.values));
  if (axis.values.children.empty()) return "expected at least one value";
  std::set<std::string> seen;
  for (const ConfigNode& value : axis.values.children)
    if (const std::string text = write_flow(value); !seen.insert(text).second)
      return fmt::format("the value {} is listed twice", text);
  return "";
}

/// Adds the axes below a node. {train: {lr: [...]}} means train.lr: [...], so that --set sweep.train.lr=[...] works,
/// too.
void add_axes(const ConfigNode& node, const std::string& path, std::vector<Axis>& axes, ProblemList& problems) {
  for (const ConfigNode& child : node.children) {
    const std::string below = join_path(path, child.key);
    if (child.kind == NodeKind::map) {
      add_axes(child, below, axes, problems);
      continue;
    }
    const auto same = std::find_if(axes.begin(), axes.end(), [&](const Axis& axis) { return axis.path == below; });
    if (same != axes.end() && same->values.place.order == child.place.order)
      problems.add(child.key_place, join_path(sweep_key, below), "is given twice");
    if (same == axes.end())
      axes.push_back({below, child});
    else if (child.place.order > same->values.place.order)  // a later file or an override replaces the values
      same->values = child;
  }
}

/// The axes of a sweep. Throws ConfigError with all problems, and for too many runs before any is made.
std::vector<Axis> axes_of(const ConfigNode& sweep) {
  ProblemList problems;
  std::vector<Axis> axes;
  const std::string example = "keys with lists of values, such as {train.lr: [1e-3, 3e-3], seed: [1, 2]}";
  if (sweep.kind != NodeKind::map || sweep.children.empty())
    problems.add(sweep.place, sweep_key, fmt::format("expected {}, got {}", example, shown(sweep)));
  else
    add_axes(sweep, "", axes, problems);
  size_t runs = 1;
  for (const Axis& axis : axes) {
    if (const std::string problem = axis_problem(axis); !problem.empty())
      problems.add(axis.values.place, join_path(sweep_key, axis.path), problem);
    runs = std::min(max_runs + 1, runs * std::max<size_t>(1, axis.values.children.size()));
  }
  if (runs > max_runs) problems.add(sweep.place, sweep_key, fmt::format("more than {} runs", max_runs));
  problems.throw_if_any();
  return axes;
}

/// A value as a part of a folder's name.
std::string folder_text(const ConfigNode& value) {
  std::string out;
  for (const char c : value.kind == NodeKind::scalar ? value.text : write_flow(value)) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '+' || c == '-';
    if (plain)
      out += c;
    else if (!out.empty() && out.back() != '-')
      out += '-';
  }
  while (!out.empty() && out.back() == '-') out.pop_back();
  return out.empty() ? "none" : out.substr(0, longest_value);
}

/// One combination: an index into each list of values.
using Choice = std::vector<size_t>;

/// Advances to the next combination, the last axis fastest; false after the last one.
bool advance(Choice& choice, const std::vector<Axis>& axes) {
  for (size_t i = axes.size(); i-- > 0;) {
    if (++choice[i] < axes[i].values.children.size()) return true;
    choice[i] = 0;
  }
  return false;
}

/// "lr=3e-3,seed=2", unlike all in `taken`.
std::string run_name(const std::vector<Axis>& axes, const Choice& choice, std::set<std::string>& taken) {
  std::vector<std::string> paths;
  for (const Axis& axis : axes) paths.push_back(axis.path);
  const std::vector<std::string> names = short_names(paths);
  std::string name;
  for (size_t i = 0; i < axes.size(); ++i)
    name += (i > 0 ? "," : "") + names[i] + "=" + folder_text(axes[i].values.children[choice[i]]);
  std::string unlike = name;
  for (int count = 2; !taken.insert(unlike).second; ++count) unlike = fmt::format("{}-{}", name, count);
  return unlike;
}

/// The tree with the values of one combination.
ConfigNode chosen_tree(const ConfigNode& base, const std::vector<Axis>& axes, const Choice& choice) {
  ConfigNode tree = base;
  for (size_t i = 0; i < axes.size(); ++i) {
    const ConfigNode& value = axes[i].values.children[choice[i]];
    const std::string wrong = set_value(tree, axes[i].path, value);
    if (wrong.empty()) continue;
    ProblemList problems;
    problems.add(value.place, join_path(sweep_key, axes[i].path), wrong);
    problems.throw_if_any();
  }
  return tree;
}

}  // namespace

std::optional<Sweep> find_sweep(const ConfigOptions& options, const ConfigCheck& check) {
  ProblemList problems;
  ConfigNode tree = load_config_tree(options, problems);
  const std::optional<ConfigNode> node = take_sweep(tree);
  if (!node) return std::nullopt;
  const std::vector<Axis> axes = axes_of(*node);
  Sweep sweep;
  std::set<std::string> taken;
  Choice choice(axes.size(), 0);
  do {
    const std::string name = run_name(axes, choice, taken);
    try {
      RunConfig run = read_run(chosen_tree(tree, axes, choice), problems, check);
      RunConfig copy = run;
      find_data_columns(copy);  // a table in doubt is refused here, not by one run after the other
      sweep.folder = folder_of(run);
      run.folder = sweep.folder.string();
      run.name = name;
      sweep.runs.push_back(std::move(run));
    } catch (const ConfigError& error) {
      throw ConfigError(fmt::format("{} (in {})", error.what(), name));
    }
  } while (advance(choice, axes));
  return sweep;
}

Sweep load_sweep(const ConfigOptions& options, const ConfigCheck& check) {
  if (auto sweep = find_sweep(options, check)) return std::move(*sweep);
  throw ConfigError(
      fmt::format("{}: the key sweep is missing: add one, such as sweep: {{seed: [1, 2, 3]}}, or use capstan train for "
                  "a single run",
                  options.files.empty() ? "configuration" : join(options.files)));
}

RunConfig load_without_sweep(const ConfigOptions& options, const ConfigCheck& check) {
  ProblemList problems;
  ConfigNode tree = load_config_tree(options, problems);
  take_sweep(tree);
  return read_run(tree, std::move(problems), check);
}

}  // namespace capstan
