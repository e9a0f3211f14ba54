// Sizes come from a model that is made without memory (ParamMemory::none), the same code that makes the real one, so
// that no second formula can differ from it. tests/run/test_run_memory.cpp.
#include "run/setup/run_memory.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/sizes.hpp"
#include "core/machine/parallel.hpp"
#include "core/strings/quantities.hpp"
#include "core/strings/strings.hpp"
#include "run/setup/run_model.hpp"
#include "train/steps/lanes.hpp"

namespace capstan {
namespace {

/// Tokens that the forward pass has in memory at once.
double batch_tokens(const TrainConfig& train, const DataExtent& data) {
  const double epoch = static_cast<double>(data.examples) * data.example_tokens;
  const double batch = train.batch_tokens > 0 ? std::max(static_cast<double>(train.batch_tokens), data.example_tokens)
                                              : static_cast<double>(train.batch_size) * data.example_tokens;
  // At least one lane of a batch is in memory: threads take lanes one by one.
  const double lane = batch / static_cast<double>(train.lanes > 0 ? train.lanes : max_lanes);
  const double micro = train.micro_batch_tokens > 0
                           ? std::max(static_cast<double>(train.micro_batch_tokens), data.example_tokens)
                           : lane;
  // A batch is not always filled to its last token.
  return std::max(data.example_tokens, std::min({epoch, lane, micro}) - data.example_tokens);
}

LaneTree lanes_of(const TrainConfig& train, const DataExtent& data) {
  const auto length = static_cast<int64_t>(std::clamp(data.example_tokens, 1.0, 1e9));
  const int64_t wanted = train.batch_tokens > 0 ? train.batch_tokens / length : train.batch_size;
  const int64_t rows = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(data.examples, 1));
  checked_product("the tokens of a batch", {rows, length});
  return LaneTree(lane_count(rows, length, train.lanes));
}

/// Blocks of gradients that one thread holds while it adds up the lanes of a rank, besides that of the parameters.
int64_t lane_blocks(const LaneTree& tree, int64_t ranks) {
  if (tree.lanes() == 1) return 0;
  int64_t blocks = 1;
  for (int64_t lanes = tree.lanes_of(ranks - 1, ranks).size(); lanes > 1; lanes /= 2) ++blocks;
  return blocks;
}

/// Elements that the optimizer keeps for the parameters.
double state_elements(const TrainConfig& train, const ParamStore& params) {
  double elements = 0;
  std::visit(
      [&](const auto& optimizer) {
        for (const StateSpec& spec : optimizer.states())
          for (const Param& param : params.params())
            if (!param.frozen && spec.holds(param)) elements += static_cast<double>(param.var.size());
      },
      train.optimizer);
  return elements;
}

MemoryNeed countable_need(const RunConfig& config, const DataExtent& data, int64_t ranks) {
  const RunModel model(config, data.vocabulary, data.classes, ParamMemory::none);
  const LaneTree lanes = lanes_of(config.train, data);
  MemoryNeed need;
  need.taken = data.taken;
  need.parameters = static_cast<double>(model.params().flat_size()) * sizeof(real);
  need.gradients = static_cast<double>(1 + lane_blocks(lanes, ranks)) *
                   static_cast<double>(model.params().dense_size()) * sizeof(real);
  need.optimizer = state_elements(config.train, model.params()) * sizeof(real) / static_cast<double>(ranks);
  need.tokens = batch_tokens(config.train, data);
  const auto length = static_cast<int64_t>(std::max(data.example_tokens, 1.0));
  need.activations = need.tokens * model.kept_bytes(length);
  need.lanes = static_cast<double>(std::min<int64_t>(threads(), lanes.lanes()));
  return need;
}

}  // namespace

DataExtent min_extent(const RunConfig& config) {
  const SourceFacts facts = facts_of(config.data);
  DataExtent extent;
  extent.vocabulary += facts.added_tokens;
  if (!facts.has_labels && facts.longest > 0) extent.example_tokens = static_cast<double>(facts.longest);
  return extent;
}

DataExtent extent_of(const RunConfig& config, const DataSource& data) {
  DataExtent extent = min_extent(config);
  extent.vocabulary = model_vocabulary(config, data.tokenizer());
  extent.classes = static_cast<int64_t>(data.classes().size());
  extent.examples = data.training().examples_per_epoch();
  if (facts_of(config.model).is_solved) return extent;  // it is not trained in batches
  if (facts_of(config.data).has_labels && data.training().batches_per_epoch(0) > 0)
    extent.example_tokens = static_cast<double>(data.training().batch(0, 0).tokens.dim(1));
  return extent;
}

MemoryNeed memory_need(const RunConfig& config, const DataExtent& data, int64_t ranks) {
  try {
    return countable_need(config, data, ranks);
  } catch (const ConfigError&) {
    throw;
  } catch (const Error&) {  // a product of sizes overflows
    MemoryNeed need;
    need.parameters = std::numeric_limits<double>::infinity();
    return need;
  }
}

std::optional<MemoryProblem> memory_problem(const RunConfig& config, const DataExtent& data, const MemoryLimit& limit,
                                            int64_t ranks, int64_t neighbours, MemoryBound bound) {
  MemoryNeed need = memory_need(config, data, ranks);
  if (bound == MemoryBound::ample) {
    // lm.yaml, of widths 64 to 512, on 1 and 2 threads: 3.0 to 3.9 times what the lanes keep, besides what is counted.
    constexpr double kept = 4, beside = 24e6;
    need.activations *= kept * need.lanes;
    need.taken += beside;
  }
  const double available = static_cast<double>(limit.bytes) / static_cast<double>(neighbours);
  if (need.total() <= available) return std::nullopt;
  std::vector<std::string> parts;
  const auto part = [&](const char* name, double bytes) {
    if (bytes >= 0.01 * need.total()) parts.push_back(fmt::format("{} for {}", bytes_text(bytes), name));
  };
  part("the program and the data", need.taken);
  part("parameters", need.parameters);
  part("gradients", need.gradients);
  part("the optimizer", need.optimizer);
  part(fmt::format("what a batch of {:.0f} tokens keeps", need.tokens).c_str(), need.activations);
  const bool of_batch = need.activations > need.total() / 2;
  const std::string key = !of_batch                       ? "model"
                          : config.train.batch_tokens > 0 ? "train.batch_tokens"
                                                          : "train.batch_size";
  return MemoryProblem{
      key,
      fmt::format("training needs {} {} of memory ({}), but {} has {}: lower {}, or train nevertheless with --force",
                  bound == MemoryBound::least ? "at least" : "about", bytes_text(need.total()), join(parts),
                  neighbours > 1 ? fmt::format("each of {} ranks' share of {}", neighbours, limit.of) : limit.of,
                  bytes_text(available),
                  of_batch ? key + ", train.micro_batch_tokens or the length of texts"
                           : "the sizes of the model, of which capstan inspect shows the parts")};
}

std::string parameters_text(const ParamStore& params) {
  int64_t tables = 0;
  for (const Param& param : params.params())
    if (param.options.by_rows && !param.options.table) tables += param.var.size();
  return fmt::format("{} parameters{}", params.count() - tables,
                     tables > 0 ? fmt::format(" and {} in tables of n-grams", tables) : "");
}

}  // namespace capstan
