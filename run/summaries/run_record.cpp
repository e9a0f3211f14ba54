// metrics.jsonl is read line by line, and lines that cannot be read are skipped: a run may be training while it is
// read, or may be of an earlier version that wrote fewer fields. tests/run/test_run_table.cpp.
#include "run/summaries/run_record.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/base/median.hpp"
#include "core/io/file.hpp"
#include "core/io/json.hpp"
#include "core/io/log.hpp"
#include "core/strings/strings.hpp"
#include "run/setup/run_data.hpp"
#include "run/setup/saved_config.hpp"

namespace capstan {
namespace {

/// A number of an event; NAN where the event has none, or null, as which JSON stores NAN.
double number(const nlohmann::json& event, const char* key) {
  const auto value = event.find(key);
  return value != event.end() && value->is_number() ? value->get<double>() : NAN;
}

int64_t whole(const nlohmann::json& event, const char* key) {
  const auto value = event.find(key);
  return value != event.end() ? whole_number(*value).value_or(0) : 0;
}

/// Adds one line of metrics.jsonl. Events of other kinds only count with their step.
void add_event(const nlohmann::json& event, RunRecord& run) {
  const auto kind = event.find("event");
  run.step = std::max(run.step, whole(event, "step"));
  if (kind == event.end()) return;
  if (*kind == "train") {
    run.train.push_back({whole(event, "step"), whole(event, "epoch"), whole(event, "tokens"), number(event, "seconds"),
                         number(event, "loss"), number(event, "lr"), number(event, "grad_norm"),
                         number(event, "tokens_per_second"), whole(event, "rss_bytes"),
                         whole(event, "peak_rss_bytes")});
  } else if (*kind == "valid") {
    run.valid.push_back(
        {whole(event, "step"), number(event, "seconds"), number(event, "bits"), whole(event, "targets")});
    for (const Metric& metric : metrics())
      if (event.contains(metric.name)) run.valid.back().metrics[metric.name] = number(event, metric.name);
    if (const auto by = event.find("by"); by != event.end() && by->is_string()) run.valid.back().by = *by;
    if (const auto best = event.find("best"); best != event.end() && *best == true) run.best = run.valid.back();
  }
}

void sum_up(RunRecord& run) {
  std::vector<double> speeds;
  for (const TrainPoint& point : run.train) {
    if (std::isfinite(point.seconds)) run.seconds = point.seconds;
    if (std::isfinite(point.loss)) run.train_loss = point.loss;
    if (std::isfinite(point.tokens_per_second)) speeds.push_back(point.tokens_per_second);
    run.peak_rss_bytes = std::max(run.peak_rss_bytes, point.peak_rss_bytes);
  }
  run.tokens_per_second = median(std::move(speeds));
}

/// "2026-11-24 17:47" of "[2026-11-24 17:47:22] a line"; empty for any other.
std::string time_of(const std::string& line) {
  constexpr size_t minutes = 16, bracket = 20;
  return line.size() > bracket && line[0] == '[' && line[bracket] == ']' ? line.substr(1, minutes) : "";
}

void read_times(const std::filesystem::path& log, RunRecord& run) {
  if (!std::filesystem::exists(log)) return;
  std::istringstream file(read_file(log.string()));
  for (std::string line; std::getline(file, line);) {
    const std::string time = time_of(line);
    if (run.begun.empty()) run.begun = time;
    if (!time.empty()) run.ended = time;
  }
}

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

/// Whether a folder is a link, such as that of a search to its best run, to another of the folders.
bool leads_to_another(const std::string& folder, const std::vector<std::string>& folders) {
  std::error_code unknown;
  if (!std::filesystem::is_symlink(folder, unknown)) return false;
  return std::any_of(folders.begin(), folders.end(), [&](const std::string& other) {
    return !std::filesystem::is_symlink(other, unknown) && std::filesystem::equivalent(folder, other, unknown);
  });
}

}  // namespace

double cost_of(const ValidPoint& point, const Metric& metric) { return metric.cost(point.value(metric.name)); }

bool clearly_better(const ValidPoint& a, const ValidPoint& b, const Metric& metric) {
  const double gain = cost_of(b, metric) - cost_of(a, metric), share = b.value(metric.name);
  if (std::isnan(gain)) return std::isnan(cost_of(b, metric)) && !std::isnan(cost_of(a, metric));
  const bool known = metric.of_targets && b.targets > 0;
  return gain > (known ? std::sqrt(share * (1 - share) / static_cast<double>(b.targets)) : 0);
}

RunRecord read_record(const std::filesystem::path& folder) {
  const auto metrics = folder / "metrics.jsonl";
  RunRecord run;
  run.folder = folder.string();
  run.config = load_run_config(folder);
  std::istringstream file(std::filesystem::exists(metrics) ? read_file(metrics.string()) : std::string());
  for (std::string line; std::getline(file, line);) {
    const nlohmann::json event = try_parse_json(line);
    // The last line may be incomplete: the run may be training at this moment.
    if (event.is_object()) add_event(event, run);
  }
  if (run.step == 0) throw Error(fmt::format("{}: no steps recorded: has training started?", metrics.string()));
  const bool solved = facts_of(run.config.model).is_solved;
  if (run.best && run.best->by.empty() && solved && default_split(run.config) == Split::test)
    run.best->by = cross_validation;  // earlier versions did not record it
  sum_up(run);
  read_times(folder / "train.log", run);
  if (solved) {  // its line of training has the loss of held-out texts, which is no training loss
    run.train_loss = NAN;
    for (TrainPoint& point : run.train) point.loss = NAN;
  }
  return run;
}

std::vector<RunRecord> read_records(const std::vector<std::string>& given) {
  std::vector<RunRecord> runs;
  const std::vector<std::string> folders = run_folders(given);
  for (const std::string& folder : folders) {
    if (leads_to_another(folder, folders)) continue;
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
  for (const std::vector<size_t>& places : comparable(runs)) {
    std::vector<RunRecord> group;
    for (const size_t place : places) group.push_back(runs[place]);
    const Metric& monitor = common_monitor(group);
    std::stable_sort(group.begin(), group.end(), [&monitor](const RunRecord& a, const RunRecord& b) {
      if (a.best.has_value() != b.best.has_value()) return a.best.has_value();
      return rank(a, monitor) < rank(b, monitor);
    });
    sorted.insert(sorted.end(), group.begin(), group.end());
  }
  return sorted;
}

namespace {

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

bool is_folded(const RunConfig& config) {
  const auto* const labelled = std::get_if<LabelledSourceConfig>(&config.data);
  return labelled != nullptr && labelled->folds > 0;
}

}  // namespace

std::vector<std::vector<size_t>> comparable(const std::vector<RunRecord>& runs) {
  struct Group {
    std::string evaluation;
    int64_t targets;  // 0: not known
    std::vector<size_t> runs;
  };
  std::vector<Group> groups;
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::string evaluation = evaluation_of(runs[i]);
    const int64_t targets = runs[i].best && !is_folded(runs[i].config) ? runs[i].best->targets : 0;
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
      return group.evaluation == evaluation && (group.targets == 0 || targets == 0 || group.targets == targets);
    });
    Group& group = same == groups.end() ? groups.emplace_back(Group{evaluation, 0, {}}) : *same;
    if (targets != 0) group.targets = targets;
    group.runs.push_back(i);
  }
  std::vector<std::vector<size_t>> places;
  for (Group& group : groups) places.push_back(std::move(group.runs));
  return places;
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

