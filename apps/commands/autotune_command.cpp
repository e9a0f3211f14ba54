#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/command_line/command_parser.hpp"
#include "apps/command_line/options.hpp"
#include "apps/commands/commands.hpp"
#include "apps/config/config_diff.hpp"
#include "apps/runs/log.hpp"
#include "apps/runs/run_table.hpp"
#include "apps/training/child_run.hpp"
#include "apps/training/halving.hpp"
#include "apps/training/search_space.hpp"
#include "apps/training/sweep.hpp"
#include "core/base/error.hpp"
#include "core/io/file.hpp"
#include "core/io/json.hpp"
#include "train/loop/signals.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr const char* given_run = "default";  // the configuration as it is
constexpr const char* best_link = "best";
constexpr const char* times_file = "autotune.json";

struct AutotuneOptions {
  ConfigOptions config;
  double minutes = 5;
  TrainRunOptions run;
};

/// Seconds that finished trials took, by the name of their run: a search that goes on counts them.
class TrialTimes {
 public:
  explicit TrialTimes(const fs::path& folder) : path_((folder / times_file).string()) {
    if (!fs::exists(path_)) return;
    const nlohmann::json saved = try_parse_json(read_file(path_));
    if (!saved.is_object()) return;
    for (const auto& [run, seconds] : saved.items())
      if (seconds.is_number()) seconds_[run] = seconds.get<double>();
  }
  std::optional<double> of(const std::string& run) const {
    const auto found = seconds_.find(run);
    return found != seconds_.end() ? std::optional<double>(found->second) : std::nullopt;
  }
  void set(const std::string& run, double seconds) {
    seconds_[run] = seconds;
    replace_file(path_, json_text(nlohmann::json(seconds_), 1) + "\n");
  }

 private:
  std::string path_;
  std::map<std::string, double> seconds_;
};

/// The configuration as it is, and every other one of the sweep.
std::vector<RunConfig> candidates_of(const AutotuneOptions& options, fs::path& folder) {
  const ConfigCheck check = [&](const RunConfig& config, Problems& problems) {
    (options.run.force ? check_forced : check_trainable)(config, problems);
    check_tunable(config, problems);
  };
  RunConfig given = load_without_sweep(options.config, check);
  ConfigOptions config = options.config;
  if (!has_sweep(config))
    for (std::string& values : usual_search_space(given)) config.overrides.push_back(std::move(values));
  const Sweep sweep = load_sweep(config, check);
  folder = sweep.folder;
  if (fs::exists(folder / "config.yaml"))
    throw Error(fmt::format("{} is the folder of a single run: give the search another name", folder.string()));
  given.folder = folder.string();
  given.name = given_run;
  std::vector<RunConfig> candidates{given};
  for (const RunConfig& run : sweep.runs) {
    RunConfig renamed = run;
    renamed.name = given_run;
    if (!diff_configs(given, renamed).empty()) candidates.push_back(run);
  }
  return candidates;
}

class Autotune {
 public:
  explicit Autotune(const AutotuneOptions& options)
      : options_(options), candidates_(candidates_of(options, folder_)), times_(folder_) {}

  int run() {
    const StopSignals signals;
    const auto stop = [this] { return interrupted_ || StopSignals::received() != 0; };
    log_info(fmt::format("{:g} minutes for the configuration as it is, and for {} others", options_.minutes,
                         candidates_.size() - 1));
    const auto best = search_by_halving(
        candidates_.size(), options_.minutes * 60, static_cast<uint64_t>(candidates_[0].seed),
        [this](const Trial& trial, double left) { return attempt(trial, left); },
        {stop, [](const HalvingPlan& rung) {
           log_info(fmt::format("candidates: {}, each with 1/{} of the training", rung.candidates, rung.divisor));
         }});
    if (stop()) {
      log_info("search interrupted; the same command resumes it");
      return exit_interrupted;
    }
    if (!best) return exit_failed;  // why is in the log
    report(candidates_[*best].name);
    return exit_done;
  }

 private:
  std::optional<TrialOutcome> attempt(const Trial& trial, double left) {
    RunConfig config = shortened(candidates_[trial.candidate], trial.divisor);
    if (trial.divisor > 1) config.name = fmt::format("short-{}/{}", trial.divisor, config.name);
    const std::optional<double> before = times_.of(config.name);
    if (before && is_finished(config)) return outcome(config, *before);
    log_info(fmt::format("trial: {}", (folder_ / config.name).string()));
    const auto begin = Clock::now();
    const auto seconds = [begin] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
    bool late = false;
    const bool whole_default = trial.candidate == 0;
    const Ending ending = run_in_child(config, options_.run, [&] {
      late = late || (!whole_default && seconds() > left);
      return late || StopSignals::received() != 0;
    });
    if (ending.code == exit_interrupted) {
      interrupted_ = interrupted_ || !late;
      return std::nullopt;
    }
    if (ending.code != exit_done) {
      log_error(fmt::format("{}: {}", (folder_ / config.name).string(), describe_ending(ending)));
      return std::nullopt;
    }
    times_.set(config.name, seconds());
    return outcome(config, seconds());
  }

  TrialOutcome outcome(const RunConfig& config, double seconds) const {
    const RunRecord record = read_record(folder_ / config.name);
    if (!record.best)
      throw Error(fmt::format("{}: the run has no validation to compare it by", (folder_ / config.name).string()));
    return {cost_of(*record.best, config.train.monitor), seconds};
  }

  void report(const std::string& best) const {
    std::vector<std::string> whole;
    for (const RunConfig& candidate : candidates_)
      if (is_finished(candidate)) whole.push_back((folder_ / candidate.name).string());
    print_comparison(read_records(whole), std::cout);
    replace_link((folder_ / best_link).string(), best);
    std::cout << fmt::format("\nbest: {} ({})\n", (folder_ / best_link).string(), best);
  }

  const AutotuneOptions& options_;
  fs::path folder_;
  std::vector<RunConfig> candidates_;
  TrialTimes times_;
  bool interrupted_ = false;
};

}  // namespace

void add_autotune_command(CommandParser& cli, const Choose& choose) {
  CommandParser* const command = cli.add_subcommand("autotune", "Search for a better configuration in a given time");
  const auto options = std::make_shared<AutotuneOptions>();
  add_config_options(*command, options->config)->required();
  command->add_option("--minutes", options->minutes, "Time for the whole search; the first run is not cut short")
      ->check(number_check(greater_up_to(0, 100000)));
  add_force_flag(*command, options->run.force);
  command->footer(
      "The configuration is trained as it is. Then others are tried: every combination of the values under the key\n"
      "sweep, as capstan sweep would train them, or, without that key, the n-grams of a linear classifier, and "
      "learning\n"
      "rates and dropout of other models. All begin with a share of the steps or examples, the best third goes on "
      "with\n"
      "three times as much (successive halving). Runs are compared by train.monitor on the validation data, a linear\n"
      "classifier by its cross-validation. <folder>/<name>/best is the best whole run. Repeating the command resumes "
      "the\n"
      "search; with more --minutes it goes further.\n"
      "For example:  capstan autotune --config configs/classify.yaml --set data.train=[train.tsv] --minutes 5\n"
      "              capstan predict runs/classify/best");
  command->callback([options, choose] { choose([options] { return Autotune(*options).run(); }); });
}

}  // namespace capstan
