// A candidate is a configuration of the sweep, candidate 0 the given one; a trial is a run folder with fewer steps or
// examples, in short-DIVISOR/. Trials that have ended are known by their folders and times, so that a search goes on
// where it was: no state of the halving itself is kept. tests/cli/training/test_autotune.cpp.
#include "run/training/autotune.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/io/file.hpp"
#include "core/io/hash.hpp"
#include "core/io/json.hpp"
#include "core/io/log.hpp"
#include "core/strings/strings.hpp"
#include "run/setup/run_data.hpp"
#include "run/setup/run_model.hpp"
#include "run/summaries/run_record.hpp"
#include "run/summaries/run_table.hpp"
#include "run/yaml/config_diff.hpp"
#include "run/yaml/config_writer.hpp"
#include "train/checkpoints/run_folder.hpp"
#include "train/loop/signals.hpp"
#include "train/records/pace.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;

constexpr const char* given_run = "default";  // the run of the configuration as it is
constexpr const char* best_link = "best";     // the link to the best whole run

/// Seconds that trials have taken so far, by the name of their run: a search that goes on counts them.
class TrialTimes {
 public:
  explicit TrialTimes(const fs::path& folder) : path_((folder / search_file).string()) {
    if (!fs::exists(path_)) return;
    const nlohmann::json saved = try_parse_json(read_file(path_));
    if (!saved.is_object()) return;
    for (const auto& [run, seconds] : saved.items())
      if (seconds.is_number()) seconds_[run] = seconds.get<double>();
    if (saved.contains(complete_key) && saved[complete_key].is_string()) complete_ = saved[complete_key];
  }
  double seconds_of(const std::string& run) const {
    const auto found = seconds_.find(run);
    return found != seconds_.end() ? found->second : 0;
  }
  void add(const std::string& run, double seconds) {
    seconds_[run] += seconds;
    write();
  }
  /// A hash of the candidates of the last search that was complete; empty: there was none.
  const std::string& complete() const { return complete_; }
  void set_complete(const std::string& candidates) {
    if (complete_ == candidates) return;
    complete_ = candidates;
    write();
  }

 private:
  static constexpr const char* complete_key = "complete";  // no run is called so: names of runs have values in them

  void write() const {
    make_folders(fs::path(path_).parent_path().string());
    nlohmann::json saved(seconds_);
    if (!complete_.empty()) saved[complete_key] = complete_;
    replace_file(path_, json_text(saved, 1) + "\n");
  }

  std::string path_;
  std::map<std::string, double> seconds_;
  std::string complete_;
};

void check_folder(const fs::path& folder) {
  if (fs::exists(folder / "config.yaml"))
    throw Error(fmt::format("{} is the folder of a single run: give the search another name", folder.string()));
  const fs::path best = folder / best_link;
  if (fs::exists(fs::symlink_status(best)) && !fs::is_symlink(best))
    throw Error(fmt::format("{} is not the link of a search: give the search another name", best.string()));
}

/// The configuration as it is, and every other one of the sweep.
std::vector<RunConfig> candidates_of(const AutotuneOptions& options, fs::path& folder) {
  const ConfigCheck check = [&](const RunConfig& config, Problems& problems) {
    (options.run.force ? check_forced : check_trainable)(config, problems);
    check_tunable(config, problems);
  };
  RunConfig given = load_without_sweep(options.config, check);
  ConfigOptions config = options.config;
  if (!has_sweep(config))
    for (std::string& values : default_search_space(given)) config.overrides.push_back(std::move(values));
  const Sweep sweep = load_sweep(config, check);
  folder = sweep.folder;
  given.folder = folder.string();
  given.name = given_run;
  std::vector<RunConfig> candidates{given};
  for (const RunConfig& run : sweep.runs) {
    RunConfig renamed = run;
    renamed.name = given_run;
    if (const std::string key = incomparable_key(given, renamed); !key.empty())
      throw ConfigError(fmt::format("sweep.{}: runs that differ in it cannot be compared; use capstan sweep", key));
    if (!diff_configs(given, renamed).empty()) candidates.push_back(run);
  }
  return candidates;
}

class Autotune {
 public:
  Autotune(const AutotuneOptions& options, const Guard& guard)
      : options_(options), guard_(guard), candidates_(candidates_of(options, folder_)), times_(folder_) {
    check_folder(folder_);
  }

