// A run folder while this process trains in it: its lock, log, records, state and checkpoints. Made by run/training and
// by train(RunInputs); the training loop and train_linear() go on in it. What a kill or a signal leaves, and that a run
// goes on to the bits of an unbroken one: tests/train/test_resume.cpp, test_loop.cpp, test_run_files.cpp.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "train/checkpoints/run_folder.hpp"
#include "train/checkpoints/run_state.hpp"
#include "train/configuration/train_config.hpp"
#include "train/loop/run_progress.hpp"
#include "train/loop/signals.hpp"
#include "train/ranks/communicator.hpp"
#include "train/steps/training_step.hpp"

namespace capstan {

/// Where the weights of a run are from that does not start from random ones.
struct WarmStart {
  std::vector<ParentCheckpoint> ancestry;  // at least one
  std::vector<std::string> report;         // lines for the log
  std::vector<std::string> warnings;       // follow them
};

struct TrainResult {
  bool interrupted = false;  // by a signal; the run is saved and the same call continues it
  bool ended = false;        // now, not before
  std::string reason;        // why the run ended
  RunState state;
};

/// Bytes of a checkpoint above which training goes on before it is on the disk: its save takes most of a second.
constexpr double large_checkpoint = 6.4e7;

/// Returns a text of the identity, which an earlier version may have saved, as this version would write it.
using RenewIdentity = std::function<std::string(const std::string& name, const std::string& saved)>;

/// The constructor opens a session; then resume(), start_from() for a run that begins from given weights, and record()
/// are called, in this order. A training then goes on in it, and ends with finish(), interrupt(), end_piece() or
/// give_up().
class Session {
 public:
  struct Options {
    std::filesystem::path folder;  // metrics.jsonl, train.log, checkpoints/
    Identity identity;  // what a run that goes on must have in common with its checkpoint: model, data, tokenizer
    uint64_t seed = 0;
    std::optional<std::filesystem::path> resume_from = std::nullopt;  // a checkpoint's folder, instead of the last
    int64_t total_steps = 0;                                          // 0: not known
    bool validates = false;                                           // are there validation data?
    RunKind kind = RunKind::tokens;
    bool quiet = false;                               // only warnings and errors on the console
    std::optional<DecisionGoal> goal = std::nullopt;  // of a classifier's decisions
    double publish_later_above = large_checkpoint;    // bytes
    const char* otherwise = begin_another;            // the remedy where the run cannot go on
  };

  /// Creates and locks the folder, opens the log. Handles signals from here on. Of several ranks, the first one writes.
  /// Throws Error when another process trains there, ConfigError for patience without validation. `ranks` must outlive
  /// it.
  Session(Options options, const TrainConfig& config, Communicator& ranks);

  /// The run becomes that of its newest checkpoint, or of the one to resume from; false: there is none, and it begins.
  /// Throws Error for a checkpoint of another run. `parts` are read into; their state must be that of this session.
  bool resume(const RunParts& parts, const RenewIdentity& renewed = {});
  /// Says that a run which begins has its weights from elsewhere; with validation data, it is then evaluated and saved
  /// before its first step.
  void start_from(const WarmStart& start);
  /// Opens metrics.jsonl. Other files of the folder (config.yaml, tokenizer.json) are written before this call.
  void record();

  const TrainConfig& config() const { return config_; }
  const Options& options() const { return options_; }
  Communicator& ranks() { return ranks_; }
  RunState& state() { return state_; }
  const RunState& state() const { return state_; }
  RunProgress& progress() { return progress_; }
  Reporter& log() { return progress_.log(); }

  /// The signal that this process was sent, and its clock.
  StopStatus stop_status() const { return {StopSignals::received(), progress_.session_seconds()}; }
  /// Has nothing been saved yet?
  bool begins() const { return saved_step_ < 0; }
  /// Is this the start of a run from given weights, before its first step?
  bool starts_warm() const { return state_.step == 0 && !state_.ancestry.empty(); }
  int64_t saved_step() const { return saved_step_; }
  /// Has anything changed since the last checkpoint?
  bool unsaved() const { return unsaved_; }
  void changed() { unsaved_ = true; }
  /// Is a checkpoint due: by train.save_every, or for a new best?
  bool save_due() const;
  /// Notes a validation of the present step: as the best so far, or as one more that is no better.
  void validated(const Validation& found, double seconds);

  /// Saves a checkpoint, after the lines of metrics.jsonl that it refers to. All ranks call it, as they call what
  /// follows. Of one process, a large checkpoint is only written: the system brings it to the disk while training goes
  /// on, and publish_due(), which is called before each step, publishes it then.
  void save(const RunParts& parts);
  void publish_due();
  /// Publishes at once what save() has written, but for the newest `but` checkpoints.
  void publish(size_t but = 0);
  /// Ends a run that has reached a limit: saves what is not saved. `remedy`: how to go on with a run that was finished
  /// before, for the log.
  TrainResult finish(const std::string& reason, const RunParts& parts, const std::string& remedy);
  /// Saves a run that a signal has asked to stop; give_up() if it has not begun.
  TrainResult interrupt(int signal, const RunParts& parts);
  /// Saves a run that ends before its limits, because no more of it was wanted.
  TrainResult end_piece(const RunParts& parts);
  /// Call it after the end: removes what only more training needs, with a warning where that fails.
  void clean();
  /// interrupt() for a run that has nothing to save yet, or saves unfinished work itself.
  TrainResult give_up(int signal, const char* remedy = "the same command begins the run again");

 private:
  bool is_best(const Validation& found) const;
  void describe_now();
  std::optional<std::filesystem::path> load(const RunState& now, const RunParts& parts, const RenewIdentity& renewed);

  const StopSignals signals_;
  const SignalThread signal_thread_;
  Options options_;
  TrainConfig config_;
  Communicator& ranks_;
  RunFolder folder_;
  RunState state_;
  FoundRule found_rule_;  // with the last validation
  RunProgress progress_;
  bool unsaved_ = true, best_unsaved_ = false;
  bool saved_here_ = false;  // is there a checkpoint in this run's folder? Not yet after a start from another's
  int64_t saved_step_ = -1;
  struct Written {
    int64_t step;
    double seconds;  // that writing took
    double wait;     // seconds
    Stopwatch since;
  };
  std::vector<Written> written_;  // by save(), and not published; the oldest first
};

}  // namespace capstan
