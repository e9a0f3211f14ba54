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
#include "train/records/step_profiler.hpp"
#include "train/runs/config.hpp"
#include "train/runs/run_state.hpp"

namespace capstan {

struct TrainInputs {
  const Task& task;
  ParamStore& params;  // finalized, initialised
  const BatchSource& train;
  const BatchSource* valid = nullptr;  // null: no evaluation, no best checkpoint, no early stopping
  std::filesystem::path folder;        // of the run: metrics.jsonl, train.log, checkpoints/
  Identity identity;
  uint64_t seed = 0;
  std::optional<std::filesystem::path> resume_from = std::nullopt;  // a checkpoint's folder, instead of `last`
  std::vector<std::string> preamble = {};                           // lines for the log, before anything else
  std::function<void()> on_ready =
      {};  // the folder is ours and what it holds is accepted: write what belongs beside it
  StepProfiler* profiler = nullptr;
};

struct TrainResult {
  bool interrupted = false;  // by a signal; saved, the same call goes on
  std::string reason;        // why the run ended
  RunState state;
};

/// Trains until a limit of `config` is reached or a signal (SIGINT, SIGTERM, SIGUSR1) asks to stop; goes on where the
/// folder's last checkpoint ends. N steps, a kill and N more give bit for bit the weights of 2N steps (same machine,
/// BLAS and threads). A step is `accumulate` batches, fewer at an epoch's end: it never crosses into the next epoch.
/// The parameters hold the trained weights afterwards, not the averaged ones. Throws Error when files, data or numbers
/// are wrong (a loss or gradient that is not finite leaves the weights as they were),
/// ConfigError when the configuration is.
TrainResult train(const TrainInputs& inputs, const TrainConfig& config);

}  // namespace capstan
