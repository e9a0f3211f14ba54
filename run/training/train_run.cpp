// The order of train_run() is: threads and agreement of ranks, data, plan, check of memory, precision, model, and only
// then the run folder, so that a run that is refused leaves it untouched (but for the n-grams of a linear classifier,
// which are kept there while they are read). What is chosen on the way is in `config`, which is written to the folder:
// a resumed run chooses nothing anew (tests/cli/training/test_minutes.cpp, test_precision.cpp).
#include "run/training/train_run.hpp"

#include "core/base/error.hpp"
#include "core/base/out_of_memory.hpp"
#include "core/io/file.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/blas_info.hpp"
#include "core/products/machine_rates.hpp"
#include "core/strings/strings.hpp"
#include "run/setup/decision_goal.hpp"
#include "run/setup/machine_report.hpp"
#include "run/setup/rank_agreement.hpp"
#include "run/setup/run_data.hpp"
#include "run/setup/run_memory.hpp"
#include "run/setup/run_model.hpp"
#include "run/setup/run_ngrams.hpp"
#include "run/setup/saved_config.hpp"
#include "run/setup/saved_run.hpp"
#include "run/setup/weights_origin.hpp"
#include "run/summaries/run_record.hpp"
#include "run/training/plan.hpp"
#include "run/training/precision.hpp"
#include "run/warm_start/warm_start.hpp"
#include "run/warm_start/word_vectors.hpp"
#include "run/yaml/config.hpp"
#include "run/yaml/config_diff.hpp"
#include "run/yaml/config_writer.hpp"
#include "train/checkpoints/checkpoint.hpp"
#include "train/linear/train_linear.hpp"
#include "train/loop/run_length.hpp"
#include "train/loop/signals.hpp"
#include "train/loop/trainer.hpp"
#include "train/rank_steps/rank_step.hpp"
#include "train/ranks/agreement.hpp"
#include "train/records/pace.hpp"
#include "train/records/profile_table.hpp"

