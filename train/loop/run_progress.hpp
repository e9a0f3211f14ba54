// What a run says while it trains: lines of the log, the progress bar, metrics. The session and the loop call it.
// Fields of metrics.jsonl are read by other programs and by commands of later versions: tests/train/test_loop.cpp
// ("metrics hold what was trained on", "the steps after the last logged one"), tests/cli/training/test_progress.cpp.
#pragma once

#include <cmath>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "train/checkpoints/run_state.hpp"
#include "train/configuration/train_config.hpp"
#include "train/evaluation/evaluate.hpp"
#include "train/records/metrics.hpp"
#include "train/records/pace.hpp"
#include "train/records/reporter.hpp"

namespace capstan {

/// What a run counts in what it says.
enum class RunKind {
  tokens,  // a language model, whose losses are per token
  texts,   // a classifier
  solved   // a classifier whose weights are solved for: there are no steps
};

/// Figures of the last step.
struct StepNumbers {
  double learning_rate = 0;
  double gradient_norm = std::nan("");  // before clipping; of the last step that had one
  double loss = 0;                      // nats per target
};

/// `state` is read whenever something is reported; only its window (window_loss and the like) and what it says of
/// metrics.jsonl are changed.
class RunProgress {
 public:
  /// total_steps: 0 if not known. `config` and `state` must outlive it.
  RunProgress(const TrainConfig& config, RunState& state, int64_t total_steps, RunKind kind, Reporter reporter);

  Reporter& log() { return reporter_; }
  Pace& pace() { return pace_; }
  /// Training time of all sessions.
  double seconds() const { return seconds_before_ + session_seconds(); }
  double seconds_before() const { return seconds_before_; }
  double session_seconds() const { return session_.seconds(); }
  /// The state is now that of a checkpoint.
  void resumed() { seconds_before_ = state_.seconds; }
  /// From now on, metrics.jsonl is written; without this call it is not. `step`: of the run that goes on from a
  /// checkpoint, below 0 for one that begins. `own`: the checkpoint is the folder's own. Throws Error for a file that
  /// cannot be continued.
  void record(const std::string& metrics_file, int64_t step, bool own);

  /// Call it after every step, which was one of `epoch`. Returns true at the end of a window of logged steps.
  bool step_done(const StepNumbers& numbers, int64_t epoch);
  /// Call it at the end of a session: the steps since the last logged one would not be seen otherwise. The line follows
  /// the checkpoint's mark, so a run that goes on from here replaces it by that of the whole window.
  void close_window();
  /// Call it after a training that is done at once, without steps: logs it as one window.
  void all_done();
  /// Seconds to the end of the run from this step on; negative when not known.
  double time_left() const { return pace_.time_left(state_.step, seconds()); }
  /// Updates the bar at once. After at least one step of this session.
  void show_bar();
  void show_full_bar();

  /// Reports a validation, after the state has been updated. `best`: it is a new best. `took`: seconds.
  void validated(const Validation& result, bool best, double took);
  /// "loss 1.2345 at step 600".
  std::string best_so_far() const;
  /// " at step 600"; empty for a run without steps.
  std::string at_step(int64_t step) const;
  /// Puts the place that metrics.jsonl has reached into the state, once all lines are on the disk.
  void sync_records();

 private:
  std::string status_line(int64_t epoch) const;
  std::string loss_text(double loss) const;
  void record_window(int64_t epoch);
  void clear_window();
  void record_line(const nlohmann::json& line);
  double share_done() const { return pace_.share_done(state_.step, seconds()); }
  /// The epoch of the last step.
  int64_t last_epoch() const { return state_.batch == 0 && state_.epoch > 0 ? state_.epoch - 1 : state_.epoch; }

  const TrainConfig& config_;
  RunState& state_;
  int64_t total_steps_;
  RunKind kind_;
  Reporter reporter_;
  Pace pace_;
  std::optional<MetricsFile> metrics_;  // none: nothing is recorded
  StepNumbers numbers_;
  Stopwatch session_;
  double seconds_before_ = 0;  // in earlier sessions
  bool warned_of_loss_ = false;
  RateLimiter statuses_{7}, validations_{7};  // how often each kind of line is shown
};

}  // namespace capstan
