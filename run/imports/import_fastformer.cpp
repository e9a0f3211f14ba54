#include "run/imports/import_fastformer.hpp"
#include "run/imports/importers.hpp"

namespace capstan {
namespace {

/// One Linear layer, under its name in Capstan.
void take_linear(Import& import, const std::string& from, const std::string& to, int64_t out, int64_t in,
                 ImportedModule& module) {
  module.parameters[to + ".weight"] = {{out, in}, import.take(from + ".weight", {out, in}).to_floats()};
  module.parameters[to + ".bias"] = {{out}, import.take(from + ".bias", {out}).to_floats()};
}

void take_norm(Import& import, const std::string& from, const std::string& to, int64_t width, ImportedModule& module) {
  module.block[to + ".gain"] = {{width}, import.take(from + ".weight", {width}).to_floats()};
  module.block[to + ".bias"] = {{width}, import.take(from + ".bias", {width}).to_floats()};
}

}  // namespace

ImportedModule import_fastformer(Import& import, const ImportHints& hints) {
  const bool whole = import.has("self.query_att.weight");
  const std::string self = whole ? "self." : "";
  ImportedModule module;
  module.source = whole ? "FastAttention" : "FastSelfAttention";
  const int64_t width = import.take(self + "query.weight", {-1, -1}).shape[0];
  const int64_t heads = import.take(self + "query_att.weight", {-1, width}).shape[0];
  if (heads == 0 || width % heads != 0)
    throw Error(
        fmt::format("{}: {} heads (the rows of query_att) do not divide the width {}", module.source, heads, width));
  module.width = width;
  take_linear(import, self + "query", "to_qk", width, width, module);
  ImportedModule::Tensor &weight = module.parameters["to_qk.weight"], &bias = module.parameters["to_qk.bias"];
  const auto append = [](std::vector<float>& to, const std::vector<float>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  append(weight.values, import.take(self + "key.weight", {width, width}).to_floats());
  append(bias.values, import.take(self + "key.bias", {width}).to_floats());
  weight.shape[0] = bias.shape[0] = 2 * width;
  take_linear(import, self + "query_att", "query_logits", heads, width, module);
  take_linear(import, self + "key_att", "key_logits", heads, width, module);
  take_linear(import, self + "transform", "to_r", width, width, module);
  if (whole) take_linear(import, "output.dense", "to_out", width, width, module);
  if (whole && import.has("output.LayerNorm.weight")) {
    take_norm(import, "output.LayerNorm", "mixer_norm", width, module);
    module.is_block = true;
    module.layer.norm = {NormKind::layer, hints.norm_eps.value_or(bert_norm_eps)};
    module.layer.norm_placement = NormPlacement::post;
    module.layer.feed_forward.type = FeedForwardKind::none;
  }

  FastformerConfig config;
  config.heads = heads;
  config.bias = config.logit_bias = true;
  config.output_projection = whole;
  module.layer.mixer = config;
  return module;
}

ImportedModule import_fastformer_layer(Import& import, const ImportHints& hints) {
  Import attention = import.below("attention.");
  ImportedModule module = import_fastformer(attention, hints);
  if (!module.is_block) throw Error("FastformerLayer: attention.output.LayerNorm is missing");
  module.source = "FastformerLayer";
  const int64_t width = module.width, hidden = import.take("intermediate.dense.weight", {-1, width}).shape[0];
  const auto take = [&](const std::string& from, const std::string& to, const std::vector<int64_t>& shape) {
    module.block[to] = {shape, import.take(from, shape).to_floats()};
  };
  take("intermediate.dense.weight", "feed_forward.up.weight", {hidden, width});
  take("intermediate.dense.bias", "feed_forward.up.bias", {hidden});
  take("output.dense.weight", "feed_forward.down.weight", {width, hidden});
  take("output.dense.bias", "feed_forward.down.bias", {width});
  take_norm(import, "output.LayerNorm", "feed_forward_norm", width, module);
  const bool relu = hints.activation == ImportActivation::relu;
  module.layer.feed_forward.type = relu ? FeedForwardKind::relu : FeedForwardKind::gelu;
  module.layer.feed_forward.expansion = static_cast<double>(hidden) / static_cast<double>(width);
  return module;
}

Importers fastformer_importers() {
  return {
      {{"FastSelfAttention (query, query_att, key, key_att, transform)",
        [](const Import& import) { return import.has("query_att.weight") || import.has("self.query_att.weight"); },
        import_fastformer},
       {"FastformerLayer (attention.self, intermediate, output)",
        [](const Import& import) { return import.has("attention.self.query_att.weight"); }, import_fastformer_layer}},
      {{"Fastformer's classifier (word_embedding, fastformer_model, dense_linear)",
        [](const Import& import) { return import.has("fastformer_model.position_embeddings.weight"); },
        import_fastformer_model}}};
}

}  // namespace capstan
