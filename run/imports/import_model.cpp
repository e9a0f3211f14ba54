#include "run/imports/import_model.hpp"

#include "run/imports/model_parts.hpp"

namespace capstan {

void add_block(const ImportedModule& block, ModelConfig& config, ImportedTensors& tensors) {
  const std::string place = fmt::format("blocks.{}.", config.layers.size());
  for (const auto& [name, tensor] : block.parameters) tensors[place + "mixer." + name] = tensor;
  for (const auto& [name, tensor] : block.block) tensors[place + name] = tensor;
  config.layers.push_back(block.layer);
}

void finish_token_model(const ModelConfig& stack, bool causal, bool output_bias, const ImportHints& hints,
                        ImportedModel& model) {
  if (causal) {
    LanguageModelConfig config;
    static_cast<ModelConfig&>(config) = stack;
    config.tied_output = false;
    config.output_bias = output_bias;
    model.config = config;
    return;
  }
  MaskedLanguageModelConfig config;
  static_cast<ModelConfig&>(config) = stack;
  config.tied_output = false;
  config.output_bias = output_bias;
  model.config = config;
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

ImportedModel import_model(const SafetensorsFile& file, const std::string& prefix, const ImportHints& hints) {
  Import import(file, prefix, hints.approximate);
  ImportedModel model;
  if (import.has("token_emb.weight") && import.has("layers.0.qk_offset_scale.gamma")) {
    model = import_flash_model(import, hints);
  } else if (import.has("fastformer_model.position_embeddings.weight")) {
    model = import_fastformer_model(import, hints);
  } else if (import.has("gau_alpha.embeddings.word_embeddings.weight")) {
    model = import_gau_alpha(import, hints);
  } else if (is_transformer(import)) {
    model = import_transformer(import, hints);
  } else {
    throw Error(fmt::format(
        "{}: none of FLASHTransformer (token_emb, abs_pos_emb, layers, to_logits), Fastformer's classifier "
        "(word_embedding, fastformer_model, dense_linear), GAU-alpha (gau_alpha, cls) and TransformerModel (embedding, "
        "transformer_encoder, pos_encoder, linear) was found{}: --run is for whole models, --into for their parts; set "
        "--prefix to what precedes these names in the file",
        file.path(), prefix.empty() ? "" : " after the prefix " + prefix));
  }
  import.check_nothing_left();
  model.approximations = import.approximations();
  return model;
}

}  // namespace capstan
