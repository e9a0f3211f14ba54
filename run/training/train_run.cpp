#include "run/training/train_run.hpp"

#include "core/base/error.hpp"
#include "core/base/out_of_memory.hpp"
#include "core/machine/kernel_levels.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/blas_info.hpp"
#include "core/products/machine_rates.hpp"
#include "data/files/file_list.hpp"
#include "run/setup/rank_agreement.hpp"
#include "run/setup/run_data.hpp"
#include "run/setup/run_linear.hpp"
#include "run/setup/run_memory.hpp"
#include "run/setup/run_model.hpp"
#include "run/setup/saved_config.hpp"
#include "run/training/plan.hpp"
#include "run/warm_start/warm_start.hpp"
#include "run/yaml/config.hpp"
#include "train/linear/fit_linear.hpp"
#include "train/loop/pace.hpp"
#include "train/loop/signals.hpp"
#include "train/loop/trainer.hpp"
#include "train/records/profile_table.hpp"
#include "train/records/step_profiler.hpp"
#include "train/runs/checkpoint.hpp"

namespace capstan {
namespace {

/// One line about this process, its threads, instruction set and BLAS, and a warning if the CPU supports faster kernels than
/// those that BLAS uses.
std::vector<std::string> machine_lines() {
  const BlasInfo blas = blas_info();
  std::vector<std::string> lines{
      fmt::format("machine: {} threads, SIMD {}, {} ({} kernels, {} threading), float products by {}", threads(),
                  kernel_level(), blas.version, blas.core, blas.threading, blas.float_products)};
  if (const std::string better = better_blas_core(); !better.empty())
    lines.push_back(
        fmt::format("warning: OpenBLAS uses its {} kernels although this CPU supports {}, which may be several "
                    "times faster; if OPENBLAS_CORETYPE is set, unset it",
                    blas.core, better));
  return lines;
}

void print_profile(const Profile& profile, std::ostream& out) {
  ProductRate product;
  product.measure();  // warm-up: the first product touches the memory
  const MachineRates machine{triad_rate(16 << 20), product.measure()};
  out << to_text(profile, machine) << std::flush;
}

/// `config` says whether a warning has been heeded.
std::vector<std::string> warnings(const RunConfig& config, const DataSource& data) {
  const auto* const classifier = std::get_if<TextClassifierConfig>(&config.model);
  const bool weighted = classifier != nullptr && !std::holds_alternative<EqualClasses>(classifier->class_weights);
  std::vector<std::string> lines;
  for (const DataWarning& warning : data.warnings())
    if (!weighted || warning.check != "balance") lines.push_back("data: " + warning.message);
  return lines;
}

std::vector<std::string> preamble(const RunConfig& config, const DataSource& data, const RunModel& model) {
  std::vector<std::string> lines = machine_lines();
  for (const std::string& line : data.description()) lines.push_back(line);
  const SourceFacts facts = facts_of(config.data);
  const bool fixed_length = !facts.has_labels && facts.longest > 0;
  const ModelSummary summary = model.summary(fixed_length ? facts.longest : model.position_limit().value_or(512));
  lines.push_back("model:\n" + to_text(summary));
  return lines;
}

std::optional<MemoryProblem> memory_problem(const RunConfig& config, const DataExtent& data,
                                            const Communicator& ranks) {
  return memory_problem(config, data, memory_limit(), ranks.size(), ranks.sharing_memory());
}

/// The configuration with what train.minutes leaves open: as this run was begun, or chosen now. `since`: when the command
/// began. The lines of the report are added to `lines`.
RunConfig planned(const RunConfig& config, const DataSource& data, const TrainRunOptions& options, Communicator& ranks,
                  const Stopwatch& since, std::vector<std::string>& lines) {
  const std::filesystem::path saved = std::filesystem::path(config.folder) / config.name / "config.yaml";
  RunConfig known =
      std::filesystem::exists(saved) ? with_plan_of(load_run_config(saved.parent_path()), config) : config;
  if (!has_plan_to_make(known)) {
    known.train.valid_every = config.train.valid_every;
    return with_whole_epochs(known, data);
  }
  if (ranks.size() > 1)
    throw ConfigError(
        "train.minutes: one process plans a run; with several, give train.steps and the sizes of the model");
  const Fits fits = [&](const RunConfig& sized) {
    return options.force || !memory_problem(sized, extent_of(sized, data), ranks);
  };
  const auto pilot = [&](const RunConfig& sized) { return time_pilot(sized, data); };
  RunPlan made = plan(known, data, 60 * known.train.minutes - since.seconds(), pilot, fits);
  lines = std::move(made.report);
  return made.config;
}

}  // namespace

void check_data_files(const RunConfig& config, Problems& problems) {
  for (const SourceFiles& files : facts_of(config.data).files)
    for (size_t i = 0; i < files.paths.size(); ++i)
      if (const std::string missing = missing_file(files.paths[i]); !missing.empty())
        problems.add(fmt::format("data.{}.{}", files.key, i), missing);
}

void check_forced(const RunConfig& config, Problems& problems) {
  check_data_files(config, problems);
  check_init_from(config, problems);
  const std::string obstacle = precision_obstacle(config.train);
  if (!obstacle.empty()) problems.add("train.precision", obstacle);
}

void check_trainable(const RunConfig& config, Problems& problems) {
  check_trainable_on(Communicator(), config, problems);
}

void check_trainable_on(const Communicator& ranks, const RunConfig& config, Problems& problems) {
  check_forced(config, problems);
  if (has_plan_to_make(config)) return;  // the plan sees to the memory
  if (const auto memory = memory_problem(config, least_extent(config), ranks))
    problems.add(memory->key, memory->message);
}

TrainResult train_run(const RunConfig& given, const TrainRunOptions& options, Communicator& ranks) {
  const Stopwatch since;
  RunConfig config = given;
  if (is_linear(config) && ranks.size() > 1)
    throw ConfigError("model.linear: such a classifier is solved for by one process; start one rank");
  set_threads(threads_of_rank(ranks, config.threads));
  require_same_program(ranks, config, options.mixed_kernels);
  const std::filesystem::path folder = std::filesystem::path(config.folder) / config.name;
  const std::unique_ptr<DataSource> source = open_data_in_turn(ranks, config);
  const DataSource& data = *source;
  std::vector<std::string> plan_report;
  if (has_plan_to_make(config)) {
    reserve_product_memory();
    config = planned(config, data, options, ranks, since, plan_report);
  }
  std::optional<NgramRows> ngrams;
  if (is_linear(config)) ngrams.emplace(read_ngrams(config, data));  // its number of buckets may be another run's
  if (!options.force)
    if (const auto memory = memory_problem(config, extent_of(config, data), ranks))
      throw ConfigError(memory->key + ": " + memory->message);
  reserve_product_memory();
  RunModel model(config, model_vocabulary(config, data.tokenizer()), static_cast<int64_t>(data.classes().size()));
  model.prepare(data.tokenizer(), data.class_counts(), data.training().examples_per_epoch());

  const std::unique_ptr<BatchSource> valid = data.has(Split::valid) ? data.evaluation(Split::valid) : nullptr;
  TrainInputs inputs{model.task(),
                     model.params(),
                     data.training(),
                     valid.get(),
                     folder,
                     {{"model", to_yaml(config.model)},
                      {"data", data.identity()},
                      {"tokenizer", identity_of(data.tokenizer())},
                      {"classes", identity_of(data.classes())}},
                     static_cast<uint64_t>(config.seed)};
  if (!options.resume_from.empty()) inputs.resume_from = options.resume_from;
  require_same_data(ranks, inputs.identity);
  inputs.ranks = &ranks;
  inputs.preamble = preamble(config, data, model);
  inputs.preamble.insert(inputs.preamble.end(), plan_report.begin(), plan_report.end());
  if (!options.quiet) inputs.warnings = warnings(config, data);
  // What an earlier version saved lacks the keys that were added since: they have their defaults.
  inputs.renewed = [&](const std::string& name, const std::string& saved) {
    if (name == "model") return to_yaml(saved_model(saved));
    return name == "data" ? renewed_identity(config.data, saved, data.identity()) : saved;
  };
  if (!config.train.init_from.empty())
    inputs.warm_start = [&](const RunParts& parts) {
      return warm_start(config, row_names(config, data.tokenizer(), data.classes()), parts);
    };
  if (ngrams)
    inputs.solve = [&]() -> std::optional<Solved> {
      const auto stop = [] { return StopSignals::received() != 0; };
      auto fit = fit_linear(*ngrams, model.params(), static_cast<uint64_t>(config.seed), stop);
      if (!fit) return std::nullopt;
      return Solved{ngrams->tokens(), fit->held_out, std::move(fit->report)};
    };
  inputs.on_ready = [&] { write_run_files(folder, config, data.tokenizer(), data.classes()); };
  const bool profiled = options.profile_steps > 0 && options.profile != nullptr && ranks.first();
  StepProfiler profiler(profile_warmup, options.profile_steps,
                        [&](const Profile& profile) { print_profile(profile, *options.profile); });
  if (profiled) inputs.profiler = &profiler;
  const MemoryFor purpose("training");
  TrainConfig shown = config.train;
  if (options.quiet) shown.progress = ProgressMode::none;
  TrainResult result = train(inputs, shown);
  if (profiled) profiler.finish();
  return result;
}

bool is_finished(const RunConfig& config) {
  const std::filesystem::path folder = std::filesystem::path(config.folder) / config.name;
  try {
    const auto saved = load_run_config(folder);
    if (!diff_configs(saved, with_choices_of(saved, with_plan_of(saved, config))).empty()) return false;
    const auto last = Checkpoints(folder / "checkpoints").last();
    if (!last) return false;
    const RunState state = read_state(*last);
    return reached_limit(config.train, state, state.seconds) && state.validated_step == state.step;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace capstan
