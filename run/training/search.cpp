// A trial is a run folder with fewer steps or examples, in short-DIVISOR/. Trials that have ended are known by their
// folders and times: no other state of the search is kept. tests/cli/training/test_sweep.cpp and test_autotune.cpp.
#include "run/training/search.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/base/random.hpp"
#include "core/io/file.hpp"
#include "core/io/json.hpp"
#include "core/io/log.hpp"
#include "run/summaries/run_folders.hpp"
#include "run/summaries/run_record.hpp"
#include "run/summaries/run_table.hpp"
#include "run/training/search_space.hpp"
#include "run/training/settle.hpp"
#include "train/checkpoints/run_folder.hpp"
#include "train/loop/signals.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;

/// Seconds that runs have taken so far, by their name: a search that goes on counts them.
class RunTimes {
 public:
  explicit RunTimes(const fs::path& folder) : path_((folder / search_file).string()) {
    if (!fs::exists(path_)) return;
    const nlohmann::json saved = try_parse_json(read_file(path_));
    if (!saved.is_object()) return;
    for (const auto& [run, seconds] : saved.items())
      if (seconds.is_number()) seconds_[run] = seconds.get<double>();
  }
  double of(const std::string& run) const {
    const auto found = seconds_.find(run);
    return found != seconds_.end() ? found->second : 0;
  }
  double of_all() const {
    return std::accumulate(seconds_.begin(), seconds_.end(), 0.0,
                           [](double sum, const auto& run) { return sum + run.second; });
  }
  void add(const std::string& run, double seconds) {
    seconds_[run] += seconds;
    make_folders(fs::path(path_).parent_path().string());
    replace_file(path_, json_text(nlohmann::json(seconds_), 1) + "\n");
  }

 private:
  std::string path_;
  std::map<std::string, double> seconds_;
};

std::vector<RunConfig> runs_of(const SearchOptions& options) {
  if (options.minutes) return candidates_of(options.config, options.run.force);
  const ConfigCheck check = [&](const RunConfig& config, Problems& problems) {
    check_trainable(config, options.run.force, Communicator(), problems);
  };
  return load_sweep(options.config, check).runs;
}

/// The runs of a search, in one folder. Those of a search in a given time are compared by their validation.
class Search {
 public:
  Search(const SearchOptions& options, const Guard& guard)
      : options_(options),
        guard_(guard),
        timed_(options.minutes.has_value()),
        runs_(runs_of(options)),
        folder_(runs_.front().folder),
        times_(folder_) {
    if (fs::exists(folder_ / "config.yaml"))
      throw Error(fmt::format("{} is the folder of a single run: give the search another name", folder_.string()));
  }

  SearchEnd run(std::ostream& table, size_t width) {
    const StopSignals signals;
    if (timed_)
      train_in_time();
    else
      for (size_t i = 0; i < runs_.size() && !stopped(); ++i) train_whole(i);
    const bool interrupted = stopped();
    SearchEnd end{interrupted, failed_, folder_, runs_.size(), 0, {}, runs_.front()};
    if (!interrupted) report(table, width, end);
    if (interrupted) log_info("interrupted; the same command resumes the search");
    return end;
  }

 private:
  static bool stopped() { return StopSignals::received() != 0; }
  double seconds_left() const { return 60 * *options_.minutes - times_.of_all(); }

  void train_in_time() {
    const size_t others = runs_.size() - 1;
    log_info(fmt::format("searching in {}: the configuration as it is and {} more, for {:g} min", folder_.string(),
                         others, *options_.minutes));
    if (!train_whole(0)) return;
    if (std::all_of(runs_.begin(), runs_.end(), is_finished)) return;
    const double each = times_.of(runs_[0].name);
    std::vector<size_t> order(others);
    std::iota(order.begin(), order.end(), size_t{1});
    const int64_t divisor = divisor_for(others, each, 60 * *options_.minutes - each);
    if (divisor > 1) order = best_of_short(divisor, each);
    for (const size_t candidate : order)
      if (!stopped() && (is_finished(runs_[candidate]) || each <= seconds_left())) train_whole(candidate);
  }

