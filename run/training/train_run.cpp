// The order of train_run() is: threads and agreement of ranks, what is chosen and read (settle()), model, and only then
// the run folder, so that a run that is refused leaves it untouched. What can be checked before that is in one message:
// tests/cli/inputs/test_bad_input.cpp. tests/cli/training/test_interruption.cpp.
#include "run/training/train_run.hpp"

#include "core/base/error.hpp"
#include "core/base/out_of_memory.hpp"
#include "core/base/stop.hpp"
#include "core/machine/kernel_levels.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/blas_info.hpp"
#include "core/products/machine_rates.hpp"
#include "core/strings/strings.hpp"
#include "data/files/file_list.hpp"
#include "run/setup/rank_agreement.hpp"
#include "run/setup/run_config.hpp"
#include "run/setup/run_data.hpp"
#include "run/setup/run_memory.hpp"
#include "run/setup/run_model.hpp"
#include "run/setup/saved_run.hpp"
#include "run/summaries/run_folders.hpp"
#include "run/training/plan.hpp"
#include "run/training/settle.hpp"
#include "run/warm_start/warm_start.hpp"
#include "run/warm_start/word_vectors.hpp"
#include "run/yaml/config_writer.hpp"
#include "train/checkpoints/checkpoint.hpp"
#include "train/linear/train_linear.hpp"
#include "train/loop/run_length.hpp"
#include "train/loop/trainer.hpp"
#include "train/rank_steps/rank_step.hpp"
#include "train/records/profile_table.hpp"

