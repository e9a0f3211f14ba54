// The training loop.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/batches/batcher.hpp"
#include "models/task.hpp"
#include "nn/params/param_store.hpp"
#include "train/checkpoints/checkpoint_files.hpp"
#include "train/checkpoints/config.hpp"
#include "train/checkpoints/run_state.hpp"
#include "train/evaluation/evaluate.hpp"
#include "train/ranks/communicator.hpp"
#include "train/records/step_profiler.hpp"

namespace capstan {

/// Where the weights of a run are from that does not start from random ones.
struct WarmStart {
  std::vector<Ancestor> ancestry;     // at least one
  std::vector<std::string> report;    // lines for the log
  std::vector<std::string> warnings;  // follow them
};

/// What solving for all weights at once has used and found.
struct Solved {
  int64_t tokens = 0;   // of the training data
  Evaluation held_out;  // of training data that the weights were not solved with; not used if there are validation data
  std::vector<std::string> report;  // lines for the log
};

struct TrainInputs {
  const Task& task;
  ParamStore& params;  // finalized, initialised
  const BatchSource& train;
  const BatchSource* valid = nullptr;  // null: no evaluation, no best checkpoint, no early stopping
  std::filesystem::path folder;        // of the run: metrics.jsonl, train.log, checkpoints/
  Identity identity;
  uint64_t seed = 0;
  std::optional<std::filesystem::path> resume_from = std::nullopt;  // a checkpoint's folder, instead of `last`
  std::vector<std::string> preamble = {};                           // first lines of the log
  std::vector<std::string> warnings = {};                           // follow them as warnings
  /// Fills the parts of a run without a checkpoint; the run is then evaluated and saved before its first step.
  std::function<WarmStart(const RunParts&)> warm_start = {};
  /// For a model whose weights are not trained in steps: fills them, and is all of the training. Called again from the
  /// start in a run that ended before. Empty when a signal asked to stop.
  std::function<std::optional<Solved>()> solve = {};
  std::function<void()> on_ready =
      {};  // called once the folder is locked and its checkpoint accepted: writes the run's other files
  // A text of the identity that an earlier version may have saved, as this version would write it.
  std::function<std::string(const std::string& name, const std::string& saved)> renewed = {};
  StepProfiler* profiler = nullptr;
  Communicator* ranks = nullptr;  // the processes that train together; null: this one alone
};

struct TrainResult {
  bool interrupted = false;  // by a signal; the run is saved and the same call continues it
  std::string reason;        // why the run ended
  RunState state;
};

/// Trains until a limit of `config` is reached or a signal (SIGINT, SIGTERM, SIGUSR1) asks to stop; continues from the
/// folder's last checkpoint. N steps, a kill and N more give bit for bit the weights of 2N steps (same machine
/// and BLAS, any number of threads). All ranks call it with the same inputs and train one model: the weights are those that one rank would
/// get. A step is `accumulate` batches, fewer at the end of an epoch: a step never spans two epochs.
/// Afterwards the parameters hold the trained weights, not the averaged ones. Throws Error for files or data that
/// cannot be used and for a loss or gradient that is not finite (the weights are then unchanged),
/// ConfigError for a wrong configuration.
TrainResult train(const TrainInputs& inputs, const TrainConfig& config);

}  // namespace capstan
