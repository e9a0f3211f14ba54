#include <cmath>

#include "run/imports/import_fastformer.hpp"
#include "run/imports/model_parts.hpp"

namespace capstan {
namespace {

/// The notebook pools with e^a / (sum e^a + 1e-8), Capstan with a softmax, which has no bias: that cancels. |a - bias| is
/// at most the sum of the weights' sizes, because tanh is at most 1: so is the difference of the pooled vector bounded.
void take_pooling(Import& import, int64_t width, ImportedModel& model) {
  const std::string from = "fastformer_model.poolers.0.";
  if (import.has("fastformer_model.poolers.1.att_fc1.weight"))
    throw Error(fmt::format("{}: it has several poolers, for several tasks: remove all but poolers.0 from the file",
                            model.source));
  take_tensor(import, from + "att_fc1.weight", "pooling.hidden.weight", {width, width}, model.parameters);
  take_tensor(import, from + "att_fc1.bias", "pooling.hidden.bias", {width}, model.parameters);
  const auto& score =
      take_tensor(import, from + "att_fc2.weight", "pooling.score.weight", {1, width}, model.parameters);
  double least = import.take(from + "att_fc2.bias", {1}).to_doubles()[0];
  for (const float weight : score.values) least -= std::abs(static_cast<double>(weight));
  const double effect = 1e-8 / std::exp(least);
  if (effect > 1e-6)
    import.approximate(
        fmt::format("the module adds 1e-8 to the sum of the pooling weights, which is not done here: the pooled vector "
                    "of a text may be larger than the module's by a factor of up to 1 + {:.2g}",
                    effect));
}

}  // namespace

ImportedModel import_fastformer_model(Import& import, const ImportHints& hints) {
  ImportedModel model;
  model.source = "Fastformer's classifier";
  const auto& embedding = take_tensor(import, "word_embedding.weight", "embed.weight", {-1, -1}, model.parameters);
  TextClassifierConfig config;
  model.vocabulary = embedding.shape[0];
  const int64_t width = config.width = embedding.shape[1];
  const std::string encoder = "fastformer_model.";
  config.positions = Positions::learned;
  config.max_length =
      take_tensor(import, encoder + "position_embeddings.weight", "positions.weight", {-1, width}, model.parameters)
          .shape[0];
  config.embedding_norm = true;
  config.final_norm.eps = hints.norm_eps.value_or(bert_norm_eps);
  take_layer_norm(import, encoder + "LayerNorm", "embed_norm", width, model.parameters);
  for (int64_t layer = 0; layer < import.count(encoder + "encoders", "attention.self.query.weight"); ++layer) {
    Import of_layer = import.below(fmt::format("{}encoders.{}.", encoder, layer));
    add_block(import_fastformer_layer(of_layer, hints), config, model.parameters);
  }
  config.pooling = Pooling::attention;
  take_pooling(import, width, model);
  model.classes = take_tensor(import, "dense_linear.weight", "head.weight", {-1, width}, model.parameters).shape[0];
  take_tensor(import, "dense_linear.bias", "head.bias", {model.classes}, model.parameters);
  model.notes.push_back("token 0 is padding in the module; here, texts must not contain it");
  model.config = config;
  return model;
}

}  // namespace capstan
