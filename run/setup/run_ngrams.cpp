// Reads n-grams, and the linear classifier that another one starts from.
// tests/cli/training/test_linear.cpp and test_warm_refusals.cpp.
#include "run/setup/run_ngrams.hpp"

#include <cmath>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/error.hpp"
#include "core/base/out_of_memory.hpp"
#include "core/base/sizes.hpp"
#include "core/base/stop.hpp"
#include "core/io/log.hpp"
#include "core/machine/memory_limit.hpp"
#include "run/setup/weights_origin.hpp"
#include "train/checkpoints/checkpoint.hpp"
#include "train/loop/signals.hpp"

namespace capstan {
namespace {

/// Throws unless n-grams have the same buckets in both.
void check_same_ngrams(const LinearClassifierConfig& theirs, const LinearClassifierConfig& ours,
                       const std::string& run) {
  const auto check_equal = [&](const char* key, const auto& base, const auto& here) {
    if (base != here)
      throw Error(fmt::format("train.init_from: model.{0} is {1} in {2}, and {3} here; set model.{0}={1}", key, base,
                              run, here));
  };
  if (ours.words) check_equal("words", orders_of(theirs).words, *ours.words);
  check_equal("characters", theirs.characters, ours.characters);
  check_equal("text_ends", theirs.text_ends, ours.text_ends);
  check_equal("unicode", theirs.unicode, ours.unicode);
  if (ours.buckets != 0) check_equal("buckets", theirs.buckets, ours.buckets);
}

std::vector<float> values_of(const WeightsOrigin& origin, const char* name, int64_t count) {
  const FileTensor* const tensor = origin.tensors->find(name);
  if (tensor == nullptr || tensor->size != count)
    throw Error(fmt::format("train.init_from: {} has no tensor {} of {} numbers; check its run with capstan verify",
                            origin.file, name, count));
  std::vector<float> values = tensor->to_floats();
  for (const float value : values)
    if (!std::isfinite(value))
      throw Error(fmt::format("train.init_from: {}: tensor {} has a value that is not finite", origin.file, name));
  return values;
}

/// The classifier of train.init_from, whose n-grams must have the buckets of this run. Throws Error otherwise.
std::shared_ptr<const BaseClassifier> read_base(const RunConfig& config) {
  const WeightsOrigin origin = open_weights(config.train.init_from);
  if (!origin.run)
    throw Error(
        fmt::format("train.init_from: {} is not in a run folder, which says what n-grams its weights are for; "
                    "give the folder of the run",
                    origin.file));
  const auto* const classifier = std::get_if<LinearClassifierConfig>(&origin.run->config.model);
  if (classifier == nullptr)
    throw Error(fmt::format("train.init_from: {} is a {}; a linear-classifier only starts from another one",
                            config.train.init_from, type_of(origin.run->config.model)));
  auto base = std::make_shared<BaseClassifier>();
  base->fingerprint = origin.ancestor().fingerprint;
  base->config = *classifier;
  check_same_ngrams(base->config, std::get<LinearClassifierConfig>(config.model), config.train.init_from);
  const int64_t buckets = base->config.buckets;
  const auto classes = static_cast<int64_t>(origin.run->classes.size());
  base->scale = values_of(origin, "linear.scale", buckets);
  base->weight = values_of(origin, "linear.weight", checked_product("linear.weight", {buckets, classes}));
  base->bias = values_of(origin, "linear.bias", classes);
  base->columns = classes;
  if (classes == 2 &&
      !facts_of(origin.run->config.data).multi_label()) {  // the first class has the second one's weights times -1
    for (size_t f = 0; f < base->scale.size(); ++f) base->weight[f] = base->weight[2 * f + 1];
    base->weight.resize(base->scale.size());
    base->bias.erase(base->bias.begin());
    base->columns = 1;
  }
  return base;
}

}  // namespace

NgramRows read_ngrams(const RunConfig& config, const DataSource& data) {
  const StopPoll stop = [] { return StopSignals::received() != 0; };
  const StopScope scope(&stop);
  const std::filesystem::path folder = folder_of(config);
  const auto last = Checkpoints(folder / "checkpoints").last();
  const bool is_solved = last && read_state(*last).step > 0;  // the run to start from is not needed, and may be gone
  const std::shared_ptr<const BaseClassifier> base =
      is_solved || config.train.init_from.empty() ? nullptr : read_base(config);
  LabelledTexts texts = data.texts(Split::train);
  Progress progress(config.train.progress != ProgressMode::none ? LogLine(log_info) : LogLine(), "reading n-grams",
                    static_cast<double>(texts.size()), in_texts);
  texts.report_to(progress);
  RowBudget budget;
  budget.kept = config.train.memory > 0 ? config.train.memory * 1'000'000 : static_cast<int64_t>(free_memory() / 2);
  const WorkPlace work{folder.string(), fmt::format("{}{}{}{}", to_yaml(config.model), data.identity(), config.seed,
                                                    base != nullptr ? base->fingerprint : "")};
  const MemoryFor purpose("the n-grams of the training texts: lower train.memory or model.buckets");
  return {
      texts, std::get<LinearClassifierConfig>(config.model), static_cast<int64_t>(data.classes().size()), base, budget,
      work};
}

}  // namespace capstan
