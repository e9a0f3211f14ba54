#include <cmath>

#include "run/imports/import_flash.hpp"
#include "run/imports/model_parts.hpp"

namespace capstan {

ImportedModel import_flash_model(Import& import, const ImportHints& hints) {
  ImportedModel model;
  model.source = "FLASHTransformer";
  const auto& embedding = take_tensor(import, "token_emb.weight", "embed.weight", {-1, -1}, model.parameters);
  ModelConfig stack;
  model.vocabulary = embedding.shape[0];
  const int64_t width = stack.width = embedding.shape[1];
  stack.positions = Positions::scaled_sinusoidal;
  take_tensor(import, "abs_pos_emb.scale", "positions.scale", {1}, model.parameters);
  if (import.has("abs_pos_emb.inv_freq")) {
    const double largest =
        largest_difference(import.take("abs_pos_emb.inv_freq", {width / 2}).to_doubles(),
                           [&](double pair) { return std::pow(10000.0, -2 * pair / static_cast<double>(width)); });
    if (largest > 1e-6)
      import.approximate(
          fmt::format("the frequencies of the position vectors are not those of base 10000, which is used instead: the "
                      "angles at position p differ by up to {:.2g} p radians",
                      largest));
  }
  for (int64_t layer = 0; layer < import.count("layers", "qk_offset_scale.gamma"); ++layer) {
    Import of_layer = import.below(fmt::format("layers.{}.", layer));
    add_block(import_flash(of_layer, hints), stack, model.parameters);
  }
  take_layer_norm(import, "to_logits.0", "final_norm", width, model.parameters);
  stack.final_norm.eps = hints.norm_eps.value_or(stack.final_norm.eps);
  take_tensor(import, "to_logits.1.weight", "output.weight", {model.vocabulary, width}, model.parameters);
  const bool bias = import.has("to_logits.1.bias");
  if (bias) take_tensor(import, "to_logits.1.bias", "output.bias", {model.vocabulary}, model.parameters);
  finish_token_model(stack, hints.causal, bias, hints, model);
  return model;
}

}  // namespace capstan
