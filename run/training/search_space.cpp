// What a search in a given time tries, and what it refuses. tests/run/test_search_space.cpp.
#include "run/training/search_space.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/strings/strings.hpp"
#include "run/setup/run_data.hpp"
#include "run/training/sweep.hpp"
#include "run/training/train_run.hpp"

namespace capstan {
namespace {

const LabelledSourceConfig* labelled(const RunConfig& config) {
  return std::get_if<LabelledSourceConfig>(&config.data);
}

bool holds_out(const LabelledSourceConfig& data) {
  return !data.valid.empty() || data.valid_fraction > 0 || data.folds > 0;
}

}  // namespace

std::vector<std::string> default_search_space(const RunConfig& config) {
  const ModelFacts facts = facts_of(config.model);
  std::vector<std::string> space;
  const double rate = config.train.lr;
  if (!facts.is_solved)
    space.push_back(
        fmt::format("sweep.train.lr=[{:g}, {:g}, {:g}, {:g}, {:g}]", rate, rate / 2, rate * 2, rate / 4, rate * 4));
  for (const std::string& values : facts.searched) space.push_back("sweep.model." + values);
  return space;
}

RunConfig shortened(RunConfig config, int64_t divisor) {
  if (config.train.steps > 0) {
    config.train.steps = std::max<int64_t>(1, config.train.steps / divisor);
    config.train.schedule.warmup_steps /= divisor;
  } else if (auto* const data = std::get_if<LabelledSourceConfig>(&config.data)) {
    data->train_fraction /= static_cast<double>(divisor);
  }
  return config;
}

void check_tunable(const RunConfig& config, Problems& problems) {
  if (facts_of(config.model).is_solved && !config.train.init_from.empty())
    problems.add(
        "train.init_from",
        "a linear classifier has the n-grams of the one that it starts from, but autotune searches over n-grams: leave "
        "it out");
  if (config.train.steps == 0 && labelled(config) == nullptr)
    problems.add("train.steps", "autotune tries short runs first: set train.steps (instead of train.epochs)");
  if (const auto* const data = labelled(config);
      data != nullptr && !facts_of(config.model).is_solved && !holds_out(*data))
    problems.add("data.valid_fraction",
                 "autotune compares runs by their validation: give " + how_to_get_split(Split::valid, config.data));
}

std::string incomparable_key(const RunConfig& a, const RunConfig& b) {
  static const std::vector<std::string> keys{"seed",      "data.type",  "data.train",          "data.valid",
                                             "data.test", "data.split", "data.valid_fraction", "data.test_fraction",
                                             "data.fold", "data.folds", "train.monitor"};
  static const std::string tokenizer = "data.tokenizer";
  const auto within = [](const std::string& path, const std::string& key) {
    return path == key || starts_with(path, key + ".");
  };
  for (const ConfigDifference& difference : diff_configs(a, b)) {
    for (const std::string& key : keys)
      if (within(difference.path, key)) return key;
    // The loss of a language model is per token: other tokens, other losses.
    if (labelled(a) == nullptr && within(difference.path, tokenizer)) return tokenizer;
  }
  return "";
}

std::vector<RunConfig> candidates_of(const ConfigOptions& options, bool force) {
  const ConfigCheck check = [&](const RunConfig& config, Problems& problems) {
    check_trainable(config, force, Communicator(), problems);
    check_tunable(config, problems);
  };
  RunConfig given = load_without_sweep(options, check);
  std::optional<Sweep> sweep = find_sweep(options, check);
  if (!sweep) {
    ConfigOptions config = options;
    for (std::string& values : default_search_space(given)) config.overrides.push_back(std::move(values));
    sweep = load_sweep(config, check);
  }
  given.folder = sweep->folder.string();
  given.name = given_run;
  std::vector<RunConfig> candidates{given};
  for (const RunConfig& run : sweep->runs) {
    RunConfig renamed = run;
    renamed.name = given_run;
    if (const std::string key = incomparable_key(given, renamed); !key.empty())
      throw ConfigError(fmt::format("sweep.{}: runs that differ in it cannot be compared; use capstan sweep", key));
    if (!diff_configs(given, renamed).empty()) candidates.push_back(run);
  }
  return candidates;
}

}  // namespace capstan
