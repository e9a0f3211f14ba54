// Groups runs by what they were evaluated on, as far as files, split and number of texts tell, and sorts each group.
// tests/run/test_run_table.cpp, tests/cli/runs/test_eval.cpp.
#include "run/summaries/comparable_runs.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/base/error.hpp"
#include "core/io/log.hpp"
#include "core/strings/strings.hpp"
#include "run/setup/run_data.hpp"
#include "run/summaries/run_folders.hpp"

namespace capstan {
namespace {

/// The measure by which all runs can be ranked: the one that each was judged by, or the loss if they differ in that.
const Metric& common_monitor(const std::vector<RunRecord>& runs) {
  std::map<std::string, size_t> judged;
  for (const RunRecord& run : runs)
    if (run.best) ++judged[run.config.train.monitor];
  if (judged.size() == 1) return metric_of(judged.begin()->first);
  if (judged.empty()) return metrics().front();
  std::vector<std::string> counts;
  for (const std::string& monitor : monitor_names())
    if (const auto found = judged.find(monitor); found != judged.end())
      counts.push_back(fmt::format("{} {}", found->second, monitor));
  log_warning(fmt::format(
      "the runs differ in train.monitor ({}): sorted by the validation loss of each run's best step", join(counts)));
  return metrics().front();
}

/// The best run has the smallest rank; what cannot be compared comes last.
double rank(const RunRecord& run, const Metric& monitor) {
  const double value = run.best ? cost_of(*run.best, monitor) : run.train_loss;
  return std::isnan(value) ? INFINITY : value;
}

std::vector<std::string> paths_of(const SourceFacts& facts, const std::string& key) {
  for (const SourceFiles& files : facts.files)
    if (files.key == key) return files.paths;
  return {};
}

/// What decides which texts a run is evaluated on, except how many there are, and by which costs.
std::string evaluation_of(const RunRecord& run) {
  const SourceFacts facts = facts_of(run.config.data);
  const std::vector<std::string> own = paths_of(facts, "valid");
  std::string evaluation = std::string(type_of(run.config.model)) + "\n" + type_of(run.config.data) + "\n";
  if (run.best) evaluation += run.best->by + "\n";
  const ConfigNode config = to_node(run.config);
  if (run.config.train.monitor == "cost")  // figures of different costs have no common scale
    evaluation += write_flow(*config.find("train")->find("costs")) + "\n";
  for (const std::string& path : own.empty() ? paths_of(facts, "train") : own)
    evaluation += std::filesystem::path(path).lexically_normal().string() + "\n";
  for (const ConfigNode& key : config.find("data")->children) {
    static const std::set<std::string> cuts{"valid_fraction", "folds", "split"};
    const bool decides = facts.files.empty() ? key.key != "train" : own.empty() && cuts.count(key.key) > 0;
    if (decides) evaluation += key.key + ": " + write_flow(key) + "\n";
  }
  return evaluation;
}

/// Were different texts held out of training data that are read in the same way?
bool has_other_texts(const RunRecord& a, const RunRecord& b) {
  return paths_of(facts_of(a.config.data), "valid").empty() && has_other_content(a.data, b.data);
}

bool is_folded(const RunConfig& config) {
  const auto* const labelled = std::get_if<LabelledSourceConfig>(&config.data);
  return labelled != nullptr && labelled->folds > 0;
}

}  // namespace

std::vector<RunRecord> read_records(const std::vector<std::string>& given) {
  std::vector<RunRecord> runs;
  for (const std::string& folder : run_folders(given)) {
    try {
      runs.push_back(read_record(folder));
    } catch (const Error& error) {
      log_warning(fmt::format("{}; left out", error.what()));
    }
  }
  if (runs.empty())
    throw Error(
        "none of the folders is a run folder: give folders with a config.yaml and a metrics.jsonl, such as runs/NAME");
  std::vector<RunRecord> sorted;
  for (std::vector<RunRecord>& group : comparable(runs)) {
    const Metric& monitor = common_monitor(group);
    std::stable_sort(group.begin(), group.end(), [&monitor](const RunRecord& a, const RunRecord& b) {
      if (a.best.has_value() != b.best.has_value()) return a.best.has_value();
      return rank(a, monitor) < rank(b, monitor);
    });
    sorted.insert(sorted.end(), group.begin(), group.end());
  }
  return sorted;
}

std::vector<std::vector<RunRecord>> comparable(const std::vector<RunRecord>& runs) {
  struct Group {
    std::string evaluation;
    int64_t targets = 0;  // 0: not known
  };
  std::vector<Group> groups;
  std::vector<std::vector<RunRecord>> members;
  for (const RunRecord& run : runs) {
    const std::string evaluation = evaluation_of(run);
    const int64_t targets = run.best && !is_folded(run.config) ? run.best->targets : 0;
    const auto takes = [&](size_t i) {
      return groups[i].evaluation == evaluation &&
             (groups[i].targets == 0 || targets == 0 || groups[i].targets == targets) &&
             std::none_of(members[i].begin(), members[i].end(),
                          [&](const RunRecord& other) { return has_other_texts(other, run); });
    };
    size_t i = 0;
    while (i < groups.size() && !takes(i)) ++i;
    if (i == groups.size()) {
      groups.push_back({evaluation});
      members.emplace_back();
    }
    if (targets != 0) groups[i].targets = targets;
    members[i].push_back(run);
  }
  return members;
}

std::string file_names(const RunConfig& config, const std::string& key) {
  std::vector<std::string> names;
  for (const std::string& path : paths_of(facts_of(config.data), key)) {
    const std::filesystem::path name = std::filesystem::path(path).lexically_normal();
    names.push_back((name.has_filename() ? name : name.parent_path()).filename().string());
  }
  return names.empty() ? "" : join_first(names);
}

std::string evaluated_on(const RunRecord& run, bool whole) {
  if (!run.best) return "";
  const char* const noun = facts_of(run.config.model).classifies() ? "texts" : "tokens";
  const std::string count = run.best->targets > 0 ? fmt::format("{} {}", run.best->targets, noun) : noun;
  const std::string own = file_names(run.config, "valid"), train = file_names(run.config, "train");
  const std::string of_files = whole && !train.empty() ? " of " + train : "";
  if (run.best->by == cross_validation) return fmt::format("{}{}, cross-validated", count, of_files);
  if (!own.empty()) return fmt::format("{} of {}", count, own);
  return facts_of(run.config.data).files.empty() ? count : fmt::format("{} held out{}", count, of_files);
}

}  // namespace capstan
