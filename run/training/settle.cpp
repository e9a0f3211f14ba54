// One stage for each kind of choice. A stage reads what the stages before it have chosen. Every key that may be left
// open is here: where it is chosen, and where a run that goes on takes it. tests/run/test_settle.cpp.
#include "run/training/settle.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/ranges.h>

#include "core/base/error.hpp"
#include "core/base/no_copy.hpp"
#include "core/base/stop.hpp"
#include "core/io/log.hpp"
#include "core/io/progress.hpp"
#include "core/products/blas_info.hpp"
#include "core/products/gemm_backend.hpp"
#include "data/labelled/table_reading.hpp"
#include "run/setup/rank_agreement.hpp"
#include "run/setup/run_data.hpp"
#include "run/setup/run_memory.hpp"
#include "run/setup/run_ngrams.hpp"
#include "run/training/plan.hpp"
#include "train/checkpoints/checkpoint.hpp"
#include "train/loop/run_length.hpp"
#include "train/ranks/agreement.hpp"

namespace capstan {
namespace fs = std::filesystem;

namespace {

/// Fewer planned steps are warned of: most recipes warm up for a hundred.
constexpr int64_t few_steps = 50;
/// The share of the time that a pilot may take, from 1 to 20 seconds.
constexpr double pilot_share = 0.02;

/// Collective: the precision that rank 0 has chosen. Throws Error naming a rank that cannot train in it.
Precision agreed_precision(Communicator& ranks, Precision chosen) {
  if (ranks.size() == 1) return chosen;
  TrainConfig config;
  config.precision =
      ranks.broadcast(enum_name(chosen)) == enum_name(Precision::bf16) ? Precision::bf16 : Precision::float32;
  const std::vector<std::string> obstacles = ranks.gather(precision_obstacle(config));
  for (size_t rank = 0; rank < obstacles.size(); ++rank)
    if (!obstacles[rank].empty())
      throw Error(fmt::format("train.precision: {} has chosen bf16, in which {} cannot train: {}", ranks.name_of(0),
                              ranks.name_of(static_cast<int>(rank)), obstacles[rank]));
  return config.precision;
}

/// The run in a folder that this process sees. Without its checkpoint, a configuration that cannot be read is none: the
/// run begins again.
std::optional<BegunRun> saved_run(const fs::path& folder) {
  const bool has_checkpoint = Checkpoints(folder / "checkpoints").last().has_value();
  std::error_code unknown;
  if (!has_checkpoint && !fs::exists(folder / "config.yaml", unknown)) return std::nullopt;
  try {
    return BegunRun{load_run_config(folder), has_checkpoint};
  } catch (const Error& error) {
    if (!has_checkpoint) return std::nullopt;
    throw Error(fmt::format("{}; the run has checkpoints, which go on with its config.yaml alone: put it back{}",
                            error.what(), begin_another));
  }
}

/// Sets a key that is left open: one that has the value of a new T.
template <class T>
void take(T& open, const T& chosen) {
  if (open == T()) open = chosen;
}

void take_columns(const LabelledSourceConfig& begun, LabelledSourceConfig& given) {
  take(given.header, begun.header);
  take(given.label_column, begun.label_column);
  take(given.label_columns, begun.label_columns);
  take(given.text_columns, begun.text_columns);
  if (given.multi_label || !begun.multi_label) return;
  LabelledSourceConfig found = given;  // it was given, or found in the values of the column
  find_columns(found);
  given.multi_label = found.multi_label;
}
void take_columns(const PairSourceConfig& begun, PairSourceConfig& given) {
  take(given.header, begun.header);
  take(given.source_column, begun.source_column);
  take(given.target_column, begun.target_column);
}

class Settling : NoCopy {
 public:
  Settling(const RunConfig& given, const TrainRunOptions& options, Communicator& ranks, const Machine& machine)
      : options_(options),
        ranks_(ranks),
        machine_(machine),
        given_(given),
        begun_(options.settled ? BegunRun{given, true} : begun_run(given, ranks)) {
    config_ = begun_ ? with_choices_of(*begun_, given) : given;
  }

  /// Of tables.
  void columns() {
    if (!begun_ || !begun_->has_checkpoint) say(find_data_columns(config_));
  }

  void read_data() {
    run_.data = open_data_in_turn(ranks_, config_);
    run_.signals = std::make_unique<SignalWatch>();
  }

