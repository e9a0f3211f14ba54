// The `train:` part of a configuration.
#pragma once

#include <cstdint>
#include <string>

#include "core/config/schema.hpp"
#include "train/optimizers/optimizer.hpp"
#include "train/optimizers/schedule.hpp"

namespace capstan {

enum class OnNonfinite { stop, skip };
inline std::vector<EnumName<OnNonfinite>> enum_names(OnNonfinite) {
  return {{OnNonfinite::stop, "stop"}, {OnNonfinite::skip, "skip"}};
}

enum class Precision { float32, bf16 };
inline std::vector<EnumName<Precision>> enum_names(Precision) {
  return {{Precision::float32, "float32"}, {Precision::bf16, "bf16"}};
}

enum class ProgressMode { automatic, bar, plain, none };
inline std::vector<EnumName<ProgressMode>> enum_names(ProgressMode) {
  return {{ProgressMode::automatic, "auto"},
          {ProgressMode::bar, "bar"},
          {ProgressMode::plain, "plain"},
          {ProgressMode::none, "none"}};
}

/// Which measure of an evaluation says that a checkpoint is the best so far.
enum class Monitor { loss, accuracy };
inline std::vector<EnumName<Monitor>> enum_names(Monitor) {
  return {{Monitor::loss, "loss"}, {Monitor::accuracy, "accuracy"}};
}

struct TrainConfig {
  int64_t steps = 0, epochs = 0;
  double max_minutes = 0;
  int64_t batch_size = 32, batch_tokens = 0, micro_batch_tokens = 0, accumulate = 1;
  double lr = 1e-3;
  ScheduleConfig schedule;
  OptimizerConfig optimizer = AdamWConfig{};
  double grad_clip = 1, ema_decay = 0;
  Precision precision = Precision::float32;
  int64_t valid_every = 500, patience = 0;
  Monitor monitor = Monitor::loss;
  double min_delta = 0;
  int64_t save_every = 500, keep_last = 1, log_every = 50;
  OnNonfinite on_nonfinite = OnNonfinite::stop;
  bool check_finite = false;
  ProgressMode progress = ProgressMode::automatic;
  bool tensorboard = false;
};
template <class Fields>
void describe(Fields& f, TrainConfig& c) {
  f("steps", c.steps, at_least(0), "updates of the weights after which training ends; 0 = no limit");
  f("epochs", c.epochs, at_least(0), "passes over the training data after which training ends; 0 = no limit");
  f("max_minutes", c.max_minutes, at_least(0),
    "minutes of training, all sessions together, after which it ends; 0 = no limit");
  f("batch_size", c.batch_size, at_least(1), "examples (language model: windows of text) per batch");
  f("batch_tokens", c.batch_tokens, at_least(0),
    "tokens per batch, padding included, instead of batch_size; 0 = use batch_size");
  f("micro_batch_tokens", c.micro_batch_tokens, at_least(0),
    "a batch is worked off in pieces of at most this many tokens, which saves memory and changes no result; 0 = in one "
    "piece");
  f("accumulate", c.accumulate, at_least(1), "batches per update");
  f("lr", c.lr, greater(0), "peak learning rate");
  f("schedule", c.schedule, any(), "learning rate over time");
  f("optimizer", c.optimizer, any(), "how gradients become updates");
  f("grad_clip", c.grad_clip, at_least(0),
    "longest norm of all gradients together; longer ones are shortened to it; 0 = off");
  f("ema_decay", c.ema_decay, between_below(0, 1),
    "evaluate and save a moving average of the weights with this decay; 0 = off");
  f("precision", c.precision, any(),
    "of the factors of the layers' matrix products while training; bf16 needs a CPU with instructions for it, and "
    "oneDNN");
  f("valid_every", c.valid_every, at_least(0), "steps between evaluations on the validation data; 0 = only at the end");
  f("monitor", c.monitor, any(),
    "what the best checkpoint and patience go by: the validation's loss, or its accuracy, which may still rise when a "
    "classifier's loss has begun to (it grows sure of its errors)");
  f("patience", c.patience, at_least(0), "evaluations without a new best after which training ends; 0 = never");
  f("min_delta", c.min_delta, at_least(0), "a new best must be better by more than this");
  f("save_every", c.save_every, at_least(0), "steps between checkpoints; 0 = only at a new best and at the end");
  f("keep_last", c.keep_last, at_least(1), "newest checkpoints to keep, beside the best one");
  f("log_every", c.log_every, at_least(1), "steps between lines of metrics.jsonl and of the log");
  f("on_nonfinite", c.on_nonfinite, any(), "loss or gradient not finite: stop, or skip the update");
  f("check_finite", c.check_finite, any(),
    "check every operation and name the first whose result is not finite (slow)");
  f("progress", c.progress, any(), "auto = bar on a terminal, else plain lines");
  f("tensorboard", c.tensorboard, any(), "write what metrics.jsonl tells to TensorBoard's event files, too");
}

/// Rules that join several fields.
void validate(const TrainConfig& config, Problems& problems);
/// Why this machine cannot train in config.precision, and what to do; empty where it can. Asked before training only: a
/// configuration may be read, and its run evaluated, anywhere.
std::string precision_obstacle(const TrainConfig& config);
/// Throws ConfigError with all problems under `train.`; for configurations that did not come through a reader.
void check_config(const TrainConfig& config);

}  // namespace capstan
