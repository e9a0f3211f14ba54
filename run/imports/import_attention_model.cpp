#include <cmath>

#include "run/imports/import_attention.hpp"
#include "run/imports/model_parts.hpp"

namespace capstan {
namespace {

/// Names that PyTorch's tutorials and examples have given to the parts of the same model.
struct TransformerNames {
  std::string embedding, encoder, output;
};

std::optional<TransformerNames> names_in(const Import& import) {
  for (const std::string encoder : {"transformer_encoder", "encoder"}) {
    if (!import.has(encoder + ".layers.0.self_attn.in_proj_weight")) continue;
    for (const std::string embedding : {"embedding", "input_emb", "encoder"})
      for (const std::string output : {"linear", "decoder"})
        if (import.has(embedding + ".weight") && import.has(output + ".weight"))
          return TransformerNames{embedding, encoder, output};
  }
  return std::nullopt;
}

/// The module multiplies the embedding by sqrt(width), as `sinusoidal` does. Another table than that of sines and cosines
/// is taken as learned positions, with the factor in the embedding.
void take_positions(Import& import, ModelConfig& stack, ImportedTensors& tensors) {
  const int64_t width = stack.width;
  stack.positions = Positions::sinusoidal;
  if (!import.has("pos_encoder.pe")) return;
  const std::vector<int64_t>& shape = import.shape("pos_encoder.pe");
  const bool batch_first = !shape.empty() && shape[0] == 1;  // else (positions, 1, width)
  const FileTensor& table = import.take(
      "pos_encoder.pe", batch_first ? std::vector<int64_t>{1, -1, width} : std::vector<int64_t>{-1, 1, width});
  const int64_t count = table.size / width;
  const double largest = largest_difference(table.to_doubles(), [&](double index) {
    const double position = std::floor(index / static_cast<double>(width)),
                 feature = index - position * static_cast<double>(width), pair = std::floor(feature / 2);
    const double angle = position * std::pow(10000.0, -2 * pair / static_cast<double>(width));
    return feature == 2 * pair ? std::sin(angle) : std::cos(angle);
  });
  if (largest <= 1e-3) return;  // angles of large positions are rounded in float32
  stack.positions = Positions::learned;
  stack.max_length = count;
  tensors["positions.weight"] = {{count, width}, table.to_floats()};
  for (float& value : tensors.at("embed.weight").values)
    value = static_cast<float>(value * std::sqrt(static_cast<double>(width)));
}

}  // namespace

bool is_transformer(const Import& import) { return names_in(import).has_value(); }

ImportedModel import_transformer(Import& import, const ImportHints& hints) {
  const TransformerNames names = names_in(import).value();
  ImportedModel model;
  model.source = "TransformerModel";
  const auto& embedding = take_tensor(import, names.embedding + ".weight", "embed.weight", {-1, -1}, model.parameters);
  ModelConfig stack;
  model.vocabulary = embedding.shape[0];
  stack.width = embedding.shape[1];
  take_positions(import, stack, model.parameters);
  const std::string layers = names.encoder + ".layers";
  for (int64_t layer = 0; layer < import.count(layers, "self_attn.in_proj_weight"); ++layer) {
    Import of_layer = import.below(fmt::format("{}.{}.", layers, layer));
    add_block(import_encoder_layer(of_layer, hints), stack, model.parameters);
  }
  stack.final_norm.eps = hints.norm_eps.value_or(stack.final_norm.eps);
  if (import.has(names.encoder + ".norm.weight")) {
    stack.norm_after_post = true;
    take_layer_norm(import, names.encoder + ".norm", "final_norm", stack.width, model.parameters);
  } else if (hints.norm_first) {
    stack.final_norm.type = NormKind::none;
  }
  take_tensor(import, names.output + ".weight", "output.weight", {model.vocabulary, stack.width}, model.parameters);
  const bool bias = import.has(names.output + ".bias");
  if (bias) take_tensor(import, names.output + ".bias", "output.bias", {model.vocabulary}, model.parameters);
  finish_token_model(stack, hints.causal, bias, hints, model);
  return model;
}

}  // namespace capstan