namespace capstan {
namespace {

/// Keys that are set but have no effect on a model that is solved for. A key of `train` with an effect on such models
/// must be copied here.
std::vector<std::string> keys_of_steps(const RunConfig& config) {
  RunConfig without = config;
  TrainConfig& used = without.train = TrainConfig();
  used.steps = config.train.steps;
  used.epochs = config.train.epochs;
  used.init_from = config.train.init_from;
  used.monitor = config.train.monitor;
  used.monitor_class = config.train.monitor_class;
  used.costs = config.train.costs;
  used.progress = config.train.progress;
  used.memory = config.train.memory;
  used.kernels = config.train.kernels;  // bits are portable with either value, so that a user may ask for it
  std::vector<std::string> keys;
  for (const ConfigDifference& key : diff_configs(config, without)) keys.push_back(key.path);
  return keys;
}

/// Warnings of data and keys, without that of unequal classes where the configuration shows that it was heeded.
std::vector<std::string> warnings(const RunConfig& config, const DataSource& data) {
  const ClassWeights* const weights = facts_of(config.model).class_weights;
  const bool heeded = (weights != nullptr && !std::holds_alternative<EqualClasses>(*weights)) ||
                      metric_of(config.train.monitor).of != Metric::Of::all;
  std::vector<std::string> lines;
  for (const DataWarning& warning : data.warnings())
    if (!heeded || warning.check != "balance") lines.push_back("data: " + warning.message);
  if (facts_of(config.model).is_solved)
    if (const std::vector<std::string> keys = keys_of_steps(config); !keys.empty())
      lines.push_back(fmt::format("{}: without effect on a {}, which is not trained in steps; remove {}",
                                  join_first(keys), type_of(config.model), keys.size() == 1 ? "it" : "them"));
  return lines;
}

/// The first lines of a run's log: machine, data and model.
std::vector<std::string> preamble(const RunConfig& config, const DataSource& data, const RunModel& model) {
  std::vector<std::string> lines{machine_line()};
  for (const std::string& line : data.description())  // n-grams are made of texts, so that tokens do not matter
    if (!facts_of(config.model).is_solved || !starts_with(line, "tokenizer: ")) lines.push_back(line);
  if (facts_of(config.model).is_solved) return lines;
  const SourceFacts facts = facts_of(config.data);
  const bool fixed_length = !facts.has_labels && facts.longest > 0;
  const ModelSummary summary = model.summary(fixed_length ? facts.longest : model.position_limit().value_or(512));
  lines.push_back(fmt::format("model: {} of {}, {:.3g} MFLOP per token in training{}", type_of(config.model),
                              parameters_text(model.params()), summary.training_flops() / 1e6,
                              summary.frozen > 0 ? fmt::format("; {} parameters are frozen", summary.frozen) : ""));
  if (const Stack* const stack = model.model().find_stack(); stack != nullptr && stack->config().layers.empty())
    lines.emplace_back("model.layers: none: no token sees another, but for n-grams");
  return lines;
}

/// What this machine's memory is too small for, with the ranks that share it; none where it is enough.
std::optional<MemoryProblem> memory_problem(const RunConfig& config, const DataExtent& data,
                                            const Communicator& ranks) {
  return memory_problem(config, data, memory_limit(), ranks.size(), ranks.sharing_memory());
}

/// Fewer planned steps are warned of: most recipes warm up for a hundred.
constexpr int64_t few_steps = 50;
/// The share of the time that a pilot may take, from 1 to 20 seconds.
constexpr double pilot_share = 0.02;

/// What a run chose before it trains, for its log.
struct Choices {
  std::vector<std::string> lines;
  std::vector<std::string> warnings;
};

/// The configuration with what it leaves open filled in as when this run was begun, if it was.
RunConfig as_begun(const RunConfig& config) {
  const std::filesystem::path folder = folder_of(config);
  return std::filesystem::exists(folder / "config.yaml") ? with_plan_of(load_run_config(folder), config) : config;
}

/// The configuration with what train.minutes leaves open: as this run was begun, or chosen now, with the precision in
/// which its steps were timed. `since`: when the command began.
RunConfig planned(const RunConfig& config, const DataSource& data, const TrainRunOptions& options, Communicator& ranks,
                  const Stopwatch& since, Choices& choices) {
  const RunConfig known = as_begun(config);
  if (!has_plan_to_make(known)) return known;
  if (ranks.size() > 1)
    throw ConfigError(
        "train.minutes: one process plans a run; with several, give train.steps and the sizes of the model");
  const double seconds = 60 * known.train.minutes;
  const Fits fits = [&](const RunConfig& sized) {
    return options.force || !memory_problem(sized, extent_of(sized, data), ranks);
  };
  std::optional<PrecisionChoice> precision;
  const auto pilot = [&](RunConfig sized) {
    if (sized.train.precision == Precision::automatic) {
      if (!precision) precision = choose_precision(sized, data, 1);
      sized.train.precision = precision->precision;
    }
    return time_pilot(sized, data, std::clamp(seconds * pilot_share, 1.0, 20.0));
  };
  RunPlan made = plan(known, data, seconds - since.seconds(), pilot, fits);
  choices.lines = std::move(made.report);
  if (precision) {
    made.config.train.precision = precision->precision;
    choices.lines.push_back(precision->line);
  }
  if (const int64_t steps = made.config.train.steps; steps < few_steps)
    choices.warnings.push_back(
        fmt::format("train.minutes: the time is enough for {} steps, too few to learn much; give more minutes, or a "
                    "smaller model or batch",
                    steps));
  return made.config;
}

/// Collective: replaces `auto` in train.precision by what this run was begun with, or by what rank 0 chooses now.
/// `config` has all sizes.
void settle_precision(RunConfig& config, const DataSource& data, const TrainRunOptions& options, Communicator& ranks,
                      Choices& choices) {
  Precision& precision = config.train.precision;
  if (precision != Precision::automatic) return;
  if (facts_of(config.model).is_solved) {
    precision = Precision::float32;
    return;
  }
  if (ranks.first()) precision = as_begun(config).train.precision;
  if (precision == Precision::automatic && ranks.first()) {
    const PrecisionChoice choice = choose_precision(config, data, ranks.size());
    choices.lines.push_back(choice.line);
    precision = choice.precision;
  }
  const Communicator::LongTimeout timing(ranks);
  precision = agreed_precision(ranks, precision);
  if (precision == Precision::bf16) require_same_kernels(ranks, config, options.mixed_kernels);
}

/// Replaces null in train.valid_every.
void settle_evaluations(RunConfig& config, const DataSource& data, Choices& choices) {
  if (config.train.valid_every || !data.has(Split::valid)) return;
  config.train.valid_every = evaluation_interval(data.training(), data.validation().get(), config.train);
  choices.lines.push_back(fmt::format("an evaluation every {} steps", *config.train.valid_every));
}

/// What a run is made of before its folder is opened.
struct Prepared {
  RunConfig config;  // with all that was left open
  const TrainRunOptions& options;
  const DataSource& data;
  RunModel& model;
  Choices choices;
};

/// The remedy where a run cannot go on: a replay has no use for another run.
const char* remedy_of(const TrainRunOptions& options) { return options.end ? nothing_to_compare : begin_another; }

/// What a session needs to know of a run. The identity is what a checkpoint records and a resumed run must have.
Session::Options session_options(const Prepared& run, int64_t steps) {
  const DataSource& data = run.data;
  Session::Options session{folder_of(run.config),
                           {{"model", to_yaml(run.config.model)},
                            {"data", data.identity()},
                            {"tokenizer", identity_of(data.tokenizer())},
                            {"classes", identity_of(data.classes())}},
                           static_cast<uint64_t>(run.config.seed)};
  if (const std::filesystem::path from = run.options.resume_from; !from.empty()) {
    if (std::filesystem::is_directory(from / "checkpoints"))
      throw Error(fmt::format("--resume-from: {} is the folder of a run: give that of a checkpoint; {}", from.string(),
                              Checkpoints(from / "checkpoints").complete_ones({}, Checkpoints::Use::resuming)));
    session.resume_from = from;
  }
  session.otherwise = remedy_of(run.options);
  session.total_steps = steps;
  session.validates = data.has(Split::valid);
  session.goal = decision_goal(run.config, data);
  const ModelFacts facts = facts_of(run.config.model);
  session.kind = facts.is_solved ? RunKind::solved : facts.classifies() ? RunKind::texts : RunKind::tokens;
  return session;
}

/// Throws Error where data differ from those of the run in nothing but their content: it names the files, which say
/// more than the fingerprints would. Other differences are for the session to report.
void require_same_content(const Prepared& run, const std::string& saved, const std::string& ours) {
  const auto settings = [](const std::string& identity) {
    return identity.substr(0, identity.find("fingerprint of "));
  };
  if (saved == ours || settings(saved) != settings(ours)) return;
  const std::string& from = run.options.resume_from;
  const std::filesystem::path folder = from.empty() ? folder_of(run.config) : run_folder_of(from);
  const std::vector<SourceFiles> saved_files = facts_of(load_run_config(folder).data).files,
                                 our_files = facts_of(run.config.data).files;
  std::string changes;
  for (size_t i = 0; i < std::min(saved_files.size(), our_files.size()); ++i)
    if (saved_files[i].paths != our_files[i].paths && our_files[i].key != std::string("test"))
      changes += fmt::format("data.{} was [{}], is now [{}], with another content; ", our_files[i].key,
                             join(saved_files[i].paths), join(our_files[i].paths));
  if (changes.empty())
    changes = fmt::format("the content of the files has changed ({}); ", files_text(run.config.data));
  throw Error(fmt::format("{} holds a run with other data: {}continue with what it was started with{}", folder.string(),
                          changes, remedy_of(run.options)));
}

/// The session goes on from the folder's checkpoint, or begins. Afterwards the folder has all files but those that
/// training writes.
void begin(Session& session, const Prepared& run, const RunParts& parts) {
  const auto& [config, options, data, model, choices] = run;
  for (const std::string& line : preamble(config, data, model)) session.log().info(line);
  for (const std::string& line : choices.lines) session.log().info(line);
  if (const std::string warning = blas_warning(); !warning.empty()) session.log().warn(warning);
  for (const std::string& line : choices.warnings) session.log().warn(line);
  if (!options.quiet)
    for (const std::string& line : warnings(config, data)) session.log().warn(line);
  // The configuration that an earlier version saved lacks the keys that were added since: they get their defaults.
  const RenewIdentity renewed = [&run](const std::string& name, const std::string& saved) {
    if (name == "model") return to_yaml(saved_part<TaskConfig>(saved, "model", "the model of the checkpoint"));
    if (name != "data") return saved;
    const std::string ours = run.data.identity(), renewed_text = renewed_identity(run.config.data, saved, ours);
    require_same_content(run, renewed_text, ours);
    return renewed_text;
  };
  const bool resumed = session.resume(parts, renewed);
  if (!resumed && !config.train.init_vectors.empty())
    for (const std::string& line : fill_word_vectors(config, data.tokenizer(), parts, log_info))
      session.log().info(line);
  if (!resumed && !config.train.init_from.empty())
    session.start_from(warm_start(config, row_names(config, data.tokenizer(), data.classes()), parts));
  if (session.ranks().first()) write_run_files(session.options().folder, config, data.tokenizer(), data.classes());
  session.record();
}

/// The configuration of training, with the progress that is to be shown.
TrainConfig shown(const Prepared& run) {
  TrainConfig config = run.config.train;
  if (run.options.quiet) config.progress = ProgressMode::none;
  return config;
}

/// Trains a model in steps.
TrainResult train_in_steps(const Prepared& run, Communicator& ranks) {
  const auto& [config, options, data, model, choices] = run;
  const std::unique_ptr<BatchSource> valid = data.has(Split::valid) ? data.validation() : nullptr;
  Session session(session_options(run, total_steps(data.training(), config.train)), shown(run), ranks);
  const auto step = make_step(model.model(), model.params(), data.training(), session.config(), ranks);
  begin(session, run, step->parts(session.state()));
  std::optional<StepProfiler> profiler;
  if (options.profile_steps > 0 && options.profile != nullptr && ranks.first())
    profiler.emplace(profile_warmup, options.profile_steps, [&](const Profile& profile) {
      const MachineRates machine{triad_rate(16 << 20), product_rate()};
      *run.options.profile << to_text(profile, machine) << std::flush;
    });
  TrainResult result = train(
      session, *step, {model.model(), data.training(), valid.get(), profiler ? &*profiler : nullptr, options.end});
  if (profiler) profiler->finish();
  // Leaves the best model. After a kill between the end and this, the same command does it.
  if (!result.interrupted && !options.end && !config.train.keep_optimizer) session.clean();
  return result;
}

/// Solves for a linear classifier.
TrainResult solve(const Prepared& run, const NgramRows& ngrams, Communicator& ranks) {
  Session session(session_options(run, 1), shown(run), ranks);
  ParamStore& params = run.model.params();
  Optimizer none(session.config().optimizer, params);  // a checkpoint has the file of one
  const RunParts parts{params, none, session.state()};
  begin(session, run, parts);
  std::optional<LabelledTexts> valid;
  if (run.data.has(Split::valid)) valid.emplace(run.data.texts(Split::valid));
  return train_linear(session, run.model.model(), ngrams, valid ? &*valid : nullptr, parts);
}

}  // namespace

TrainResult train_run(const RunConfig& given, const TrainRunOptions& options, Communicator& ranks) {
  const Stopwatch since;
  RunConfig config = given;
  const bool solved = facts_of(config.model).is_solved;
  if (solved && ranks.size() > 1)
    throw ConfigError(fmt::format("a {} is trained on the threads of one process: start it once, not as {} processes",
                                  type_of(config.model), ranks.size()));
  set_threads(threads_of_rank(ranks, config.threads));
  use_kernels(config.train);
  require_same_program(ranks, config, options.mixed_kernels);
  const std::unique_ptr<DataSource> source = open_data_in_turn(ranks, config);
  const DataSource& data = *source;
  Choices choices;
  if (has_plan_to_make(config)) {
    reserve_product_memory();
    config = planned(config, data, options, ranks, since, choices);
  }
  const StopSignals signals;    // what comes between the reading of n-grams and the session is not lost
  const SignalThread receiver;  // products are timed before the session, which has its own
  std::optional<NgramRows> ngrams;
  if (solved)
    if (const int signal = read_ngrams(config, data, ngrams); signal != 0)
      return {true, false, interruption(signal), {}};
  if (!options.force)
    if (const auto memory = memory_problem(config, extent_of(config, data), ranks))
      throw ConfigError(memory->key + ": " + memory->message);
  reserve_product_memory();
  settle_precision(config, data, options, ranks, choices);
  if (const int signal = agreed_signal(ranks, StopSignals::received()); signal != 0) {
    log_info(interruption(signal) + " before the first step; the same command goes on");
    return {true, false, interruption(signal), {}};
  }
  RunModel model(config, model_vocabulary(config, data.tokenizer()), static_cast<int64_t>(data.classes().size()));
  model.prepare(data.class_counts(), data.training().examples_per_epoch());
  if (!solved) settle_evaluations(config, data, choices);
  const Prepared run{config, options, data, model, choices};
  require_same_data(ranks, session_options(run, 0).identity);
  const MemoryFor purpose(solved ? "the weights of the linear classifier: lower model.buckets or train.memory"
                                 : "training");
  return ngrams ? solve(run, *ngrams, ranks) : train_in_steps(run, ranks);
}

bool is_finished(const RunConfig& config) {
  const std::filesystem::path folder = folder_of(config);
  try {
    const auto saved = load_run_config(folder);
    if (!diff_configs(saved, with_plan_of(saved, config)).empty()) return false;
    const auto last = Checkpoints(folder / "checkpoints").last();
    if (!last) return false;
    return has_ended(config.train, read_state(*last));
  } catch (const Error&) {
    return false;
  }
}

}  // namespace capstan