  /// Tries candidates with 1 / divisor of the training while half of the time is left, and returns those that ended,
  /// the best first.
  std::vector<size_t> best_of_short(int64_t divisor, double each) {
    const size_t others = runs_.size() - 1;
    const double half = (60 * *options_.minutes - each) / 2;
    const RandomKey key = random_key(static_cast<uint64_t>(runs_[0].seed), "candidates of the search");
    std::vector<std::pair<double, size_t>> costs;
    for (size_t i = 0; i < others && !stopped(); ++i) {
      const size_t candidate = 1 + permuted(i, others, key, 0);
      RunConfig config = shortened(runs_[candidate], divisor);
      config.name = fmt::format("short-{}/{}", divisor, config.name);
      if (times_.of(config.name) == 0 && times_.of_all() - each + each / static_cast<double>(divisor) > half) break;
      if (!train(config)) continue;
      costs.emplace_back(cost_of_run(config), candidate);
      drop(config, true);  // its result is in metrics.jsonl
    }
    log_info(fmt::format("{} of {} were tried with 1/{} of the training", costs.size(), others, divisor));
    std::stable_sort(costs.begin(), costs.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<size_t> order;
    for (const auto& [cost, candidate] : costs) order.push_back(candidate);
    return order;
  }

  bool train_whole(size_t i) {
    const bool finished = is_finished(runs_[i]);
    log_info(fmt::format("run {} of {}: {}{}", i + 1, runs_.size(), (folder_ / runs_[i].name).string(),
                         finished ? " is finished" : ""));
    return finished || train(runs_[i]);
  }

  /// Trains or resumes a run, unless it is finished. False: it failed, or was stopped.
  bool train(const RunConfig& config) {
    if (is_finished(config)) return true;
    const bool first = config.name == runs_[0].name;  // never cut short: it is the result if no other is better
    const double seconds = timed_ && !first ? seconds_left() : INFINITY;
    const Stopwatch watch;
    TrainRunOptions options = options_.run;
    options.quiet = timed_ && !first;
    const auto late = [&] { return watch.seconds() > seconds; };
    const Ending ending = train_in_child(config, options, guard_, [&] { return late() || stopped(); });
    if (timed_) times_.add(config.name, watch.seconds());
    if (ending.code == exit_done) {
      if (timed_) log_result(config);
      return true;
    }
    if (stopped()) return false;
    if (ending.code == exit_interrupted && late()) {
      log_info(fmt::format("{}: stopped, the time is over", config.name));
      return false;
    }
    failed_.push_back(fmt::format("{}: {}", (folder_ / config.name).string(), describe_ending(ending)));
    log_error(fmt::format("{}; the other runs continue", failed_.back()));
    return false;
  }

  void log_result(const RunConfig& config) const {
    log_info(fmt::format("{}: {} {:.4f} after {:.1f} s; {:.0f} s are left", config.name, config.train.monitor,
                         std::abs(cost_of_run(config)), times_.of(config.name), std::max(0.0, seconds_left())));
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

  /// The table of the whole runs, those of earlier calls included, and the best.
  void report(std::ostream& table, size_t width, SearchEnd& end) const {
    std::vector<std::string> folders;
    std::vector<const RunConfig*> whole;
    for (const RunConfig& run : runs_) {
      if (!is_finished(run)) continue;
      folders.push_back((folder_ / run.name).string());
      whole.push_back(&run);
    }
    if (!whole.empty()) print_comparison(read_records(folders), table, width);
    end.finished = whole.size();
    if (!timed_ || whole.empty()) return;
    const RunConfig& best = best_of(whole);
    end.best = folder_ / best.name;
    for (const RunConfig* const run : whole)
      if (run != &best) drop(*run, false);
    table << fmt::format("\nbest: {}\n", end.best.string());
    log_info(whole.size() == runs_.size() ? "the search is complete" : "with more --minutes the search continues");
  }

  /// The best of many candidates is so in part by chance: only a clear gain replaces the configuration as it is.
  const RunConfig& best_of(const std::vector<const RunConfig*>& whole) const {
    const RunConfig& given = runs_[0];
    const RunConfig& best = **std::min_element(
        whole.begin(), whole.end(), [&](const auto* a, const auto* b) { return cost_of_run(*a) < cost_of_run(*b); });
    if (&best == &given || whole.front() != &given ||
        clearly_better(validation_of(best), validation_of(given), metric_of(given.train.monitor)))
      return best;
    log_info(fmt::format("{} is better than {} by less than a standard error: {} stays the best", best.name, given_run,
                         given_run));
    return given;
  }

  const SearchOptions& options_;
  const Guard& guard_;
  const bool timed_;
  const std::vector<RunConfig> runs_;
  const fs::path folder_;
  RunTimes times_;
  std::vector<std::string> failed_;
};

}  // namespace

SearchEnd search(const SearchOptions& options, const Guard& guard, std::ostream& table, size_t width) {
  return Search(options, guard).run(table, width);
}

int64_t divisor_for(size_t candidates, double full_seconds, double seconds) {
  const double all = static_cast<double>(candidates) * full_seconds;
  if (all <= seconds) return 1;
  return all / 3 <= seconds / 2 ? 3 : 9;
}

}  // namespace capstan
