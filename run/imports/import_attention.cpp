#include "run/imports/import_attention.hpp"
#include "run/imports/importers.hpp"

namespace capstan {
namespace {

using Tensor = ImportedModule::Tensor;

/// `attention`: what precedes in_proj_weight.
void take_attention(Import& import, const std::string& attention, const ImportHints& hints, ImportedModule& module) {
  if (import.has(attention + "bias_k"))
    throw Error(fmt::format(
        "{}: it was made with add_bias_kv: every query also sees a learned key, which attention does not have here",
        module.source));
  const int64_t width = module.width = import.take(attention + "in_proj_weight", {-1, -1}).shape[1];
  AttentionConfig config;
  module.parameters["to_qkv.weight"] = {{3 * width, width},
                                        import.take(attention + "in_proj_weight", {3 * width, width}).to_floats()};
  module.parameters["to_out.weight"] = {{width, width},
                                        import.take(attention + "out_proj.weight", {width, width}).to_floats()};
  config.bias = config.key_bias = import.has(attention + "in_proj_bias");
  if (config.bias) {
    const std::vector<float> biases = import.take(attention + "in_proj_bias", {3 * width}).to_floats();
    auto from = biases.begin();
    for (const char* const name : {"query_bias", "key_bias", "value_bias"}) {
      module.parameters[name] = {{width}, {from, from + width}};
      from += width;
    }
    module.parameters["to_out.bias"] = {{width}, import.take(attention + "out_proj.bias", {width}).to_floats()};
  }
  if (hints.heads <= 0)
    throw Error(fmt::format("{}: the file does not contain the number of heads: give it with --heads", module.source));
  if (width % hints.heads != 0)
    throw Error(fmt::format("{}: {} heads do not divide the width {}", module.source, hints.heads, width));
  config.heads = hints.heads;
  module.layer.mixer = config;
}

}  // namespace

ImportedModule import_attention(Import& import, const ImportHints& hints) {
  ImportedModule module;
  module.source = "MultiheadAttention";
  take_attention(import, "", hints, module);
  return module;
}

ImportedModule import_encoder_layer(Import& import, const ImportHints& hints) {
  ImportedModule module;
  module.source = "TransformerEncoderLayer";
  module.is_block = true;
  take_attention(import, "self_attn.", hints, module);
  const int64_t width = module.width, hidden = import.take("linear1.weight", {-1, width}).shape[0];
  module.layer.feed_forward.bias = import.has("linear1.bias");
  const auto take = [&](const std::string& from, const std::string& to, const std::vector<int64_t>& shape) {
    module.block[to] = {shape, import.take(from, shape).to_floats()};
  };
  take("linear1.weight", "feed_forward.up.weight", {hidden, width});
  take("linear2.weight", "feed_forward.down.weight", {width, hidden});
  if (module.layer.feed_forward.bias) {
    take("linear1.bias", "feed_forward.up.bias", {hidden});
    take("linear2.bias", "feed_forward.down.bias", {width});
  }
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>{"norm1.", "mixer_norm."}, {"norm2.", "feed_forward_norm."}}) {
    take(from + "weight", to + "gain", {width});
    if (import.has(from + "bias"))
      take(from + "bias", to + "bias", {width});
    else
      module.block[to + "bias"] = {{width}, std::vector<float>(static_cast<size_t>(width), 0)};
  }
  if (!hints.activation)
    throw Error(
        "TransformerEncoderLayer: the file does not contain the activation: give it with --activation relu or gelu");
  module.layer.feed_forward.type =
      *hints.activation == ImportActivation::relu ? FeedForwardKind::relu : FeedForwardKind::gelu;
  module.layer.feed_forward.expansion = static_cast<double>(hidden) / static_cast<double>(width);
  module.layer.norm.eps = hints.norm_eps.value_or(module.layer.norm.eps);
  module.layer.norm_placement = hints.norm_first ? NormPlacement::pre : NormPlacement::post;
  return module;
}

Importers attention_importers() {
  return {
      {{"MultiheadAttention (in_proj_weight, out_proj)",
        [](const Import& import) { return import.has("in_proj_weight"); }, import_attention},
       {"TransformerEncoderLayer (self_attn, linear1, linear2, norm1, norm2)",
        [](const Import& import) { return import.has("self_attn.in_proj_weight"); }, import_encoder_layer}},
      {{"TransformerModel (embedding, transformer_encoder, pos_encoder, linear)", is_transformer, import_transformer}}};
}

}  // namespace capstan