  AutotuneEnd run(std::ostream& table, size_t width) {
    const StopSignals signals;
    log_info(fmt::format("searching in {}: the configuration as it is and {} more, for {:g} min", folder_.string(),
                         candidates_.size() - 1, options_.minutes));
    const SearchEnd end = search();
    if (end == SearchEnd::complete && failed_.empty()) times_.set_complete(hash_of_candidates());
    if (end == SearchEnd::stopped) log_info("search interrupted; the same command resumes it");
    if (end == SearchEnd::complete || end == SearchEnd::time) {
      report(table, width);
      log_info(end == SearchEnd::time ? "the time is over; with more --minutes the search continues"
                                      : "the search is complete");
    }
    return {end, failed_, folder_, candidates_[0]};
  }

 private:
  std::string hash_of_candidates() const {
    std::string yaml;
    for (const RunConfig& candidate : candidates_) yaml += to_yaml(candidate);
    return hash_hex(yaml);
  }
  /// Whether a search of the same candidates was complete and its whole runs still exist.
  bool is_complete() const {
    return times_.complete() == hash_of_candidates() && is_finished(candidates_[0]) &&
           std::all_of(candidates_.begin(), candidates_.end(), [&](const RunConfig& candidate) {
             return times_.seconds_of(candidate.name) == 0 || is_finished(candidate);
           });
  }

  /// A search that is complete is not repeated: with other minutes, trials would be shortened otherwise and begin
  /// again.
  SearchEnd search() {
    if (is_complete()) return SearchEnd::complete;
    return search_by_halving(
        candidates_.size(), options_.minutes * 60, static_cast<uint64_t>(candidates_[0].seed),
        [this](const Trial& trial, double left) { return attempt(trial, left); },
        {[] { return StopSignals::received() != 0; },
         [this](const HalvingPlan& rung) {
           log_info(fmt::format("{} of {} with {}", rung.candidates, candidates_.size() - 1,
                                rung.divisor == 1 ? std::string("the whole training")
                                                  : fmt::format("1/{} of the training", rung.divisor)));
         }});
  }

  /// One trial: a run that is trained in the time that is left, or one that an earlier call has trained.
  TrialOutcome attempt(const Trial& trial, double left) {
    RunConfig config = shortened(candidates_[trial.candidate], trial.divisor);
    if (trial.divisor > 1) config.name = fmt::format("short-{}/{}", trial.divisor, config.name);
    const double before = times_.seconds_of(config.name);
    const bool first = trial.candidate == 0;  // never cut short: it is the result if no other is better
    const bool known = before > 0 && is_finished(config);
    if (!known) {
      if (!first && before >= left) return {false, NAN, before};
      if (!train(config, first, left - before)) return {false, NAN, times_.seconds_of(config.name)};
    }
    const TrialOutcome outcome{true, cost_of_run(config), times_.seconds_of(config.name)};
    if (trial.divisor > 1) drop(config, true);  // its result is in metrics.jsonl
    if (!known)
      log_info(fmt::format("{}: {} {:.4f} after {:.1f} s; {:.0f} s are left", config.name, config.train.monitor,
                           std::abs(outcome.cost), outcome.seconds, std::max(0.0, left - outcome.seconds)));
    return outcome;
  }

  /// Trains or resumes a run. False: it failed, or was stopped.
  bool train(const RunConfig& config, bool first, double seconds) {
    const Stopwatch watch;
    bool late = false;
    TrainRunOptions options = options_.run;
    options.quiet = !first;
    const Ending ending = train_in_child(config, options, guard_, [&] {
      late = late || (!first && watch.seconds() > seconds);
      return late || StopSignals::received() != 0;
    });
    times_.add(config.name, watch.seconds());
    if (ending.code == exit_done) return true;
    if (ending.code != exit_interrupted) {
      failed_.push_back(fmt::format("{}: {}", (folder_ / config.name).string(), describe_ending(ending)));
      log_error(failed_.back());
    } else if (late) {
      log_info(fmt::format("{}: stopped, the time is over", config.name));
    }
    return false;
  }

  /// Removes from a run that has ended what only resuming needs or, of a trial, all of its tensors.
  /// An error in this is only logged, so that the search goes on.
  void drop(const RunConfig& config, bool tensors) const {
    try {
      Communicator one_process;
      RunFolder(folder_ / config.name, one_process).checkpoints().remove_for_resuming(tensors);
    } catch (const Error& error) {
      log_warning(error.what());
    }
  }

  /// INFINITY for a run that has no such value, such as one that diverged.
  double cost_of_run(const RunConfig& config) const {
    const double cost = cost_of(validation_of(config), metric_of(config.train.monitor));
    return std::isnan(cost) ? INFINITY : cost;
  }
  ValidPoint validation_of(const RunConfig& config) const {
    const RunRecord record = read_record(folder_ / config.name);
    if (!record.best)
      throw Error(fmt::format("{}: the run has no validation to compare it by", (folder_ / config.name).string()));
    return *record.best;
  }

