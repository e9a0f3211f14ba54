// Fastformer as its authors' notebook has it: attention, layer and classifier. tests/apps/test_import.cpp,
// test_import_modules.cpp and test_import_models.cpp compare outputs with those of PyTorch twins.
#include <cmath>

#include "run/imports/import_tensors.hpp"

namespace capstan {
namespace {

/// The epsilon of BERT's norms, which the notebook uses.
constexpr double bert_norm_eps = 1e-12;

/// The attention of Fastformer, alone (FastSelfAttention) or with its output layer and norm (FastAttention). query and
/// key, each (D, D), are packed into to_qk (2 D, D); query_att and key_att are (heads, D).
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
  const auto take = [&](const std::string& from, const std::string& to, int64_t rows) {
    take_linear(import, from, to, rows, width, /*bias=*/true, module.parameters);
  };
  take(self + "query", "to_qk", width);
  ImportedTensor &weight = module.parameters["to_qk.weight"], &bias = module.parameters["to_qk.bias"];
  const auto append = [](std::vector<float>& to, const std::vector<float>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  append(weight.values, import.take(self + "key.weight", {width, width}).to_floats());
  append(bias.values, import.take(self + "key.bias", {width}).to_floats());
  weight.shape[0] = bias.shape[0] = 2 * width;
  take(self + "query_att", "query_logits", heads);
  take(self + "key_att", "key_logits", heads);
  take(self + "transform", "to_r", width);
  if (whole) take("output.dense", "to_out", width);
  if (whole && import.has("output.LayerNorm.weight")) {
    take_layer_norm(import, "output.LayerNorm", "mixer_norm", width, module.block);
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
  take_feed_forward(import, "intermediate.dense", "output.dense", /*bias=*/true, module);
  take_layer_norm(import, "output.LayerNorm", "feed_forward_norm", module.width, module.block);
  const bool relu = hints.activation == ImportActivation::relu;
  module.layer.feed_forward.type = relu ? FeedForwardKind::relu : FeedForwardKind::gelu;
  return module;
}

/// The notebook pools with e^a / (sum e^a + 1e-8), Capstan with a softmax, from which the bias of a cancels. Since tanh
/// is at most 1, a is at least the bias minus the sum of the weights' absolute values (`least`), and the pooled vectors
/// differ by a factor of at most 1 + 1e-8 / e^least.
void take_pooling(Import& import, int64_t width, ImportedModel& model) {
  const std::string from = "fastformer_model.poolers.0.";
  if (import.has("fastformer_model.poolers.1.att_fc1.weight"))
    throw Error(fmt::format("{}: it has several poolers, for several tasks: remove all but poolers.0 from the file",
                            model.source));
  take_linear(import, from + "att_fc1", "pooling.hidden", width, width, /*bias=*/true, model.parameters);
  const auto& score = import.take(from + "att_fc2.weight", {1, width}, "pooling.score.weight", model.parameters);
  double least = import.take(from + "att_fc2.bias", {1}).to_doubles()[0];
  for (const float weight : score.values) least -= std::abs(static_cast<double>(weight));
  const double effect = 1e-8 / std::exp(least);
  if (effect > 1e-6)
    import.approximate(
        fmt::format("the module adds 1e-8 to the sum of the pooling weights, which is not done here: the pooled vector "
                    "of a text may be larger than the module's by a factor of up to 1 + {:.2g}",
                    effect));
}

ImportedModel import_fastformer_model(Import& import, const ImportHints& hints) {
  ImportedModel model;
  model.source = "Fastformer's classifier";
  const auto& embedding = import.take("word_embedding.weight", {-1, -1}, "embed.weight", model.parameters);
  TextClassifierConfig config;
  model.vocabulary = embedding.shape[0];
  const int64_t width = config.width = embedding.shape[1];
  const std::string encoder = "fastformer_model.";
  config.positions = Positions::learned;
  config.max_length =
      import.take(encoder + "position_embeddings.weight", {-1, width}, "positions.weight", model.parameters).shape[0];
  config.embedding_norm = true;
  config.final_norm.eps = hints.norm_eps.value_or(bert_norm_eps);
  take_layer_norm(import, encoder + "LayerNorm", "embed_norm", width, model.parameters);
  for (int64_t layer = 0; layer < import.count(encoder + "encoders", "attention.self.query.weight"); ++layer) {
    Import of_layer = import.below(fmt::format("{}encoders.{}.", encoder, layer));
    add_block(import_fastformer_layer(of_layer, hints), config, model.parameters);
  }
  config.pooling = Pooling::attention;
  take_pooling(import, width, model);
  model.classes = import.take("dense_linear.weight", {-1, width}, "head.weight", model.parameters).shape[0];
  import.take("dense_linear.bias", {model.classes}, "head.bias", model.parameters);
  model.notes.push_back("token 0 is padding in the module; here, texts must not contain it");
  model.config = config;
  return model;
}

}  // namespace

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
