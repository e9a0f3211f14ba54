#include <algorithm>
#include <cmath>

#include "apps/imports/import_attention.hpp"
#include "apps/imports/model_parts.hpp"

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
  const bool table = import.has("pos_encoder.pe");
  if (!table) {
    stack.positions = Positions::sinusoidal;
    return;
  }
  const FileTensor* pe = nullptr;
  try {
    pe = &import.take("pos_encoder.pe", {-1, 1, width});
  } catch (const Error&) {
    pe = &import.take("pos_encoder.pe", {1, -1, width});
  }
  const std::vector<float> values = pe->to_floats();
  const int64_t count = pe->size / width;
  double largest = 0;
  for (int64_t p = 0; p < count; ++p)
    for (int64_t c = 0; c < width; ++c) {
      const double angle =
          static_cast<double>(p) * std::pow(10000.0, -static_cast<double>(c - c % 2) / static_cast<double>(width));
      const double wanted = c % 2 == 0 ? std::sin(angle) : std::cos(angle);
      largest = std::max(largest, std::abs(wanted - static_cast<double>(values[static_cast<size_t>(p * width + c)])));
    }
  stack.positions = Positions::sinusoidal;
  if (largest <= 1e-3) return;  // angles of large positions are rounded in float32
  stack.positions = Positions::learned;
  stack.max_length = count;
  tensors["positions.weight"] = {{count, width}, values};
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
