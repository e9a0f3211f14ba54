// capstan inspect: sizes, costs and tensors of a model, of a run or of a configuration, and what the machine can do.
// tests/cli/runs/test_commands.cpp, test_ranks.cpp.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <xtensor-blas/xlinalg.hpp>
#include <xtensor/xadapt.hpp>

#include "apps/command_line/command_parser.hpp"
#include "apps/command_line/options.hpp"
#include "apps/commands/commands.hpp"
#include "core/base/error.hpp"
#include "core/io/safetensors.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/blas_info.hpp"
#include "run/setup/file_safety.hpp"
#include "run/setup/machine_report.hpp"
#include "run/setup/run_memory.hpp"
#include "run/setup/run_model.hpp"
#include "run/yaml/config.hpp"
#include "train/checkpoints/checkpoint.hpp"
#include "train/rank_steps/rank_cost.hpp"
#include "train/steps/lanes.hpp"

namespace capstan {
namespace {

struct InspectOptions {
  std::vector<std::string> what;                         // a run, a file of tensors, or configurations
  std::vector<std::string> overrides;                    // --set KEY=VALUE, for configurations
  int64_t length = 0, vocabulary = 256, classes = 10;    // length: tokens of a text; 0: the longest that is allowed
  bool tensors = false, trust = false, machine = false;  // trust: follow links that lead out of the run's folder
  int64_t ranks = 0;                                     // processes to predict a step for; 0: none
  double bandwidth = 1, latency = 50, speed = 0;         // Gbit/s; microseconds; tokens/s, 0: estimated
};

/// Prints a line for each tensor of a file: name, type, shape, root mean square and range of its elements. Rows that
/// the file leaves out count as zeros.
void print_tensors(const std::string& path) {
  const SafetensorsFile file(path);
  const OneThreadProducts one_thread;  // the norms are OpenBLAS's, of the same bits on any number of threads
  std::cout << path << '\n';
  for (const FileTensor& tensor : file.tensors()) {
    std::vector<double> stored = tensor.without_zeros().to_doubles();  // only the rows that the file has
    const bool all_stored = !stored.empty() && static_cast<int64_t>(stored.size()) == tensor.size;
    if (!all_stored) stored.push_back(0);
    const auto values = xt::adapt(stored);
    const double rms = xt::linalg::norm(values) / std::sqrt(std::max(1.0, static_cast<double>(tensor.size)));
    std::cout << fmt::format("{:<48} {:<5} {:<18} rms {:<10.4g} [{:.4g}, {:.4g}]\n", tensor.name,
                             to_string(tensor.dtype), to_string(Shape(tensor.shape)), rms, xt::amin(values)(),
                             xt::amax(values)());
  }
  for (const auto& [key, value] : file.metadata()) std::cout << fmt::format("metadata {}: {}\n", key, value);
}

bool is_config(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension();
  return extension == ".yaml" || extension == ".yml";
}

/// Prints sizes and costs for texts of `length` tokens; 0: as many as the model has positions, or 512 without a limit.
void print_model(const RunModel& model, int64_t length) {
  const ModelSummary summary = model.summary(length > 0 ? length : model.position_limit().value_or(512));
  std::cout << to_text(summary);
  if (summary.text.empty()) std::cout << parameters_text(model.params()) << '\n';
}

/// The share of a connection's rate that Open MPI reaches over TCP in both directions, which is less where several
/// ranks send to one (docs/scaling.md).
double network_share(int ranks) { return ranks == 2 ? 0.8 : 0.7; }

/// Tokens per second of one rank on one thread: a step reaches about half the rate of matrix products.
double estimated_speed(const ModelSummary& summary) {
  constexpr double share = 0.5;
  set_threads(1);
  return share * product_rate() / summary.training_flops();
}

/// Prints what a step would take on several ranks, from a model of costs (train/rank_steps/rank_cost.hpp): nothing is
/// trained or sent.
void print_ranks(const InspectOptions& options, const RunConfig& config, const RunModel& model, int64_t length) {
  const TrainConfig& train = config.train;
  const int64_t rows = train.batch_tokens > 0 ? std::max<int64_t>(1, train.batch_tokens / length) : train.batch_size;
  RankPlan plan;
  plan.ranks = static_cast<int>(options.ranks);
  plan.lanes = lane_count(rows, length, train.lanes);
  plan.numbers = model.params().dense_size();
  plan.batches = train.accumulate;
  plan.bytes_per_second = network_share(plan.ranks) * options.bandwidth * 1e9 / 8;
  plan.latency = options.latency * 1e-6;
  const double speed = options.speed > 0 ? options.speed : estimated_speed(model.summary(length));
  const auto tokens = static_cast<double>(rows * length);
  plan.lane_seconds = tokens / static_cast<double>(plan.lanes) / speed;
  const RankCost cost = predict_cost(plan);
  RankPlan alone = plan;
  alone.ranks = 1;
  const double seconds_alone = predict_cost(alone).step();
  std::cout << fmt::format(
      "\n{} ranks, {:g} Gbit/s, latency {:g} us; a batch of {:.0f} tokens in {} lanes, {:.0f} tokens/s per rank{}\n",
      plan.ranks, options.bandwidth, options.latency, tokens, plan.lanes, speed,
      options.speed > 0 ? "" : " (estimated from the products of this machine; --speed)");
  if (plan.ranks > plan.lanes)
    std::cout << fmt::format("{} of {} ranks have a lane: set train.lanes to {} or a multiple of it\n", plan.lanes,
                             plan.ranks, plan.ranks);
  const auto line = [](const char* name, double seconds, const std::string& more) {
    std::cout << fmt::format("{:<22}{:>10.2f} ms  {}\n", name, 1e3 * seconds, more);
  };
  line("lanes", cost.compute, fmt::format("{} of {}, one after the other", cost.lanes, plan.lanes));
  line("gradients", cost.exchange,
       fmt::format("{} sent, {} node{} of the tree", bytes_text(cost.gradient_bytes), cost.nodes,
                   cost.nodes == 1 ? "" : "s"));
  line("weights", cost.gather, fmt::format("{} sent", bytes_text(cost.weight_bytes)));
  line("short messages", cost.rounds, "");
  line("step", cost.step(),
       fmt::format("{:.2f} times as fast as one rank, {:.0f} % of {}", seconds_alone / cost.step(),
                   100 * seconds_alone / cost.step() / plan.ranks, plan.ranks));
  DataExtent extent = min_extent(config);
  extent.vocabulary = options.vocabulary;
  extent.classes = options.classes;
  extent.examples = rows;
  extent.example_tokens = static_cast<double>(length);
  const MemoryNeed need = memory_need(config, extent, plan.ranks);
  std::cout << fmt::format("memory per rank, at least: {} ({} parameters, {} gradients, {} optimizer)\n",
                           bytes_text(need.parameters + need.gradients + need.optimizer), bytes_text(need.parameters),
                           bytes_text(need.gradients), bytes_text(need.optimizer));
}

/// What is given decides: configurations (.yaml) describe a model without weights, a .safetensors file has tensors
/// alone, anything else is a run.
int inspect(const InspectOptions& options) {
  if (options.machine) {
    if (!options.what.empty()) throw ConfigError("--machine measures this machine, without a run or a file");
    reserve_product_memory();
    std::cout << machine_report();
    return exit_done;
  }
  if (options.what.empty()) throw ConfigError("RUN|FILE ... is required, or --machine");
  if (std::all_of(options.what.begin(), options.what.end(), is_config)) {
    const RunConfig config = load_config<RunConfig>(options.what, options.overrides);
    const RunModel model(config, options.vocabulary, options.classes, ParamMemory::none);
    int64_t length = options.length;
    if (options.ranks > 0 && length == 0) length = facts_of(config.data).longest;
    print_model(model, length);
    if (options.ranks > 0)
      print_ranks(options, config, model, length > 0 ? length : model.position_limit().value_or(512));
    return exit_done;
  }
  if (options.ranks > 0) throw ConfigError("--ranks: give configurations, such as the config.yaml of a run's folder");
  if (options.what.size() > 1)
    throw ConfigError("inspect takes one run, one file of tensors or several configurations");
  const std::filesystem::path what = options.what.front();
  if (what.extension() == ".safetensors") {
    print_tensors(what);
    return exit_done;
  }
  if (!options.trust) refuse_links_outside(run_folder_of(what));
  const SavedRun run = open_run(what);
  if (options.tensors) {
    print_tensors(run.weights);
    return exit_done;
  }
  std::cout << fmt::format("weights: {}\n", run.weights);
  const std::filesystem::path checkpoint = std::filesystem::path(run.weights).parent_path();
  if (std::filesystem::exists(checkpoint / state_name))
    for (const Ancestor& ancestor : read_state(checkpoint).ancestry)
      std::cout << fmt::format("started from: {}\n", to_text(ancestor));
  print_model(*run.model, options.length);
  return exit_done;
}

}  // namespace

void add_inspect_command(CommandParser& cli) {
  const auto [command, options] = cli.add_subcommand<InspectOptions>(
      "inspect", "Show parameters, cost and state of a model, or the tensors of a file", inspect);
  command
      .add_option(
          "what", options.what,
          "a run folder, configurations (.yaml; the last one that sets a key wins) or a file of tensors (.safetensors)",
          "RUN|FILE ...")
      ->replace([](const std::string& what) { return std::filesystem::exists(what) ? what : recipe_path(what); });
  command.add_option("-s,--set", options.overrides, "with configurations: set a key (repeatable)", "KEY=VALUE")
      ->repeats();
  command.add_number(
      "--length", options.length, length_from(0),
      "number of tokens per text for which costs are computed; 0 = the longest text that the model allows");
  command.add_number("--vocabulary", options.vocabulary, between(1, 1 << 24),
                     "with configurations: number of tokens in the vocabulary");
  command.add_number("--classes", options.classes, between(2, 1 << 24), "with configurations: number of classes");
  command.add_flag("--tensors", options.tensors,
                   "with a run: list its tensors instead, with their shapes and the magnitude of their elements");
  command.add_flag("--trust", options.trust, trust_help);
  command.add_flag("--machine", options.machine,
                   "without RUN: measure how fast this machine multiplies in float32 and bf16, and its memory");
  command
      .add_number("--ranks", options.ranks, between(1, 4096),
                  "with configurations: predict messages, time of a step and memory for so many processes", "COUNT")
      ->without_default();
  command.add_number("--bandwidth", options.bandwidth, between(1e-6, 1e6),
                     "for --ranks: of a machine's connection, in Gbit/s");
  command.add_number("--latency", options.latency, between(0, 1e9), "for --ranks: of a short message, in microseconds");
  command.add_number(
      "--speed", options.speed, between(0, 1e12),
      "for --ranks: tokens per second that one process trains by itself; 0 = estimated for one thread of "
      "this machine");
  command.footer(R"(For example:  capstan inspect configs/enwik8.yaml --length 4096
              capstan inspect configs/enwik8.yaml --ranks 16 --bandwidth 10 --latency 30
              capstan inspect runs/quickstart-lm --tensors
              capstan inspect --machine)");
}

}  // namespace capstan