  /// Lengths and buckets of the n-grams of a linear classifier.
  void ngrams() {
    if (!is_solved()) return;
    doing_ = "while n-grams were read";
    auto& model = std::get<LinearClassifierConfig>(config_.model);
    run_.ngrams.emplace(read_ngrams(config_, *run_.data));
    const LinearClassifierConfig& chosen = run_.ngrams->config();
    if (!model.words && run_.ngrams->base() == nullptr)
      say(fmt::format("model.words: {} of {} texts", *chosen.words, run_.ngrams->rows()));
    model = chosen;
  }

  /// What train.minutes leaves open.
  void sizes_and_steps() {
    if (!has_plan_to_make(given_)) return;
    if (!has_plan_to_make(config_))
      return say(fmt::format("train.minutes: {} steps, as planned when the run was begun", config_.train.steps));
    if (ranks_.size() > 1)
      throw ConfigError(
          "train.minutes: one process plans a run; with several, give train.steps and the sizes of the model");
    doing_ = "while steps were on trial";
    reserve_product_memory();
    const double seconds = 60 * config_.train.minutes;
    measure_memory(MemoryBound::ample);
    const Fits fits = [&](const RunConfig& sized) { return options_.force || !memory_problem_of(sized); };
    const Pilot pilot = [&](RunConfig sized) {
      if (sized.train.precision == Precision::automatic) sized.train.precision = precision_for(sized);
      return machine_.time_steps(sized, *run_.data, std::clamp(seconds * pilot_share, 1.0, 20.0));
    };
    RunPlan made = plan(config_, *run_.data, seconds - since_.seconds(), pilot, fits);
    config_ = std::move(made.config);
    for (const std::string& line : made.report) say(line);
    if (made.memory_limits) say("no larger model leaves memory to spare of " + machine_.memory.of);
    if (const int64_t steps = config_.train.steps; steps < few_steps)
      run_.warnings.push_back(
          fmt::format("train.minutes: the time is enough for {} steps, too few to learn much; give more minutes, or a "
                      "smaller model or batch",
                      steps));
  }

  void check_memory() {
    if (options_.force) return;
    measure_memory(MemoryBound::least);
    if (const auto memory = memory_problem_of(config_)) throw ConfigError(memory->key + ": " + memory->message);
  }

  /// Of all ranks, that of the first one.
  void precision() {
    reserve_product_memory();
    if (given_.train.precision != Precision::automatic) return;
    doing_ = "while steps were on trial";
    Precision& chosen = config_.train.precision;
    if (is_solved()) chosen = Precision::float32;
    try {
      if (chosen == Precision::automatic && ranks_.first()) chosen = precision_for(config_);
    } catch (const Stopped&) {  // the others wait for an answer; stop_for_signals() tells them
      chosen = Precision::float32;
    }
    const Communicator::LongTimeout timing(ranks_);
    chosen = agreed_precision(ranks_, chosen);
    if (chosen == Precision::bf16) require_same_kernels(ranks_, config_, options_.mixed_kernels);
  }

  /// Throws Stopped where one of the ranks was sent a signal.
  void stop_for_signals() {
    signal_ = agreed_signal(ranks_, StopSignals::received());
    if (signal_ != 0) throw Stopped();
    doing_ = "before the first step";
  }

  void evaluations() {
    TrainConfig& train = config_.train;
    if (is_solved() || train.valid_every || !run_.data->has(Split::valid)) return;
    train.valid_every = evaluation_interval(run_.data->training(), run_.data->validation().get(), train);
    say(fmt::format("an evaluation every {} steps", *train.valid_every));
  }

  Settled settled() { return std::move(run_); }
  void say_stopped() const {
    const int signal = signal_ != 0 ? signal_ : StopSignals::received();
    if (signal != 0) log_info(fmt::format("{} {}; the same command goes on", interruption(signal), doing_));
  }

 private:
  bool is_solved() const { return facts_of(config_.model).is_solved; }

  /// A choice in words, none where `line` is empty. It is shown at once: data may then be read for minutes.
  void say(const std::string& line) {
    if (line.empty()) return;
    if (ranks_.first() && !options_.quiet && config_.train.progress != ProgressMode::none) log_info(line);
    run_.choices.push_back(line);
  }

