// Attention and encoder layers of torch.nn, and TransformerModel of PyTorch's tutorials. Files have weights but neither
// heads nor activation, which are hints. tests/apps/test_import_modules.cpp and test_import_models.cpp compare outputs.
#include <cmath>

#include "run/imports/import_tensors.hpp"

namespace capstan {
namespace {

/// Takes the projections of a torch.nn.MultiheadAttention. `attention`: what precedes in_proj_weight in their names.
void take_attention(Import& import, const std::string& attention, const ImportHints& hints, ImportedModule& module) {
  if (import.has(attention + "bias_k"))
    throw Error(fmt::format(
        "{}: it was made with add_bias_kv: every query also sees a learned key, which attention does not have here",
        module.source));
  const int64_t width = module.width = import.take(attention + "in_proj_weight", {-1, -1}).shape[1];
  AttentionConfig config;
  import.take(attention + "in_proj_weight", {3 * width, width}, "to_qkv.weight", module.parameters);
  config.bias = config.key_bias = import.has(attention + "in_proj_bias");
  take_linear(import, attention + "out_proj", "to_out", width, width, config.bias, module.parameters);
  if (config.bias) {
    const std::vector<float> biases = import.take(attention + "in_proj_bias", {3 * width}).to_floats();
    auto from = biases.begin();
    for (const char* const name : {"query_bias", "key_bias", "value_bias"}) {
      module.parameters[name] = {{width}, {from, from + width}};
      from += width;
    }
  }
  if (hints.heads <= 0)
    throw Error(fmt::format("{}: the file does not contain the number of heads: give it with --heads", module.source));
  if (width % hints.heads != 0)
    throw Error(fmt::format("{}: {} heads do not divide the width {}", module.source, hints.heads, width));
  config.heads = hints.heads;
  module.layer.mixer = config;
}

/// Throws Error without hints.heads, which no file has.
ImportedModule import_attention(Import& import, const ImportHints& hints) {
  ImportedModule module;
  module.source = "MultiheadAttention";
  take_attention(import, "", hints, module);
  return module;
}

/// Throws Error without hints.heads or hints.activation, which no file has.
ImportedModule import_encoder_layer(Import& import, const ImportHints& hints) {
  ImportedModule module;
  module.source = "TransformerEncoderLayer";
  module.is_block = true;
  take_attention(import, "self_attn.", hints, module);
  const bool bias = import.has("linear1.bias");  // torch.nn gives all parts a bias, or none
  take_feed_forward(import, "linear1", "linear2", bias, module);
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>{"norm1.", "mixer_norm."}, {"norm2.", "feed_forward_norm."}}) {
    import.take(from + "weight", {module.width}, to + "gain", module.block);
    if (bias)
      import.take(from + "bias", {module.width}, to + "bias", module.block);
    else
      module.block[to + "bias"] = {{module.width}, std::vector<float>(static_cast<size_t>(module.width), 0)};
  }
  if (!hints.activation)
    throw Error(
        "TransformerEncoderLayer: the file does not contain the activation: give it with --activation relu or gelu");
  module.layer.feed_forward.type =
      *hints.activation == ImportActivation::relu ? FeedForwardKind::relu : FeedForwardKind::gelu;
  module.layer.norm.eps = hints.norm_eps.value_or(module.layer.norm.eps);
  module.layer.norm_placement = hints.norm_first ? NormPlacement::pre : NormPlacement::post;
  return module;
}

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

/// Takes the table of positions. The module multiplies the embedding by sqrt(width), as `sinusoidal` does. A table
/// other than that of sines and cosines becomes learned positions, for which the factor is multiplied into the
/// embedding.
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

/// TransformerModel of PyTorch's tutorials and examples.
ImportedModel import_transformer(Import& import, const ImportHints& hints) {
  const TransformerNames names = names_in(import).value();
  ImportedModel model;
  model.source = "TransformerModel";
  const auto& embedding = import.take(names.embedding + ".weight", {-1, -1}, "embed.weight", model.parameters);
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
  const bool bias = import.has(names.output + ".bias");
  take_linear(import, names.output, "output", model.vocabulary, stack.width, bias, model.parameters);
  finish_token_model(stack, hints.causal, bias, hints, model);
  return model;
}

}  // namespace

Importers attention_importers() {
  return {{{"MultiheadAttention (in_proj_weight, out_proj)",
            [](const Import& import) { return import.has("in_proj_weight"); }, import_attention},
           {"TransformerEncoderLayer (self_attn, linear1, linear2, norm1, norm2)",
            [](const Import& import) { return import.has("self_attn.in_proj_weight"); }, import_encoder_layer}},
          {{"TransformerModel (embedding, transformer_encoder, pos_encoder, linear)",
            [](const Import& import) { return names_in(import).has_value(); }, import_transformer}}};
}

}  // namespace capstan