  /// The table of the whole runs, those of earlier searches in the folder included, and the link to the best.
  void report(std::ostream& table, size_t width) const {
    std::vector<std::string> whole;
    const RunConfig* best = nullptr;
    for (const RunConfig& candidate : candidates_) {
      if (!is_finished(candidate)) continue;
      whole.push_back((folder_ / candidate.name).string());
      if (best == nullptr || cost_of_run(candidate) < cost_of_run(*best)) best = &candidate;
    }
    print_comparison(read_records(whole), table, width);
    // The best of many candidates is so in part by chance: only a clear gain replaces the configuration as it is.
    const RunConfig& given = candidates_[0];
    if (best != &given && !clearly_better(validation_of(*best), validation_of(given), metric_of(given.train.monitor))) {
      log_info(fmt::format("{} is better than {} by less than a standard error: {} stays the best", best->name,
                           given_run, given_run));
      best = &given;
    }
    replace_link((folder_ / best_link).string(), best->name);
    for (const RunConfig& candidate : candidates_)
      if (&candidate != best && is_finished(candidate)) drop(candidate, false);
    table << fmt::format("\nbest: {} ({})\n", (folder_ / best_link).string(), best->name);
  }

  const AutotuneOptions& options_;
  const Guard& guard_;
  fs::path folder_;
  std::vector<RunConfig> candidates_;
  TrialTimes times_;
  std::vector<std::string> failed_;
};

}  // namespace

AutotuneEnd autotune(const AutotuneOptions& options, const Guard& guard, std::ostream& table, size_t width) {
  return Autotune(options, guard).run(table, width);
}

namespace {

LabelledSourceConfig* labelled(RunConfig& config) { return std::get_if<LabelledSourceConfig>(&config.data); }
const LabelledSourceConfig* labelled(const RunConfig& config) {
  return std::get_if<LabelledSourceConfig>(&config.data);
}

bool holds_out(const LabelledSourceConfig& data) {
  return !data.valid.empty() || data.valid_fraction > 0 || data.folds > 0;
}

}  // namespace

std::vector<std::string> default_search_space(const RunConfig& config) {
  const ModelFacts facts = facts_of(config.model);
  std::vector<std::string> space;
  const double rate = config.train.lr;
  if (!facts.is_solved)
    space.push_back(
        fmt::format("sweep.train.lr=[{:g}, {:g}, {:g}, {:g}, {:g}]", rate, rate / 2, rate * 2, rate / 4, rate * 4));
  for (const std::string& values : facts.searched) space.push_back("sweep.model." + values);
  return space;
}

RunConfig shortened(RunConfig config, int64_t divisor) {
  if (config.train.steps > 0) {
    config.train.steps = std::max<int64_t>(1, last_step(config.train) / divisor);
    config.train.corrected = {};
    config.train.schedule.warmup_steps /= divisor;
  } else if (LabelledSourceConfig* const data = labelled(config)) {
    data->train_fraction /= static_cast<double>(divisor);
  }
  return config;
}

void check_tunable(const RunConfig& config, Problems& problems) {
  if (facts_of(config.model).is_solved && !config.train.init_from.empty())
    problems.add(
        "train.init_from",
        "a linear classifier has the n-grams of the one that it starts from, but autotune searches over n-grams: leave "
        "it out");
  if (config.train.steps == 0 && labelled(config) == nullptr)
    problems.add("train.steps", "autotune tries short runs first: set train.steps (instead of train.epochs)");
  if (const auto* const data = labelled(config);
      data != nullptr && !facts_of(config.model).is_solved && !holds_out(*data))
    problems.add("data.valid_fraction",
                 "autotune compares runs by their validation: give " + how_to_get_split(Split::valid, config.data));
}

std::string incomparable_key(const RunConfig& a, const RunConfig& b) {
  static const std::vector<std::string> keys{
      "seed",      "data.type",       "data.train",          "data.valid",
      "data.test", "data.split",      "data.valid_fraction", "data.test_fraction",
      "data.fold", "data.split_seed", "data.folds",          "train.monitor"};
  static const std::string tokenizer = "data.tokenizer";
  const auto within = [](const std::string& path, const std::string& key) {
    return path == key || starts_with(path, key + ".");
  };
  for (const ConfigDifference& difference : diff_configs(a, b)) {
    for (const std::string& key : keys)
      if (within(difference.path, key)) return key;
    // The loss of a language model is per token: other tokens, other losses.
    if (labelled(a) == nullptr && within(difference.path, tokenizer)) return tokenizer;
  }
  return "";
}

}  // namespace capstan
