// The `train:` part of a configuration: its keys, limits and help, and the checks that span several. Runs save the
// settings and are resumed only if those that matter are the same (check_resumable), so a new key needs a default that
// means what runs without it meant: tests/cli/runs/test_old_runs.cpp, tests/train/test_resume.cpp,
// tests/run/yaml/test_config_errors.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/config/schema.hpp"
#include "train/evaluation/evaluate.hpp"
#include "train/evaluation/metrics.hpp"
#include "train/optimizers/optimizer.hpp"
#include "train/optimizers/schedule.hpp"

namespace capstan {

/// automatic: float32 or bf16, which a run chooses before it trains (run/training/settle.hpp).
enum class Precision { float32, bf16, automatic };
inline std::vector<EnumName<Precision>> enum_names(Precision) {
  return {{Precision::float32, "float32"}, {Precision::bf16, "bf16"}, {Precision::automatic, "auto"}};
}

/// portable: all results have the same bits on every CPU that has fused products (docs/reliability.md).
enum class KernelChoice { fastest, portable };
inline std::vector<EnumName<KernelChoice>> enum_names(KernelChoice) {
  return {{KernelChoice::fastest, "default"}, {KernelChoice::portable, "portable"}};
}

enum class ProgressMode { automatic, bar, plain, none };
inline std::vector<EnumName<ProgressMode>> enum_names(ProgressMode) {
  return {{ProgressMode::automatic, "auto"},
          {ProgressMode::bar, "bar"},
          {ProgressMode::plain, "plain"},
          {ProgressMode::none, "none"}};
}

template <class Fields>
void describe(Fields& f, RateRule& c) {
  f("match", c.match, not_empty(), "pattern of the names of parameters; * stands for any run of characters");
  f("factor", c.factor, greater(0), "their learning rate as a multiple of train.lr");
}

/// What it costs to take one class for another.
struct MistakeCost {
  std::string truth, predicted;
  double cost = 1;
};
template <class Fields>
void describe(Fields& f, MistakeCost& c) {
  f("truth", c.truth, any(), "class that a text has");
  f("predicted", c.predicted, any(), "class that it is given");
  f("cost", c.cost, at_least(0), "cost of this mistake");
}

/// The keys of `train:`; describe() below has the meaning, unit and limits of each.
struct TrainConfig {
  int64_t steps = 0, epochs = 0;
  double minutes = 0, max_minutes = 0;
  int64_t batch_size = 32, batch_tokens = 0, lanes = 0, micro_batch_tokens = 0, accumulate = 1;
  std::string init_from, init_vectors;
  std::vector<std::string> init_skip, freeze;
  double lr = 1e-3;
  std::vector<RateRule> lr_scale;
  double layer_decay = 1;
  ScheduleConfig schedule;
  OptimizerConfig optimizer = AdamWConfig{};
  double grad_clip = 1;
  Precision precision = Precision::float32;
  KernelChoice kernels = KernelChoice::fastest;
  std::optional<int64_t> valid_every;  // evaluation_interval()
  int64_t patience = 0;
  std::string monitor = "loss";  // metric_of()
  std::string monitor_class;
  double monitor_at_least = 0;
  std::vector<MistakeCost> costs;
  int64_t save_every = 500, keep_last = 2, log_every = 50;
  bool keep_optimizer = false;
  ProgressMode progress = ProgressMode::automatic;
  int64_t memory = 0;
};
/// Keys of training that starts from given weights.
template <class Fields>
void describe_start(Fields& f, TrainConfig& c) {
  f("init_from", c.init_from, any(),
    "start from these weights: a run folder, the folder of a checkpoint, or a safetensors file (docs/warm-start.md)");
  f("init_vectors", c.init_vectors, any(),
    "start the embedding of words from the vectors of this file: the text format of word2vec, fastText (.vec) or "
    "GloVe, also packed (docs/warm-start.md)");
  f("init_skip", c.init_skip, any(), "patterns of the names of tensors in init_from that are left out: [\"head.*\"]");
  f("freeze", c.freeze, any(),
    "patterns of the names of parameters that are not trained: [\"embed.*\", \"blocks.0.*\"]");
}
/// Keys of what is kept of a run.
template <class Fields>
void describe_checkpoints(Fields& f, TrainConfig& c) {
  f("save_every", c.save_every, count_from(0), "steps between checkpoints; 0 = only at a new best and at the end");
  f("keep_last", c.keep_last, count_from(1),
    "newest checkpoints to keep besides the best one; with 1, damage to the newest one can cost the whole run");
  f("keep_optimizer", c.keep_optimizer, any(),
    "keep the newest checkpoints with the optimizer's state after the end, so that the run can be continued with more "
    "steps; otherwise the best model is left");
}
template <class Fields>
void describe(Fields& f, TrainConfig& c) {
  f("steps", c.steps, count_from(0), "training ends after this many steps; 0 = no limit");
  f("epochs", c.epochs, count_from(0), "training ends after this many passes over the data; 0 = no limit");
  f("minutes", c.minutes, between(0, 1e6),
    "the time that training may take: with steps 0, their number and sizes left open are chosen when the run begins; 0 "
    "= not used");
  f("max_minutes", c.max_minutes, between(0, 1e9),
    "training ends after this many minutes, over all sessions; 0 = no limit");
  f("batch_size", c.batch_size, size_from(1), "examples per batch (of text: windows)");
  f("batch_tokens", c.batch_tokens, size_from(0),
    "tokens per batch, padding included, instead of batch_size; 0 = use batch_size");
  f("lanes", c.lanes, between(0, 1024),
    "parts of a batch, each computed by one thread, with gradients added in a fixed order; 1 = each operation on all "
    "threads; 0 = up to 8 parts of at least 1024 tokens");
  f("micro_batch_tokens", c.micro_batch_tokens, size_from(0),
    "process a batch in pieces of at most this many tokens, which saves memory; 0 = in one piece");
  f("accumulate", c.accumulate, size_from(1), "batches per update");
  describe_start(f, c);
  f("lr", c.lr, greater(0), "peak learning rate");
  f("lr_scale", c.lr_scale, any(), "other learning rates for some parameters; the first entry that matches counts");
  f("layer_decay", c.layer_decay, greater_up_to(0, 1),
    "factor between the learning rates of a block and the next one, and of embedding and first block; 1 = all the "
    "same");
  f("schedule", c.schedule, any(), "learning rate over time");
  f("optimizer", c.optimizer, any(), "how gradients are turned into updates");
  f("grad_clip", c.grad_clip, at_least(0),
    "largest norm of the gradient of all parameters; a larger one is scaled down; 0 = off");
  f("precision", c.precision, any(),
    "number format in the layers' matrix products during training; bf16 needs a CPU with bf16 instructions, and "
    "oneDNN; auto = bf16 if a step takes at most 0.9 of the time in it, as a few on trial say when the run begins");
  f("kernels", c.kernels, any(),
    "portable = the same bits on every Intel or AMD CPU with AVX2 and on ARM64; default = what is fastest here");
  f("valid_every", c.valid_every, count_from(0),
    "steps between evaluations; 0 = only at the end; null = 500, or more: evaluations read at most a tenth as many "
    "examples as training");
  f("monitor", c.monitor, one_of(monitor_names()),
    "validation result that decides the best checkpoint and patience; accuracy can still improve after a classifier's "
    "loss has begun to rise; for macro-f1, f1, recall and precision (of monitor_class) and cost, the rule by which a "
    "class is "
    "decided is chosen, too, by validation or, of a linear-classifier, cross-validation; micro-f1 needs "
    "data.multi_label");
  f("monitor_class", c.monitor_class, any(),
    "class whose F1, recall or precision is meant, for monitor: f1, recall, precision");
  f("monitor_at_least", c.monitor_at_least, between(0, 1),
    "for monitor: recall or precision, the share that monitor_class shall reach; the other one is then the highest");
  f("costs", c.costs, any(),
    "for monitor: cost, as [{truth: spam, predicted: ham, cost: 20}], or without predicted for all mistakes about a "
    "class; others cost 1");
  f("patience", c.patience, count_from(0), "training ends after this many evaluations without a new best; 0 = never");
  f("memory", c.memory, size_from(0),
    "of a linear-classifier: million bytes for the n-grams of all texts; more of them are made again in each pass, "
    "which "
    "takes about twice as long; 0 = half of the memory that is free");
  describe_checkpoints(f, c);
  f("log_every", c.log_every, count_from(1), "steps between lines in metrics.jsonl and in the log");
  f("progress", c.progress, any(),
    "how progress is shown; auto = a bar on a terminal, at most 30 lines elsewhere; plain = a line at every log_every "
    "and evaluation");
}

/// Rules that span several fields.
void validate(const TrainConfig& config, Problems& problems);
/// Why this machine cannot train in config.precision, and the remedy; empty if it can. Checked only before training:
/// any machine may read the configuration and evaluate its run.
std::string precision_obstacle(const TrainConfig& config);
/// Adds precision_obstacle(), and the same for config.kernels; `section` is what paths begin with: "train.", or
/// nothing.
void add_machine_problems(const TrainConfig& config, const std::string& section, Problems& problems);
/// From now on this process computes products as config.kernels says; the fastest way where the CPU cannot do portable
/// ones. Must not be called while a product runs.
void use_kernels(const TrainConfig& config);
/// Throws ConfigError with all problems under `train.`; for configurations that were not read from YAML.
void check_config(const TrainConfig& config);

}  // namespace capstan
