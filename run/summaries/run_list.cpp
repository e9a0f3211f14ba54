// Reads the configuration and the metrics of each run below some folders. An error becomes a note of its run, so that
// one unreadable run does not hide the others: tests/cli/runs/test_strange_runs.cpp.
#include "run/summaries/run_list.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/io/file.hpp"
#include "core/strings/strings.hpp"
#include "run/setup/saved_config.hpp"
#include "run/summaries/run_table.hpp"

namespace capstan {
namespace fs = std::filesystem;
namespace {

/// Seconds since the newest file of the folder was written. Checkpoints are not looked at: metrics.jsonl is as new.
double age_of(const fs::path& folder) {
  std::error_code unknown;
  auto newest = fs::file_time_type::min();
  for (const char* const name : {"config.yaml", "metrics.jsonl", "train.log"})
    if (const auto time = fs::last_write_time(folder / name, unknown); !unknown) newest = std::max(newest, time);
  if (newest == fs::file_time_type::min()) newest = fs::last_write_time(folder, unknown);  // one that may not be read
  return std::max(0.0, std::chrono::duration<double>(fs::file_time_type::clock::now() - newest).count());
}

/// "; costs: yes as no 20": figures of different costs have no common scale. Empty unless the score is a cost.
std::string costs_of(const TrainConfig& config) {
  if (config.monitor != "cost" || config.costs.empty()) return "";
  std::vector<std::string> costs;
  for (const MistakeCost& mistake : config.costs)
    costs.push_back(fmt::format("{} as {} {:g}", mistake.truth, mistake.predicted, mistake.cost));
  return "; costs: " + join_first(costs);
}

/// What the folder tells of a run. An error is a note of the run, so that the list goes on.
ListedRun listed(const fs::path& folder) {
  ListedRun run;
  run.folder = folder.string();
  run.age = age_of(folder);
  try {
    run.bytes = bytes_below(folder.string());
    const RunConfig config = load_run_config(folder);
    run.kind = type_of(config.model);
    run.data = file_names(config, "train");
    if (run.data.empty()) run.data = type_of(config.data);
    const RunRecord record = read_record(folder);
    run.step = record.step;
    if (!record.best) return run;
    run.of = evaluated_on(record, false) + costs_of(config.train);
    run.metric = config.train.monitor;
    run.score = record.best->value(metric_of(run.metric).name);
  } catch (const Error& error) {
    run.problem = error.what();
  }
  return run;
}

std::string age_text(double seconds) {
  constexpr double minute = 60, hour = 60 * minute, day = 24 * hour;
  if (seconds < hour) return fmt::format("{:.0f} min", std::floor(seconds / minute));
  if (seconds < 2 * day) return fmt::format("{:.0f} h", std::floor(seconds / hour));
  return fmt::format("{:.0f} days", std::floor(seconds / day));
}

}  // namespace

std::vector<ListedRun> list_runs(const std::vector<std::string>& folders) {
  std::vector<ListedRun> runs;
  for (const std::string& folder : run_folders(folders))
    if (is_run(folder)) runs.push_back(listed(folder));
  std::stable_sort(runs.begin(), runs.end(), [](const ListedRun& a, const ListedRun& b) { return a.age < b.age; });
  return runs;
}

void print_text(const std::vector<ListedRun>& runs, std::ostream& out, size_t width) {
  Table table{{"run", "kind", "data", "score", "of", "size", "age"}};
  for (const ListedRun& run : runs) {
    const std::string score = !run.problem.empty()    ? "cannot be read"
                              : std::isnan(run.score) ? "-"
                                                      : metric_of(run.metric).text(run.score);
    table.push_back({run.folder, run.kind.empty() ? "-" : run.kind, run.data.empty() ? "-" : run.data, score,
                     run.of.empty() ? "-" : run.of, bytes_text(static_cast<double>(run.bytes)), age_text(run.age)});
  }
  print_text(table, out, width);
  for (const ListedRun& run : runs)
    if (!run.problem.empty()) out << run.problem << '\n';
}

void print_json(const std::vector<ListedRun>& runs, std::ostream& out) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ListedRun& run : runs) {
    list.push_back({{"run", run.folder}, {"kind", run.kind}, {"data", run.data}, {"step", run.step}});
    nlohmann::ordered_json& entry = list.back();
    if (!std::isnan(run.score)) entry.update({{"metric", run.metric}, {"score", run.score}, {"of", run.of}});
    entry.update({{"bytes", run.bytes}, {"age_seconds", std::floor(run.age)}});
    if (!run.problem.empty()) entry["problem"] = run.problem;
  }
  out << list.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
}

}  // namespace capstan