bool is_run(const std::filesystem::path& folder) {
  std::error_code error;
  if (std::filesystem::exists(folder / "config.yaml", error)) return true;
  const std::filesystem::directory_iterator names(folder, error);
  return error == std::errc::permission_denied;
}

namespace {

/// Whether a folder is that of a search, which has short runs in the folders below it.
bool is_search(const std::filesystem::path& folder) {
  std::error_code unknown;
  return std::filesystem::exists(folder / search_file, unknown);
}

/// The runs in a folder that is no run itself, and in its folders, down to `levels` below it.
std::vector<std::string> runs_in(const std::filesystem::path& folder, int levels, ShortRuns short_runs) {
  std::error_code unknown;
  if (is_run(folder)) return {};
  std::vector<std::string> runs;
  for (const std::string& name : names_in_folder(folder.string())) {
    const auto path = folder / name;
    if (std::filesystem::is_symlink(path, unknown)) continue;  // such as that of a search to its best run
    if (is_run(path)) {
      runs.push_back(path.string());
    } else if (levels > 0 && (short_runs == ShortRuns::with || !is_search(folder))) {
      const std::vector<std::string> below = runs_in(path, levels - 1, short_runs);
      runs.insert(runs.end(), below.begin(), below.end());
    }
  }
  return runs;
}

}  // namespace

std::vector<std::string> run_folders(const std::vector<std::string>& folders, ShortRuns short_runs) {
  constexpr int levels = 2;  // runs/first/second
  std::error_code unknown;
  for (const std::string& folder : folders)
    if (!std::filesystem::exists(std::filesystem::symlink_status(folder, unknown))) throw Error(no_run(folder));
  const bool runs_given =
      std::any_of(folders.begin(), folders.end(), [](const auto& folder) { return is_run(folder); });
  std::vector<std::string> runs, left_out;
  const auto add = [&](const std::string& run) {
    if (std::find(runs.begin(), runs.end(), run) == runs.end()) runs.push_back(run);
  };
  for (const std::string& folder : folders) {
    const std::vector<std::string> inside = runs_in(folder, levels, short_runs);
    if (inside.empty() && (folders.size() == 1 || !std::filesystem::is_regular_file(folder, unknown))) add(folder);
    if (!inside.empty() && runs_given && short_runs == ShortRuns::without &&
        is_search(std::filesystem::path(folder) / ".."))
      left_out.push_back(folder);
    else
      std::for_each(inside.begin(), inside.end(), add);
  }
  if (!left_out.empty())
    log_info(fmt::format("{}: short runs of a search, left out beside others; give such a folder alone",
                         join_first(left_out)));
  return runs.empty() ? folders : runs;
}

}  // namespace capstan