namespace capstan {
namespace {

/// This process, its threads, instruction set and BLAS.
std::string machine_line() {
  const BlasInfo blas = blas_info();
  return fmt::format("machine: {} threads, SIMD {}, {} ({} kernels, {} threading), float products by {}", threads(),
                     kernel_level(), blas.version, blas.core, blas.threading, blas.float_products);
}

/// That the CPU supports faster kernels than those that BLAS uses; empty where it does not.
std::string blas_warning() {
  const std::string better = better_blas_core();
  if (better.empty()) return "";
  return fmt::format(
      "OpenBLAS uses its {} kernels although this CPU supports {}, which may be several times faster; if "
      "OPENBLAS_CORETYPE is set, unset it",
      blas_info().core, better);
}

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
  used.monitor_at_least = config.train.monitor_at_least;
  used.costs = config.train.costs;
  used.progress = config.train.progress;
  used.memory = config.train.memory;
  used.kernels = config.train.kernels;  // bits are portable with either value, so that a user may ask for it
  std::vector<std::string> keys;
  for (const ConfigDifference& key : diff_configs(config, without)) keys.push_back(key.path);
  return keys;
}

/// Warnings of machine, data and keys, without that of unequal classes where the configuration shows that it was
/// heeded.
std::vector<std::string> first_warnings(const RunConfig& config, const DataSource& data) {
  const ClassWeights* const weights = facts_of(config.model).class_weights;
  const bool heeded = (weights != nullptr && !std::holds_alternative<EqualClasses>(*weights)) ||
                      metric_of(config.train.monitor).of != Metric::Of::all;
  std::vector<std::string> lines;
  if (const std::string warning = blas_warning(); !warning.empty()) lines.push_back(warning);
  for (const DataWarning& warning : data.warnings())
    if (!heeded || warning.check != "balance") lines.push_back("data: " + warning.message);
  if (facts_of(config.model).is_solved)
    if (const std::vector<std::string> keys = keys_of_steps(config); !keys.empty())
      lines.push_back(fmt::format("{}: without effect on a {}, which is not trained in steps; remove {}",
                                  join_first(keys), type_of(config.model), keys.size() == 1 ? "it" : "them"));
  return lines;
}

/// What the log says of machine, data and model before the first step.
std::vector<std::string> first_lines(const RunConfig& config, const DataSource& data, const RunModel& model) {
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

/// A run before its folder is opened.
struct Training {
  const Settled& run;
  const TrainRunOptions& options;
  RunModel& model;
};

/// The remedy where a run cannot go on: a replay has no use for another run.
const char* remedy_of(const TrainRunOptions& options) { return options.end ? nothing_to_compare : begin_another; }

/// What a session needs to know of a run. The identity is what a checkpoint records and a resumed run must have.
Session::Options session_options(const Settled& run, const TrainRunOptions& options, int64_t steps) {
  const RunConfig& config = run.config;
  const DataSource& data = *run.data;
  Session::Options session{folder_of(config),
                           {{"model", to_yaml(config.model)},
                            {"data", data.identity()},
                            {"tokenizer", identity_of(data.tokenizer())},
                            {"classes", identity_of(data.classes())}},
                           static_cast<uint64_t>(config.seed)};
  if (const std::filesystem::path from = options.resume_from; !from.empty()) {
    if (std::filesystem::is_directory(from / "checkpoints"))
      throw Error(fmt::format("--resume-from: {} is the folder of a run: give that of a checkpoint; {}", from.string(),
                              complete_checkpoints(from / "checkpoints", Reading::all)));
    session.resume_from = from;
  }
  session.otherwise = remedy_of(options);
  session.quiet = options.quiet;
  session.total_steps = steps;
  session.validates = data.has(Split::valid);
  session.goal = decision_goal(config, data);
  const ModelFacts facts = facts_of(config.model);
  session.kind = facts.is_solved ? RunKind::solved : facts.classifies() ? RunKind::texts : RunKind::tokens;
  return session;
}

/// Throws Error where data differ from those of the run in nothing but their content: it names the files, which say
/// more than the fingerprints would. Other differences are for the session to report.
void require_same_content(const RunConfig& config, const TrainRunOptions& options, const std::string& saved,
                          const std::string& ours) {
  if (!has_other_content(saved, ours)) return;
  const std::string& from = options.resume_from;
  const std::filesystem::path folder = from.empty() ? folder_of(config) : run_folder_of(from);
  const std::vector<SourceFiles> saved_files = facts_of(load_run_config(folder).data).files,
                                 our_files = facts_of(config.data).files;
  std::string changes;
  for (size_t i = 0; i < std::min(saved_files.size(), our_files.size()); ++i)
    if (saved_files[i].paths != our_files[i].paths && our_files[i].key != std::string("test"))
      changes += fmt::format("data.{} was [{}], is now [{}], with another content; ", our_files[i].key,
                             join(saved_files[i].paths), join(our_files[i].paths));
  if (changes.empty()) changes = fmt::format("the content of the files has changed ({}); ", files_text(config.data));
  throw Error(fmt::format("{} holds a run with other data: {}continue with what it was started with{}", folder.string(),
                          changes, remedy_of(options)));
}

/// The session goes on from the folder's checkpoint, or begins. Afterwards the folder has all files but those that
/// training writes.
void begin(Session& session, const Training& training, const RunParts& parts) {
  const auto& [run, options, model] = training;
  const RunConfig& config = run.config;
  const DataSource& data = *run.data;
  for (const std::string& line : first_lines(config, data, model)) session.log().info(line);
  for (const std::string& line : run.choices) session.log().note(line);
  for (const std::string& line : run.warnings) session.log().warn(line);
  if (!options.quiet)
    for (const std::string& line : first_warnings(config, data)) session.log().warn(line);
  // The configuration that an earlier version saved lacks the keys that were added since: they get their defaults.
  const RenewIdentity renewed = [&](const std::string& name, const std::string& saved) {
    if (name == "model") return to_yaml(load_config_text<TaskConfig>(saved, "the model of the checkpoint", "model"));
    if (name != "data") return saved;
    const std::string ours = data.identity(), renewed_text = renewed_identity(config.data, saved, ours);
    require_same_content(config, training.options, renewed_text, ours);
    return renewed_text;
  };
  const bool resumed = session.resume(parts, renewed);
  if (!resumed && !config.train.init_vectors.empty())
    for (const std::string& line : fill_word_vectors(config, data.tokenizer(), parts, log_info))
      session.log().info(line);
  if (!resumed && !config.train.init_from.empty())
    session.start_from(warm_start(config, row_names(config, data.tokenizer(), data.classes()), parts));
  // Before anything is saved: a checkpoint goes on with this config.yaml.
  if (session.ranks().first()) write_run_files(session.options().folder, config, data.tokenizer(), data.classes());
  session.record();
}

/// Trains a model in steps.
TrainResult train_in_steps(const Training& training, Communicator& ranks) {
  const auto& [run, options, model] = training;
  const RunConfig& config = run.config;
  const BatchSource& batches = run.data->training();
  const std::unique_ptr<BatchSource> valid = run.data->has(Split::valid) ? run.data->validation() : nullptr;
  Session session(session_options(run, options, total_steps(batches, config.train)), config.train, ranks);
  const auto step = make_step(model.model(), model.params(), batches, config.train, ranks);
  begin(session, training, step->parts(session.state()));
  std::optional<StepProfiler> profiler;
  if (options.profile_steps > 0 && options.profile != nullptr && ranks.first())
    profiler.emplace(profile_warmup, options.profile_steps, [&](const Profile& profile) {
      const MachineRates machine{triad_rate(16 << 20), product_rate()};
      *training.options.profile << to_text(profile, machine) << std::flush;
    });
  TrainResult result =
      train(session, *step, {model.model(), batches, valid.get(), profiler ? &*profiler : nullptr, options.end});
  if (profiler) profiler->finish();
  // Leaves the best model. After a kill between the end and this, the same command does it.
  if (!result.interrupted && !options.end && !config.train.keep_optimizer) session.clean();
  return result;
}

/// Solves for a linear classifier.
TrainResult solve(const Training& training, Communicator& ranks) {
  const auto& [run, options, model] = training;
  Session session(session_options(run, options, 1), run.config.train, ranks);
  Optimizer none(session.config().optimizer, model.params());  // a checkpoint has the file of one
  const RunParts parts{model.params(), none, session.state()};
  begin(session, training, parts);
  std::optional<LabelledTexts> valid;
  if (run.data->has(Split::valid)) valid.emplace(run.data->texts(Split::valid));
  return train_linear(session, model.model(), *run.ngrams, valid ? &*valid : nullptr, parts);
}

}  // namespace

void check_data_files(const RunConfig& config, Problems& problems) {
  for (const SourceFiles& files : facts_of(config.data).files)
    for (size_t i = 0; i < files.paths.size(); ++i)
      if (const std::string missing = missing_file(files.paths[i]); !missing.empty())
        problems.add(fmt::format("data.{}.{}", files.key, i),
                     fmt::format("{}, or set data.{}=[FILE]{}", missing, files.key,
                                 files.key == std::string("train") ? "" : ", or [] for none"));
}

void check_trainable(const RunConfig& config, bool force, const Communicator& ranks, Problems& problems) {
  check_data_files(config, problems);
  check_init_from(config, problems);
  check_init_vectors(config, problems);
  add_machine_problems(config.train, "train.", problems);
  if (force || has_plan_to_make(config)) return;  // a plan chooses sizes that fit
  if (const auto memory =
          memory_problem(config, min_extent(config), memory_limit(), ranks.size(), ranks.sharing_memory()))
    problems.add(memory->key, memory->message);
}

void check_single_run(const RunConfig& config, bool force, const Communicator& ranks, Problems& problems) {
  const std::filesystem::path folder = folder_of(config);
  if (std::filesystem::exists(folder / search_file))
    problems.add("name",
                 fmt::format("{} is the folder of a search by capstan autotune: choose another name", folder.string()));
  check_trainable(config, force, ranks, problems);
}

TrainResult train_run(const RunConfig& given, const TrainRunOptions& options, Communicator& ranks) {
  const bool solved = facts_of(given.model).is_solved;
  if (solved && ranks.size() > 1)
    throw ConfigError(fmt::format("a {} is trained on the threads of one process: start it once, not as {} processes",
                                  type_of(given.model), ranks.size()));
  set_threads(threads_of_rank(ranks, given.threads));
  use_kernels(given.train);
  require_same_program(ranks, given, options.mixed_kernels);
  std::optional<Settled> settled;
  try {
    settled.emplace(settle(given, options, ranks));
  } catch (const Stopped&) {
    return {true, false, "interrupted before the first step", {}};
  }
  const Settled& run = *settled;
  const DataSource& data = *run.data;
  require_same_data(ranks, session_options(run, options, 0).identity);
  RunModel model(run.config, model_vocabulary(run.config, data.tokenizer()),
                 static_cast<int64_t>(data.classes().size()));
  model.prepare(data.class_counts(), data.training().examples_per_epoch());
  const MemoryFor purpose(solved ? "the weights of the linear classifier: lower model.buckets or train.memory"
                                 : "training");
  const Training training{run, options, model};
  return solved ? solve(training, ranks) : train_in_steps(training, ranks);
}

}  // namespace capstan
