// Reads the configuration and the metrics of each run. An error becomes a note of its run, so that
// one unreadable run does not hide the others: tests/cli/runs/test_strange_runs.cpp.
#include "run/summaries/run_list.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/base/error.hpp"
#include "core/io/log.hpp"
#include "core/strings/strings.hpp"
#include "run/setup/run_config.hpp"
#include "run/summaries/comparable_runs.hpp"
#include "run/summaries/run_folders.hpp"

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

std::string age_text(double seconds) {
  constexpr double minute = 60, hour = 60 * minute, day = 24 * hour;
  if (seconds < hour) return fmt::format("{:.0f} min", std::floor(seconds / minute));
  if (seconds < 2 * day) return fmt::format("{:.0f} h", std::floor(seconds / hour));
  return fmt::format("{:.0f} days", std::floor(seconds / day));
}

/// The best validation of a run, and of which texts it is.
std::pair<std::string, std::string> score_of(const fs::path& folder, const RunConfig& config) {
  try {
    const RunRecord record = read_record(folder);
    if (!record.best) return {"-", "-"};
    const Metric& metric = metric_of(config.train.monitor);
    return {metric.text(record.best->value(metric.name)), evaluated_on(record, false)};
  } catch (const NoSteps&) {
    return {"no step yet", "-"};
  }
}

}  // namespace

RunList list_recent_runs() {
  std::error_code unknown;
  std::vector<std::pair<double, std::string>> runs;  // by age
  if (fs::exists("runs", unknown))
    for (const std::string& folder : run_folders({"runs"}))
      if (is_run(folder)) runs.emplace_back(age_of(folder), folder);
  if (runs.empty()) {
    log_info(
        "there are no runs below runs yet; this makes one: capstan train --config classify --set data.train=[FILE] "
        "(a table of texts and labels; of a text: --config lm)");
    return {};
  }
  std::sort(runs.begin(), runs.end());
  RunList list{{{"run", "model", "data", "score", "of", "age"}}, {}};
  for (const auto& [age, folder] : runs) {
    try {
      const RunConfig config = load_run_config(folder);
      const std::string files = file_names(config, "train");
      const auto [score, of] = score_of(folder, config);
      list.table.push_back(
          {folder, type_of(config.model), files.empty() ? type_of(config.data) : files, score, of, age_text(age)});
    } catch (const Error& error) {
      list.table.push_back({folder, "-", "-", "cannot be read", "-", age_text(age)});
      list.problems.emplace_back(error.what());
    }
  }
  return list;
}

}  // namespace capstan
