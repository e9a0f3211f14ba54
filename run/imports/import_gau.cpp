#include <cmath>

#include "run/imports/import_gated.hpp"
#include "run/imports/import_tensors.hpp"

namespace capstan {
namespace {

ImportedModule import_gau(Import& import, const ImportHints& hints) {
  ImportedModule module;
  module.source = "GAU";
  GauConfig config;
  take_projections(import, module, config);
  take_views(import, "offsetscale.", {0, 1}, config.key_dim, module);
  take_position_buckets(import, std::sqrt(static_cast<double>(module.width)), module, config);
  take_norm(import, module);
  const bool any_length = hints.length <= 0 && !hints.laplace && !hints.causal;
  if (hints.length <= 0 && !any_length)
    throw Error("GAU: the module divides its logits by the length of the text: give that length with --length");
  config.kernel = hints.laplace ? AttentionKernel::laplace : AttentionKernel::squared_relu;
  config.logits = LogitForm::length;
  config.whole_length = true;
  // The keys that a token of a bidirectional module sees are as many as the text has.
  config.normaliser = any_length ? Normaliser::counted : Normaliser::paper;
  if (!any_length) config.paper_length = hints.length;
  module.notes.push_back(
      any_length
          ? "the module was taken as bidirectional: it is met for texts of any length"
          : fmt::format("the module divides its logits by the length of each text: it is met for texts of {} tokens",
                        hints.length));
  config.rotary.enabled = false;
  module.layer.mixer = config;
  return module;
}

/// The module's norm has neither gain nor bias.
void add_plain_norm(const std::string& name, int64_t width, ImportedTensors& tensors) {
  tensors[name + ".gain"] = {{width}, std::vector<float>(static_cast<size_t>(width), 1)};
}

ImportedModule gau_layer(Import& import, int64_t width, const NormConfig& norm) {
  ImportedModule module;
  module.is_block = true;
  module.width = width;
  GauConfig config;
  const int64_t hidden = import.take("gau.o_dense.weight", {width, -1}).shape[1];
  const FileTensor& packed = import.take("gau.i_dense.weight", {-1, width});
  config.key_dim = packed.shape[0] - 2 * hidden;
  if (config.key_dim <= 0)
    throw Error(fmt::format("{} has {} rows: more than {} are needed", packed.name, packed.shape[0], 2 * hidden));
  const int64_t key = config.key_dim, rows = packed.shape[0];
  ImportedTensors& tensors = module.parameters;
  config.bias = import.has("gau.i_dense.bias");
  take_linear(import, "gau.i_dense", "to_uvz", rows, width, config.bias, tensors);
  take_linear(import, "gau.o_dense", "to_out", width, hidden, config.bias, tensors);
  ImportedTensor gain{{2, key}, {}}, offset{{2, key}, {}};
  for (const std::string view : {"gau.q_scaleoffset", "gau.k_scaleoffset"}) {
    const auto append = [&](const std::string& name, bool is_there, ImportedTensor& to) {
      const std::vector<float> values =
          is_there ? import.take(name, {key}).to_floats() : std::vector<float>(static_cast<size_t>(key), 0);
      to.values.insert(to.values.end(), values.begin(), values.end());
    };
    append(view + ".weight", true, gain);
    append(view + ".bias", config.bias, offset);
  }
  tensors["gain"] = gain;
  tensors["offset"] = offset;
  config.expansion = static_cast<double>(hidden) / static_cast<double>(width);
  config.kernel = AttentionKernel::softmax;
  config.logits = LogitForm::log_length;
  config.least_length = 1;
  config.position_bias = RelativeBiasKind::none;
  config.rotary.pairs = RotaryPairs::interleaved;
  module.layer.mixer = config;
  module.layer.norm = norm;
  module.layer.norm_placement = NormPlacement::post;
  module.layer.feed_forward.type = FeedForwardKind::none;
  add_plain_norm("mixer_norm", width, module.block);
  return module;
}

ImportedModel import_gau_alpha(Import& import, const ImportHints& hints) {
  ImportedModel model;
  model.source = "GAU-alpha";
  const std::string tables = "gau_alpha.embeddings.", layers = "gau_alpha.encoder.layer";
  import.take(tables + "word_embeddings.weight", {-1, -1}, "embed.weight", model.parameters);
  ImportedTensor& embedding = model.parameters["embed.weight"];
  ModelConfig stack;
  model.vocabulary = embedding.shape[0];
  const int64_t width = stack.width = embedding.shape[1];
  const bool own_output = import.has("cls.predictions.decoder.weight");  // files may leave out what is tied
  const std::string output = own_output ? "cls.predictions.decoder.weight" : tables + "word_embeddings.weight";
  import.take(output, {model.vocabulary, width}, "output.weight", model.parameters);
  // Every token of a text of one segment gets the vector of type 0.
  const std::vector<float> types = import.take(tables + "token_type_embeddings.weight", {-1, width}).to_floats();
  for (size_t i = 0; i < embedding.values.size(); ++i) embedding.values[i] += types[i % static_cast<size_t>(width)];
  const NormConfig norm{NormKind::rms, hints.norm_eps.value_or(1e-12)};
  stack.embedding_norm = true;
  stack.final_norm = norm;
  add_plain_norm("embed_norm", width, model.parameters);
  for (int64_t layer = 0; layer < import.count(layers, "gau.i_dense.weight"); ++layer) {
    Import of_layer = import.below(fmt::format("{}.{}.", layers, layer));
    add_block(gau_layer(of_layer, width, norm), stack, model.parameters);
  }
  finish_token_model(stack, /*causal=*/false, /*output_bias=*/false, hints, model);
  model.notes.push_back("texts have one segment: the vector of token type 0 is part of the embedding");
  model.notes.push_back(
      "the module's norms have no gains, and without use_bias its views no offsets: to train what it trains, set "
      "train.freeze: [embed_norm.gain, blocks.*.mixer_norm.gain, blocks.*.mixer.offset]");
  if (own_output) {
    model.notes.push_back(
        "embedding and output layer are separate tables here: training changes each on its own, even if they were one "
        "in the module");
  }
  return model;
}

}  // namespace

Importers gau_importers() {
  return {{{"GAU (to_hidden, to_qk, offsetscale)", [](const Import& import) { return import.has("offsetscale.gamma"); },
            import_gau}},
          {{"GAU-alpha (gau_alpha, cls)",
            [](const Import& import) { return import.has("gau_alpha.embeddings.word_embeddings.weight"); },
            import_gau_alpha}}};
}

}  // namespace capstan
