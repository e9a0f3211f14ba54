#include "apps/runs/run_config.hpp"

#include "core/base/error.hpp"

namespace capstan {
namespace {

bool is_language_model(const RunConfig& config) { return std::holds_alternative<LanguageModelConfig>(config.model); }

const ModelConfig& model_of(const RunConfig& config) {
  return std::visit([](const auto& model) -> const ModelConfig& { return model; }, config.model);
}

const char* type_of(const SourceConfig& data) {
  return std::visit([](const auto& source) { return std::decay_t<decltype(source)>::type_name; }, data);
}

/// The longest example the data may give, and the key that sets it; 0: any length.
std::pair<int64_t, const char*> longest_example(const SourceConfig& data) {
  if (const auto* text = std::get_if<TextSourceConfig>(&data)) return {text->sequence_length, "sequence_length"};
  if (const auto* labelled = std::get_if<LabelledSourceConfig>(&data)) return {labelled->max_length, "max_length"};
  if (const auto* recall = std::get_if<AssociativeRecallConfig>(&data)) return {recall->length, "length"};
  return {std::get<ListOpsConfig>(data).max_length - 1, "max_length"};
}

}  // namespace

void validate(const RunConfig& config, Problems& problems) {
  const bool tokens_only = std::holds_alternative<TextSourceConfig>(config.data) ||
                           std::holds_alternative<AssociativeRecallConfig>(config.data);
  if (tokens_only && !is_language_model(config))
    problems.add("data.type", fmt::format("{} has no labels: a text-classifier needs data of type labelled or listops",
                                          type_of(config.data)));
  if (!tokens_only && is_language_model(config))
    problems.add("data.type", "a language-model needs data of type text or associative-recall");
  if (const auto limit = position_limit(model_of(config))) {
    const auto [length, key] = longest_example(config.data);
    if (length == 0)
      problems.add(fmt::format("data.{}", key), fmt::format("must be limited: the model knows {} positions", *limit));
    if (length > *limit)
      problems.add(
          fmt::format("data.{}", key),
          fmt::format("{} tokens are more than the {} positions of the model (model.max_length)", length, *limit));
  }
  if (const auto* source = std::get_if<TextSourceConfig>(&config.data);
      source && source->overlap >= source->sequence_length)
    problems.add("data.overlap", fmt::format("must be below data.sequence_length ({})", source->sequence_length));
}

template ConfigNode to_node(const RunConfig&);
template ConfigNode to_node(const TaskConfig&);
template ConfigNode to_node(const MixerConfig&);
template void read_value(const ConfigNode&, const Spot&, const Constraint&, RunConfig&);
template std::vector<TableRow> config_rows(RunConfig);

}  // namespace capstan
