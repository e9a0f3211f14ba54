#include "apps/runs/run_linear.hpp"

#include "apps/runs/run_model.hpp"
#include "core/base/out_of_memory.hpp"

namespace capstan {
namespace {

NgramLinearConfig* linear_of(RunConfig& config) {
  auto* const classifier = std::get_if<TextClassifierConfig>(&config.model);
  return classifier != nullptr && classifier->linear.used() ? &classifier->linear : nullptr;
}

}  // namespace

bool is_linear(const RunConfig& config) {
  const auto* const classifier = std::get_if<TextClassifierConfig>(&config.model);
  return classifier != nullptr && classifier->linear.used();
}

NgramRows read_ngrams(RunConfig& config, const DataSource& data) {
  const MemoryFor purpose("the n-grams of the training texts");
  NgramLinearConfig& linear = *linear_of(config);
  NgramRows rows(data.training(), to_text(data.tokenizer()), linear, static_cast<int64_t>(data.classes().size()));
  linear = rows.config();
  return rows;
}

RunConfig with_choices_of(const RunConfig& saved, RunConfig config) {
  RunConfig then = saved;
  NgramLinearConfig *const open = linear_of(config), *const chosen = linear_of(then);
  if (open == nullptr || chosen == nullptr) return config;
  if (open->min_texts == 0) open->min_texts = chosen->min_texts;
  if (open->buckets == 0) open->buckets = chosen->buckets;
  if (chosen->characters.empty() && !chosen->words.empty()) open->characters.clear();
  return config;
}

}  // namespace capstan
