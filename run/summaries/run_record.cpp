// metrics.jsonl is read line by line, and lines that cannot be read are skipped: a run may be training while it is
// read. tests/run/test_run_table.cpp.
#include "run/summaries/run_record.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/error.hpp"
#include "core/base/median.hpp"
#include "core/io/file.hpp"
#include "core/io/json.hpp"
#include "run/setup/run_config.hpp"
#include "run/yaml/config_writer.hpp"
#include "train/checkpoints/saved_checkpoint.hpp"
#include "train/records/metrics.hpp"

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

}  // namespace

double cost_of(const ValidPoint& point, const Metric& metric) { return metric.cost(point.value(metric.name)); }

bool clearly_better(const ValidPoint& a, const ValidPoint& b, const Metric& metric) {
  const double gain = cost_of(b, metric) - cost_of(a, metric), share = b.value(metric.name);
  if (std::isnan(gain)) return std::isnan(cost_of(b, metric)) && !std::isnan(cost_of(a, metric));
  const bool known = metric.of_targets && b.targets > 0;
  return gain > (known ? std::sqrt(share * (1 - share) / static_cast<double>(b.targets)) : 0);
}

RunRecord read_record(const std::filesystem::path& folder) {
  RunRecord run;
  run.folder = folder.string();
  run.config = load_run_config(folder);
  // The checkpoint is read first: the run may be training at this moment, and metrics.jsonl only grows.
  SavedCheckpoint last;
  const std::filesystem::path checkpoints = folder / "checkpoints";
  if (const int64_t step = last_step(checkpoints); step >= 0)
    last = open_checkpoint(folder_of_step(checkpoints, step), Reading::state);
  const bool saved = last.whole() && !last.folder.empty();
  const ConfigNode config = to_node(run.config);
  const ConfigNode* const tokenizer = config.find("data")->find("tokenizer");  // whose path is not in the identity
  if (saved) run.data = (tokenizer != nullptr ? write_flow(*tokenizer) + "\n" : "") + last.state.identity["data"];
  std::istringstream file(read_metrics(folder, saved ? &last.state : nullptr));
  for (std::string line; std::getline(file, line);) {
    const nlohmann::json event = try_parse_json(line);
    // The last line may be incomplete.
    if (event.is_object()) add_event(event, run);
  }
  if (run.step == 0)
    throw NoSteps(fmt::format("{}: no steps recorded: has training started?", (folder / "metrics.jsonl").string()));
  const bool solved = facts_of(run.config.model).is_solved;
  sum_up(run);
  read_times(folder / "train.log", run);
  if (solved) {  // its line of training has the loss of held-out texts, which is no training loss
    run.train_loss = NAN;
    for (TrainPoint& point : run.train) point.loss = NAN;
  }
  return run;
}

}  // namespace capstan
