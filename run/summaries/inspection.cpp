// tests/cli/runs/test_commands.cpp.
#include "run/summaries/inspection.hpp"

#include <fmt/core.h>

#include "run/setup/run_memory.hpp"

namespace capstan {
namespace {

std::string model_text(const RunModel& model, int64_t length) {
  const ModelSummary summary = model.summary(length);
  return to_text(summary) + (summary.text.empty() ? parameters_text(model.params()) + "\n" : "");
}

}  // namespace

std::string inspection_of(const RunConfig& config, const InspectOptions& options) {
  const RunModel model(config, options.vocabulary, options.classes, ParamMemory::none);
  const bool forecasts = options.ranks.ranks > 0;
  int64_t length = options.length;
  if (length == 0 && forecasts) length = facts_of(config.data).longest;
  if (length == 0) length = model.position_limit().value_or(512);
  const std::string text = model_text(model, length);
  if (!forecasts) return text;
  DataExtent extent = min_extent(config);
  extent.vocabulary = options.vocabulary;
  extent.classes = options.classes;
  return text + rank_forecast(options.ranks, config, model, extent, length);
}

std::string inspection_of(const SavedRun& run, int64_t length) {
  std::string text = fmt::format("weights: {}\n", run.weights);
  if (run.state)
    for (const Ancestor& ancestor : run.state->ancestry) text += fmt::format("started from: {}\n", to_text(ancestor));
  return text + model_text(*run.model, length > 0 ? length : run.model->position_limit().value_or(512));
}

}  // namespace capstan
