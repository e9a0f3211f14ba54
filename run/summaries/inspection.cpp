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
  return model_text(model, options.length > 0 ? options.length : model.position_limit().value_or(512));
}

std::string inspection_of(const SavedRun& run, int64_t length) {
  std::string text = fmt::format("weights: {}\n", run.weights);
  if (run.state)
    for (const ParentCheckpoint& ancestor : run.state->ancestry)
      text += fmt::format("started from: {}\n", to_text(ancestor));
  return text + model_text(*run.model, length > 0 ? length : run.model->position_limit().value_or(512));
}

}  // namespace capstan
