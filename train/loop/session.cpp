// Keeps the state of a run from its checkpoint to its end: what a checkpoint must agree with, which validation is the
// best, when to save, and what the log says at the end. Rank 0 decides, the others follow.
// tests/train/test_resume.cpp and test_loop.cpp.
#include "train/loop/session.hpp"

#include <algorithm>
#include <cmath>

#include "core/strings/quantities.hpp"
#include "core/strings/utf8.hpp"
#include "train/evaluation/evaluate.hpp"
#include "train/evaluation/metrics.hpp"
#include "train/loop/run_length.hpp"

namespace capstan {
namespace fs = std::filesystem;

namespace {

// Linux writes to the disk by itself, beside training, what has been in memory for half a minute.
constexpr double system_delay = 40;  // seconds
constexpr double slow_disk = 2.5e7;  // bytes per second

const TrainConfig& checked(const TrainConfig& config, bool validates) {
  check_config(config);
  if (config.patience > 0 && !validates)
    throw ConfigError("train.patience: needs validation data (data.valid or data.valid_fraction), unless it is 0");
  return config;
}

}  // namespace

Session::Session(Options options, const TrainConfig& config, Communicator& ranks)
    : options_(std::move(options)),
      config_(checked(config, options_.validates)),
      ranks_(ranks),
      folder_(options_.folder, ranks),
      progress_(config_, state_, options_.total_steps, options_.kind,
                {options_.quiet ? ProgressMode::none : config_.progress, ranks.first() ? folder_.log_file() : ""}) {
  describe_now();
}

/// Fills in what the state says of this session rather than of the run's progress.
void Session::describe_now() {
  std::error_code unknown;
  const std::string working_folder = fs::current_path(unknown).string();
  if (is_utf8(working_folder)) state_.working_folder = working_folder;
  state_.seed = options_.seed;
  state_.validates = options_.validates;
  state_.identity = options_.identity;
  state_.settings = settings_of(config_);
  state_.machine = this_machine(config_);
}

bool Session::resume(const RunParts& parts, const RenewIdentity& renewed) {
  const RunState now = state_;
  const auto from = load(now, parts, renewed);
  if (!from) return false;
  state_.validates = options_.validates;
  if (!state_.has_optimizer() && !has_ended(config_, state_)) {
    const std::string others = complete_checkpoints(from->parent_path(), Reading::all);
    throw Error(fmt::format(
        "{}: the optimizer's state, which more training needs, was removed when the run ended (unless "
        "train.keep_optimizer: true), or by training once newer checkpoints had it: {}train on from "
        "its weights as another run: add --set name=NEW train.init_from={}",
        from->string(), others.empty() ? "" : "give --resume-from another (" + others + "), or ",
        state_.has_model() ? from->string() : folder_of_step(from->parent_path(), state_.best_step).string()));
  }
  parts.params.clear_grads();
  saved_step_ = state_.step;
  unsaved_ = false;
  progress_.resumed();
  log().info(fmt::format("resumed from {}", from->string()) +
             (options_.kind == RunKind::solved
                  ? ""
                  : fmt::format(": step {}, epoch {}, batch {}", state_.step, state_.epoch + 1, state_.batch)));
  for (const std::string& change : changes(state_.settings, now.settings)) log().info("resume: train." + change);
  for (const std::string& change : changes(state_.machine, now.machine))
    log().warn(change + ": results may differ in the last bits from those of an uninterrupted run");
  describe_now();
  return true;
}

/// Reads the checkpoint to go on from, and returns its folder; nothing where there is none. Rank 0 chooses it.
std::optional<fs::path> Session::load(const RunState& now, const RunParts& parts, const RenewIdentity& renewed) {
  if (!ranks_.first()) {  // rank 0 decides
    const Communicator::LongTimeout disk(ranks_);
    const std::string chosen = ranks_.broadcast("");
    if (chosen.empty()) return {};
    read_checkpoint(open_checkpoint(chosen, Reading::all), parts);
    saved_here_ = !options_.resume_from;
    return chosen;
  }
  const AcceptState accept = [&](RunState saved, const fs::path& from) {
    if (saved.slim)
      throw Error(
          fmt::format("{}: this run is slim, for prediction alone: train the run that it was made from, or begin "
                      "another from these weights, with another name and train.init_from={}",
                      from.string(), options_.folder.string()));
    if (renewed)
      for (auto& [name, text] : saved.identity) text = renewed(name, text);
    check_resumable(saved, now, (options_.resume_from ? from : options_.folder).string(), options_.otherwise);
  };
  if (options_.resume_from) {
    folder_.checkpoints().load(*options_.resume_from, parts, accept);
    ranks_.broadcast(options_.resume_from->string());
    return options_.resume_from;
  }
  const auto resumed = folder_.checkpoints().load_newest(parts, accept);
  ranks_.broadcast(resumed ? resumed->from.string() : "");
  if (!resumed) return {};
  for (const std::string& warning : resumed->warnings) log().warn(warning);
  saved_here_ = true;
  return resumed->from;
}

void Session::start_from(const WarmStart& start) {
  state_.ancestry = start.ancestry;
  for (const std::string& line : start.report) log().info(line);
  for (const std::string& line : start.warnings) log().warn(line);
}

void Session::record() {
  if (!ranks_.first()) return;
  if (options_.resume_from) folder_.checkpoints().set_later_aside(state_.step);
  // A run that begins anew keeps no line of a killed one, not even of the evaluation before the first step.
  progress_.record(folder_.metrics_file(), begins() ? -1 : state_.step, !options_.resume_from);
}

bool Session::save_due() const {
  return best_unsaved_ || (config_.save_every > 0 && state_.step > std::max<int64_t>(saved_step_, 0) &&
                           state_.step % config_.save_every == 0);
}

/// A validation whose loss is not finite is never the best.
bool Session::is_best(const Validation& found) const {
  if (!std::isfinite(found.total.loss())) return false;
  const Metric& metric = metric_of(config_.monitor);
  const auto best = state_.best.find(metric.name);
  return best == state_.best.end() || metric.cost(metric.compute(found).value_or(0)) < metric.cost(best->second);
}

void Session::validated(const Validation& found, double seconds) {
  unsaved_ = true;
  state_.validated_step = state_.step;
  if (found.labels && found.labels->thresholds.empty()) state_.threshold = found.labels->threshold;
  if (found.labels && options_.kind == RunKind::texts) state_.rule = found.labels->thresholds;
  if (found.decisions) state_.rule = found.decisions->rule;
  if (found.decisions) found_rule_ = found.decisions->found;
  const bool best = is_best(found);
  if (best) {
    state_.best.clear();
    for (const Metric& metric : metrics())
      if (const auto value = metric.compute(found)) state_.best[metric.name] = *value;
    state_.best_step = state_.step;
    state_.stalled = 0;
    best_unsaved_ = true;
  } else {
    ++state_.stalled;
  }
  progress_.validated(found, best, seconds);
}

void Session::save(const RunParts& parts) {
  const Stopwatch watch;
  state_.seconds = progress_.seconds();
  Progress saving(log().of_work(true), "saving", 0, in_shares);
  saving.begin(fmt::format("saving{}", progress_.at_step(state_.step)));
  progress_.sync_records();  // before the checkpoint that refers to them
  folder_.checkpoints().write(parts, config_.keep_last);
  saved_step_ = state_.step;
  unsaved_ = best_unsaved_ = false;
  saved_here_ = true;
  const auto bytes = static_cast<double>(folder_.checkpoints().unpublished_bytes());
  written_.push_back({state_.step, watch.seconds(), system_delay + bytes / slow_disk, Stopwatch()});
  // The one before is published after this one is in the system's memory, where it outlives a kill.
  publish(ranks_.size() > 1 || bytes <= options_.publish_later_above ? 0 : 1);
}

void Session::publish_due() {
  if (!written_.empty() && written_.front().since.seconds() > written_.front().wait) publish();
}

void Session::publish(size_t but) {
  for (; written_.size() > but; written_.erase(written_.begin())) {
    const Written& oldest = written_.front();
    const Stopwatch watch;
    Progress saving(log().of_work(true), "saving", 0, in_shares);
    saving.begin(fmt::format("saving{}", progress_.at_step(oldest.step)));
    folder_.checkpoints().publish(written_.size() - 1);
    {
      const Communicator::LongTimeout disk(ranks_);
      ranks_.barrier();  // no rank goes on before the checkpoint is whole
    }
    const double seconds = oldest.seconds + watch.seconds();
    progress_.pace().save_took(seconds);
    log().debug(fmt::format("saved{} in {:.3f} s", progress_.at_step(oldest.step), seconds));
  }
}

TrainResult Session::finish(const std::string& reason, const RunParts& parts, const std::string& remedy) {
  const bool went_on = unsaved_;
  if (unsaved_) {
    progress_.show_full_bar();
    save(parts);
    progress_.close_window();
  }
  publish();
  const char* const validation_name =
      options_.kind == RunKind::solved && !options_.validates ? "held-out" : "best validation";
  const std::string best =
      state_.best.empty() ? std::string() : fmt::format("; {} {}", validation_name, progress_.best_so_far());
  const std::string at = progress_.at_step(state_.step);
  if (went_on && options_.goal && !state_.rule.empty())
    log().info(
        fmt::format("texts are given their classes by the rule for {}: accuracy and F1 of the validation "
                    "are those of the rule; capstan eval shows those of the likeliest classes, too",
                    options_.goal->kind == DecisionGoal::Kind::given ? "model.class_weights"
                                                                     : "train.monitor: " + config_.monitor));
  if (went_on && options_.goal && options_.goal->finds_rule() && state_.rule.empty() && !state_.threshold)
    log().info(
        "each text is given its likeliest class: " +
        (found_rule_.gain_error > 0
             ? fmt::format(
                   "on texts that are held out, rules for train.monitor: {} gain {:.4f}, no more than the standard "
                   "error, {:.4f}",
                   config_.monitor, found_rule_.gain, found_rule_.gain_error)
             : fmt::format("no rule for train.monitor: {} reaches it on texts that are held out", config_.monitor)));
  const std::string next =
      state_.has_optimizer() || options_.kind == RunKind::solved
          ? remedy
          : fmt::format("to train on, begin another run from it: --set name=NEW train.init_from={}",
                        options_.folder.string());
  log().info(went_on
                 ? fmt::format("finished{}: {}; {} of training{}", at, reason, short_time(progress_.seconds()), best)
                 : fmt::format("nothing to do: this run is finished{}: {}{}; {}", at, reason, best, next));
  return {false, went_on, reason, state_};
}

void Session::clean() {
  if (!ranks_.first()) return;
  try {
    folder_.checkpoints().remove_for_resuming();
  } catch (const Error& error) {  // the run is finished and whole all the same
    log().warn(error.what());
  }
}

TrainResult Session::interrupt(int signal, const RunParts& parts) {
  if (begins() && state_.step == 0) return give_up(signal);
  const std::string reason = interruption(signal);
  if (unsaved_ || !saved_here_) {
    save(parts);
    progress_.close_window();
  }
  publish();
  log().info(fmt::format("{} at step {}: saved in {}; the same command resumes the run", reason, state_.step,
                         folder_.checkpoints().of_step(state_.step).string()));
  return {true, false, reason, state_};
}

TrainResult Session::end_piece(const RunParts& parts) {
  save(parts);
  publish();
  progress_.close_window();
  return {false, false, fmt::format("step {} is reached", state_.step), state_};
}

TrainResult Session::give_up(int signal, const char* remedy) {
  log().info(fmt::format("{}: there is nothing to save yet; {}", interruption(signal), remedy));
  return {true, false, interruption(signal), state_};
}

}  // namespace capstan
