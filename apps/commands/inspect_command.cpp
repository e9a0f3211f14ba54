#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>

#include "apps/commands/command_parser.hpp"
#include "apps/commands/commands.hpp"
#include "apps/commands/options.hpp"
#include "apps/config/config.hpp"
#include "apps/runs/run_model.hpp"
#include "core/base/error.hpp"
#include "core/io/safetensors.hpp"
#include "train/runs/checkpoint.hpp"

namespace capstan {
namespace {

struct InspectOptions {
  std::vector<std::string> what;
  std::vector<std::string> overrides;
  int64_t length = 0, vocabulary = 256, classes = 10;
  bool tensors = false;
};

void print_tensors(const std::string& path) {
  const SafetensorsFile file(path);
  std::cout << path << '\n';
  for (const FileTensor& tensor : file.tensors()) {
    double low = 0, high = 0, square = 0;
    const std::vector<double> values = tensor.to_doubles();
    if (!values.empty()) low = high = values.front();
    for (const double value : values) {
      low = std::min(low, value);
      high = std::max(high, value);
      square += value * value;
    }
    const double rms = values.empty() ? 0 : std::sqrt(square / static_cast<double>(values.size()));
    std::cout << fmt::format("{:<48} {:<5} {:<18} rms {:<10.4g} [{:.4g}, {:.4g}]\n", tensor.name,
                             to_string(tensor.dtype), to_string(Shape(tensor.shape)), rms, low, high);
  }
  for (const auto& [key, value] : file.metadata()) std::cout << fmt::format("metadata {}: {}\n", key, value);
}

bool is_config(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension();
  return extension == ".yaml" || extension == ".yml";
}

void print_model(const RunModel& model, int64_t length) {
  std::cout << to_text(model.summary(length > 0 ? length : model.position_limit().value_or(512)));
}

int inspect(const InspectOptions& options) {
  if (std::all_of(options.what.begin(), options.what.end(), is_config)) {
    const RunConfig config = load_config<RunConfig>(options.what, options.overrides);
    print_model(RunModel(config, options.vocabulary, options.classes, ParamMemory::none), options.length);
    return exit_done;
  }
  if (options.what.size() > 1)
    throw ConfigError("inspect takes one run, one file of tensors or several configurations");
  const std::filesystem::path what = options.what.front();
  if (what.extension() == ".safetensors") {
    print_tensors(what);
    return exit_done;
  }
  const SavedRun run = open_run(what);
  if (options.tensors) {
    print_tensors(run.weights);
    return exit_done;
  }
  std::cout << fmt::format("weights: {}\n", run.weights);
  print_model(*run.model, options.length);
  return exit_done;
}

}  // namespace

void add_inspect_command(CommandParser& cli, const Choose& choose) {
  CommandParser* const command =
      cli.add_subcommand("inspect", "Show parameters, cost and state of a model, or the tensors of a file");
  const auto options = std::make_shared<InspectOptions>();
  command
      ->add_option(
          "what", options->what,
          "a run folder, configurations (.yaml; the last one that sets a key wins) or a file of tensors (.safetensors)")
      ->required()
      ->type_name("RUN|FILE ...");
  command->add_option("-s,--set", options->overrides, "with configurations: set a key (repeatable)")
      ->type_name("KEY=VALUE")
      ->expected(-1);
  command
      ->add_option("--length", options->length,
                   "number of tokens per text for which costs are computed; 0 = the longest text that the model allows")
      ->capture_default_str()
      ->check(number_check(length_from(0)));
  command->add_option("--vocabulary", options->vocabulary, "with configurations: number of tokens in the vocabulary")
      ->capture_default_str()
      ->check(number_check(between(1, 1 << 24)));
  command->add_option("--classes", options->classes, "with configurations: number of classes")
      ->capture_default_str()
      ->check(number_check(between(2, 1 << 24)));
  command->add_flag("--tensors", options->tensors,
                    "with a run: list its tensors instead, with their shapes and the magnitude of their elements");
  command->footer(
      "For example:  capstan inspect configs/enwik8.yaml --length 4096\n"
      "              capstan inspect runs/quickstart-lm --tensors");
  command->callback([options, choose] { choose([options] { return inspect(*options); }); });
}

}  // namespace capstan