  /// Once: before the first step on trial, and only for a plan with memory to spare.
  void measure_memory(MemoryBound bound) {
    if (bound_) return;
    bound_ = bound;
    taken_ = static_cast<double>(machine_.taken());
  }

  std::optional<MemoryProblem> memory_problem_of(const RunConfig& config) const {
    DataExtent extent = extent_of(config, *run_.data);
    extent.taken = taken_;
    return memory_problem(config, extent, machine_.memory, ranks_.size(), ranks_.sharing_memory(), *bound_);
  }

  /// bf16 where a step takes at most nine tenths of the time in it. A CPU that only emulates bf16 has an obstacle, too.
  Precision precision_for(const RunConfig& sized) {
    if (precision_) return *precision_;
    const std::string obstacle = bf16_obstacle();
    std::string reason = sized.train.kernels == KernelChoice::portable ? "portable kernels gain nothing by bf16"
                                                                       : obstacle.substr(0, obstacle.rfind(':'));
    precision_ = Precision::float32;
    if (reason.empty()) {
      const PrecisionTimes seconds = machine_.time_precisions(sized, *run_.data, ranks_.size());
      if (seconds.bf16 <= 0.9 * seconds.float32) precision_ = Precision::bf16;
      reason = fmt::format("a step takes {:.3g} s in float32 and {:.3g} s in bf16", seconds.float32, seconds.bf16);
    }
    say(fmt::format("train.precision: auto is {}: {}", enum_name(*precision_), reason));
    return *precision_;
  }

  const Stopwatch since_;
  const TrainRunOptions& options_;
  Communicator& ranks_;
  const Machine& machine_;
  const RunConfig& given_;
  const std::optional<BegunRun> begun_;
  std::optional<Precision> precision_;
  double taken_ = 0;  // bytes
  std::optional<MemoryBound> bound_;
  int signal_ = 0;  // that a rank was sent
  const char* doing_ = "before the first step";
  Settled run_;
  RunConfig& config_ = run_.config;  // with what has been chosen so far
};

}  // namespace

std::optional<BegunRun> begun_run(const RunConfig& given, Communicator& ranks) {
  std::optional<BegunRun> begun;
  if (ranks.first()) begun = saved_run(folder_of(given));
  if (ranks.size() == 1) return begun;
  const std::string has_checkpoint = ranks.broadcast(begun && begun->has_checkpoint ? "yes" : ""),
                    text = ranks.broadcast(begun ? to_yaml(begun->config) : "");
  if (text.empty()) return std::nullopt;
  return BegunRun{load_config_text<RunConfig>(text, "config.yaml of rank 0"), !has_checkpoint.empty()};
}

RunConfig with_choices_of(const BegunRun& begun, RunConfig given) {
  const RunConfig& chosen = begun.config;
  if (has_plan_to_make(given)) given = with_plan_of(chosen, std::move(given));
  if (given.train.precision == Precision::automatic) given.train.precision = chosen.train.precision;
  if (!begun.has_checkpoint) return given;
  std::visit(
      [&](auto& ours) {
        using Source = std::decay_t<decltype(ours)>;
        if constexpr (std::is_same_v<Source, LabelledSourceConfig> || std::is_same_v<Source, PairSourceConfig>)
          if (const auto* const theirs = std::get_if<Source>(&chosen.data)) take_columns(*theirs, ours);
      },
      given.data);
  take_choices(chosen.model, given.model);
  take(given.train.valid_every, chosen.train.valid_every);
  return given;
}

bool is_finished(const RunConfig& given) {
  const fs::path folder = folder_of(given);
  try {
    const auto last = Checkpoints(folder / "checkpoints").last();
    const auto begun = saved_run(folder);
    if (!last || !begun) return false;
    const RunConfig settled = with_choices_of(*begun, given);
    return diff_configs(begun->config, settled).empty() && has_ended(settled.train, read_state(*last));
  } catch (const Error&) {
    return false;
  }
}

Settled settle(const RunConfig& given, const TrainRunOptions& options, Communicator& ranks, const Machine& machine) {
  Settling run(given, options, ranks, machine);
  try {
    run.columns();
    run.read_data();
    run.ngrams();
    run.sizes_and_steps();
    run.check_memory();
    run.precision();
    run.stop_for_signals();
    run.evaluations();
    return run.settled();
  } catch (const Stopped&) {
    run.say_stopped();
    throw;
  }
}

}  // namespace capstan
