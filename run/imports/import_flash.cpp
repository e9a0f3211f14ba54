#include <cmath>

#include "run/imports/import_gated.hpp"
#include "run/imports/import_tensors.hpp"

namespace capstan {
namespace {

/// rotary_pos_emb.freqs: the angle per position of each pair of neighbouring features.
void take_rotary(Import& import, GatedUnitConfig& config) {
  config.rotary.enabled = import.has("rotary_pos_emb.freqs");
  if (!config.rotary.enabled) return;
  const FileTensor& tensor = import.take("rotary_pos_emb.freqs", {-1});
  const std::vector<double> found = tensor.to_doubles();
  const auto pairs = static_cast<double>(found.size());
  config.rotary.dims = 2 * static_cast<int64_t>(found.size());
  config.rotary.pairs = RotaryPairs::interleaved;
  if (config.rotary.dims == 0 || config.rotary.dims > config.key_dim)
    throw Error(fmt::format("{} rotates {} of {} features", tensor.name, config.rotary.dims, config.key_dim));
  if (found.size() > 1) config.rotary.base = std::round(std::pow(found[1], -pairs));
  if (!(config.rotary.base >= 2 && config.rotary.base <= 1e9)) config.rotary.base = RotaryConfig{}.base;
  const double largest =
      largest_difference(found, [&](double pair) { return std::pow(config.rotary.base, -pair / pairs); });
  if (largest > 1e-6)
    import.approximate(
        fmt::format("the frequencies in {} are not those of rotary positions with base {}, which are used instead: "
                    "angles differ by up to {:.2g} radians for each position between query and key",
                    tensor.name, config.rotary.base, largest));
}

ImportedModule import_flash(Import& import, const ImportHints& hints) {
  ImportedModule module;
  module.source = "FLASH";
  FlashConfig config;
  take_projections(import, module, config);
  // The port's order: local_q, global_q, local_k, global_k.
  take_views(import, "qk_offset_scale.", {0, 2, 1, 3}, config.key_dim, module);
  take_position_buckets(import, std::sqrt(static_cast<double>(config.key_dim)), module, config);
  take_rotary(import, config);
  if (!config.rotary.enabled)
    module.notes.push_back(
        "the file has no rotary_pos_emb.freqs: the module was taken as made without rotary positions");
  take_norm(import, module);
  if (hints.chunk <= 0) throw Error("FLASH: the file does not contain the size of its groups: give it with --chunk");
  config.kernel = hints.laplace ? AttentionKernel::laplace : AttentionKernel::squared_relu;
  config.logits = LogitForm::length;
  config.normaliser = Normaliser::chunk;
  config.chunk = hints.chunk;
  config.shift_tokens = hints.shift_tokens;
  module.layer.mixer = config;
  return module;
}

/// FLASHTransformer.
ImportedModel import_flash_model(Import& import, const ImportHints& hints) {
  ImportedModel model;
  model.source = "FLASHTransformer";
  const auto& embedding = import.take("token_emb.weight", {-1, -1}, "embed.weight", model.parameters);
  ModelConfig stack;
  model.vocabulary = embedding.shape[0];
  const int64_t width = stack.width = embedding.shape[1];
  stack.positions = Positions::scaled_sinusoidal;
  import.take("abs_pos_emb.scale", {1}, "positions.scale", model.parameters);
  const double largest =
      largest_difference(import.take("abs_pos_emb.inv_freq", {width / 2}).to_doubles(),
                         [&](double pair) { return std::pow(10000.0, -2 * pair / static_cast<double>(width)); });
  if (largest > 1e-6)
    import.approximate(
        fmt::format("the frequencies of the position vectors are not those of base 10000, which is used instead: the "
                    "angles at position p differ by up to {:.2g} p radians",
                    largest));
  for (int64_t layer = 0; layer < import.count("layers", "qk_offset_scale.gamma"); ++layer) {
    Import of_layer = import.below(fmt::format("layers.{}.", layer));
    of_layer.take("rotary_pos_emb.freqs", {-1});  // which a module alone may be made without
    add_block(import_flash(of_layer, hints), stack, model.parameters);
  }
  take_layer_norm(import, "to_logits.0", "final_norm", width, model.parameters);
  stack.final_norm.eps = hints.norm_eps.value_or(stack.final_norm.eps);
  take_linear(import, "to_logits.1", "output", model.vocabulary, width, /*bias=*/true, model.parameters);
  finish_token_model(stack, hints.causal, /*output_bias=*/true, hints, model);
  return model;
}

}  // namespace

Importers flash_importers() {
  return {{{"FLASH (to_hidden, to_qk, qk_offset_scale)",
            [](const Import& import) { return import.has("qk_offset_scale.gamma"); }, import_flash}},
          {{"FLASHTransformer (token_emb, abs_pos_emb, layers, to_logits)",
            [](const Import& import) {
              return import.has("token_emb.weight") && import.has("layers.0.qk_offset_scale.gamma");
            },
            import_flash_model}}};
}

}  // namespace capstan
