// The training loop: steps, validations, checkpoints and the end of a run, in the order that a resumed run repeats.
// Called by run/training (train_run, replay); RunInputs is for programs with a model of their own.
// tests/train/test_loop.cpp, test_resume.cpp, and test_nonfinite.cpp.
#pragma once

#include <filesystem>
#include <optional>
#include <set>

#include "data/batches/batcher.hpp"
#include "models/model.hpp"
#include "nn/params/param_store.hpp"
#include "train/loop/session.hpp"
#include "train/ranks/communicator.hpp"
#include "train/records/profile_table.hpp"
#include "train/steps/training_step.hpp"

namespace capstan {

/// Where a training ends before any limit of its configuration, saved: to compute a piece of a run again.
struct PieceEnd {
  int64_t step;
  bool validated;  // a validation that is due at this step is part of the piece
  /// Steps at which the run was validated. Where it was going to end, and went on, the configuration names none of
  /// them.
  std::set<int64_t> validations = {};
};

/// What the loop reads besides its session and step.
struct TrainInputs {
  const Task& task;
  const BatchSource& train;
  const BatchSource* valid = nullptr;  // null: no evaluation, no best checkpoint, no early stopping
  StepProfiler* profiler = nullptr;
  std::optional<PieceEnd> end = std::nullopt;
};

/// Trains until a limit of the session's configuration is reached or a signal (SIGINT, SIGTERM, SIGUSR1) asks to stop.
/// N steps, a kill and N more give bit for bit the weights of 2N steps (same machine and BLAS, any number of threads).
/// All ranks call it and train one model: the weights are those that one rank would get. A step is `accumulate`
/// batches, fewer at the end of an epoch: a step never spans two epochs. Throws Error for a loss or gradient that is
/// not finite (the weights are then unchanged).
TrainResult train(Session& session, TrainingStep& step, const TrainInputs& inputs);

/// A run of a program that brings its own model and batches.
struct RunInputs {
  const Task& task;
  ParamStore& params;  // finalized, initialised
  const BatchSource& train;
  const BatchSource* valid = nullptr;
  std::filesystem::path folder;
  Identity identity;
  uint64_t seed = 0;
  std::optional<std::filesystem::path> resume_from = std::nullopt;
  StepProfiler* profiler = nullptr;
  Communicator* ranks = nullptr;                  // the processes that train together; null: this one alone
  double publish_later_above = large_checkpoint;  // bytes; see Session::save()
};
/// Opens a session in the folder, continues from its last checkpoint, and trains. Throws Error for files or data that
/// cannot be used and for a loss or gradient that is not finite, ConfigError for a wrong configuration.
TrainResult train(const RunInputs& inputs, const TrainConfig& config);

}  // namespace capstan
