#include "run/imports/import_module.hpp"

#include "core/strings/strings.hpp"
#include "run/imports/importers.hpp"
#include "run/yaml/config.hpp"

namespace capstan {

void add_block(const ImportedModule& block, ModelConfig& config, ImportedTensors& tensors) {
  const std::string place = fmt::format("blocks.{}.", config.layers.size());
  for (const auto& [name, tensor] : block.parameters) tensors[place + "mixer." + name] = tensor;
  for (const auto& [name, tensor] : block.block) tensors[place + name] = tensor;
  config.layers.push_back(block.layer);
}

void finish_token_model(const ModelConfig& stack, bool causal, bool output_bias, const ImportHints& hints,
                        ImportedModel& model) {
  const auto set = [&](auto config) {
    static_cast<ModelConfig&>(config) = stack;
    config.tied_output = false;
    config.output_bias = output_bias;
    model.config = config;
  };
  if (causal) return set(LanguageModelConfig{});
  set(MaskedLanguageModelConfig{});
  if (!hints.mask_token)
    throw Error(fmt::format(
        "{}: as a bidirectional model it fills hidden tokens: give the id of the token that it reads there with "
        "--mask-token (or --causal if it is a causal language model)",
        model.source));
  if (*hints.mask_token < 0 || *hints.mask_token >= model.vocabulary)
    throw Error(fmt::format("{}: --mask-token {}: the vocabulary has the ids 0 to {}", model.source, *hints.mask_token,
                            model.vocabulary - 1));
  ImportedTensor& embedding = model.parameters.at("embed.weight");
  const auto row = embedding.values.begin() + *hints.mask_token * stack.width;
  const std::vector<float> mask(row, row + stack.width);
  embedding.values.insert(embedding.values.end(), mask.begin(), mask.end());
  ++embedding.shape[0];
  model.notes.push_back(
      fmt::format("the mask token is a copy of token {}, with an id after the vocabulary", *hints.mask_token));
}

namespace {

/// By the first importer of `kind` (modules, models) that recognises the file.
template <class Imported>
Imported import_by(std::vector<Importer<Imported>> Importers::*kind, const SafetensorsFile& file,
                   const std::string& prefix, const ImportHints& hints, const char* remedy) {
  Import import(file, prefix, hints.approximate);
  std::vector<std::string> names;
  // In the order in which a file is shown to them.
  for (const Importers& system :
       {aft_importers(), fastformer_importers(), gau_importers(), flash_importers(), attention_importers()})
    for (const Importer<Imported>& importer : system.*kind) {
      names.emplace_back(importer.names);
      if (!importer.recognises(import)) continue;
      Imported imported = importer.import(import, hints);
      import.check_nothing_left();
      imported.approximations = import.approximations();
      return imported;
    }
  throw Error(fmt::format("{}: none of {} was found{}{}", file.path(), join(names),
                          prefix.empty() ? "" : " after the prefix " + prefix, remedy));
}

}  // namespace

ImportedModule import_module(const SafetensorsFile& file, const std::string& prefix, const ImportHints& hints) {
  ImportedModule module =
      import_by(&Importers::modules, file, prefix, hints, "; set --prefix to what precedes these names in the file");
  // What train.init_from reads of it: values that no configuration may have are refused here.
  load_config_text<LayerConfig>(to_yaml(module.layer), file.path() + ": the layer");
  return module;
}

ImportedModel import_model(const SafetensorsFile& file, const std::string& prefix, const ImportHints& hints) {
  return import_by(&Importers::models, file, prefix, hints,
                   ": --run is for whole models, --into for their parts; set --prefix to what precedes these names in "
                   "the file");
}

}  // namespace capstan
