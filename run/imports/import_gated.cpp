// GAU and FLASH of FLASH-pytorch (the `port` of the comments), which have much in common, and GAU-alpha.
// tests/apps/test_import_gated.cpp and test_import_models.cpp compare outputs with those of PyTorch twins.
#include <cmath>

#include "nn/systems/gated/unit.hpp"
#include "run/imports/import_tensors.hpp"

namespace capstan {
namespace {

/// `rows` of a tensor of `width` columns, in this order.
void append_rows(std::vector<float>& to, const std::vector<float>& from, int64_t width,
                 const std::vector<int64_t>& rows) {
  for (const int64_t row : rows) to.insert(to.end(), from.begin() + row * width, from.begin() + (row + 1) * width);
}

/// The port projects to values | gate and, separately, to the shared features; here the rows are gate | values |
/// features.
void take_projections(Import& import, ImportedModule& module, GatedUnitConfig& config) {
  const FileTensor& hidden = import.take("to_hidden.0.weight", {-1, -1});
  const int64_t width = module.width = hidden.shape[1], both = hidden.shape[0], inner = both / 2;
  if (both == 0 || both % 2 != 0)
    throw Error(
        fmt::format("{} has {} rows: an even number is needed, half for values and half for gates", hidden.name, both));
  const int64_t key_dim = import.take("to_qk.0.weight", {-1, width}).shape[0], rows = both + key_dim;
  const auto packed = [&](const std::string& part, const std::vector<int64_t>& shape, int64_t columns) {
    std::vector<int64_t> of_hidden = shape, of_features = shape;
    of_hidden[0] = both;
    of_features[0] = key_dim;
    const std::vector<float> uv = import.take("to_hidden.0." + part, of_hidden).to_floats(),
                             z = import.take("to_qk.0." + part, of_features).to_floats();
    ImportedTensor result{shape, {}};
    result.values.insert(result.values.end(), uv.begin() + inner * columns, uv.end());
    result.values.insert(result.values.end(), uv.begin(), uv.begin() + inner * columns);
    result.values.insert(result.values.end(), z.begin(), z.end());
    return result;
  };
  module.parameters["to_uvz.weight"] = packed("weight", {rows, width}, width);
  module.parameters["to_uvz.bias"] = packed("bias", {rows}, 1);
  take_linear(import, import.has("to_out.0.weight") ? "to_out.0" : "to_out", "to_out", width, inner, /*bias=*/true,
              module.parameters);
  config.expansion = static_cast<double>(inner) / static_cast<double>(width);
  config.key_dim = key_dim;
  config.bias = true;
}

/// Gains and offsets of the views, each (views, key_dim). `order`: the port's row for each of Capstan's.
void take_views(Import& import, const std::string& name, const std::vector<int64_t>& order, int64_t key_dim,
                ImportedModule& module) {
  const auto views = static_cast<int64_t>(order.size());
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"gamma", "gain"}, {"beta", "offset"}}) {
    ImportedTensor tensor{{views, key_dim}, {}};
    append_rows(tensor.values, import.take(name + from, {views, key_dim}).to_floats(), key_dim, order);
    module.parameters[to] = std::move(tensor);
  }
}

void take_position_buckets(Import& import, double scale, ImportedModule& module, GatedUnitConfig& config) {
  const std::string name = "rel_pos_bias.relative_attention_bias.weight";
  config.position_bias = import.has(name) ? RelativeBiasKind::t5 : RelativeBiasKind::none;
  if (!import.has(name)) return import.approximate(name + " is missing, as in early versions: positions have no bias");
  config.t5_scale = scale;
  module.parameters["relative_bias.buckets"] = {{32}, import.take(name, {32, 1}).to_floats()};
}

/// LayerNorm, or ScaleNorm with its single gain.
void take_norm(Import& import, ImportedModule& module) {
  if (import.has("norm.g")) {
    import.take("norm.g", {1}, "mixer_norm.gain", module.block);
    module.layer.norm = {NormKind::scale, 1e-5, /*clamp=*/true};
  } else {
    take_layer_norm(import, "norm", "mixer_norm", module.width, module.block);
  }
  module.layer.feed_forward.type = FeedForwardKind::none;
  module.is_block = true;
}

/// GAU of the port. It divides logits by the length of a text, padding included, so that a causal module is met for
/// texts of one length only (hints.length).
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
  // A token of a bidirectional module sees as many keys as the text has tokens, so that counting them gives the length.
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

/// A layer of GAU-alpha: i_dense (2 hidden + key, D) is u, v and the shared features, o_dense (D, hidden) the output.
/// Attention is a softmax with logits scaled by the logarithm of the length, and the norm comes after the residual.
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
    const auto append = [&](const std::string& name, bool in_file, ImportedTensor& to) {
      const std::vector<float> values =
          in_file ? import.take(name, {key}).to_floats() : std::vector<float>(static_cast<size_t>(key), 0);
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
  config.min_length = 1;
  config.position_bias = RelativeBiasKind::none;
  config.rotary.pairs = RotaryPairs::interleaved;
  module.layer.mixer = config;
  module.layer.norm = norm;
  module.layer.norm_placement = NormPlacement::post;
  module.layer.feed_forward.type = FeedForwardKind::none;
  add_plain_norm("mixer_norm", width, module.block);
  return module;
}

/// GAU-alpha with its output layer, as a masked language model.
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

/// Takes rotary_pos_emb.freqs, the angle per position of each pair of neighbouring features. Capstan computes the
/// angles from a base, which is found from the second frequency: freqs[i] = base^(-i / pairs).
void take_rotary(Import& import, GatedUnitConfig& config) {
  config.rotary.enabled = import.has("rotary_pos_emb.freqs");
  if (!config.rotary.enabled) return;
  const FileTensor& tensor = import.take("rotary_pos_emb.freqs", {-1});
  const std::vector<double> frequencies = tensor.to_doubles();
  const auto pairs = static_cast<double>(frequencies.size());
  config.rotary.dims = 2 * static_cast<int64_t>(frequencies.size());
  config.rotary.pairs = RotaryPairs::interleaved;
  if (config.rotary.dims == 0 || config.rotary.dims > config.key_dim)
    throw Error(fmt::format("{} rotates {} of {} features", tensor.name, config.rotary.dims, config.key_dim));
  if (frequencies.size() > 1) config.rotary.base = std::round(std::pow(frequencies[1], -pairs));
  if (!(config.rotary.base >= 2 && config.rotary.base <= 1e9)) config.rotary.base = RotaryConfig{}.base;
  const double largest =
      largest_difference(frequencies, [&](double pair) { return std::pow(config.rotary.base, -pair / pairs); });
  if (largest > 1e-6)
    import.approximate(
        fmt::format("the frequencies in {} are not those of rotary positions with base {}, which are used instead: "
                    "angles differ by up to {:.2g} radians for each position between query and key",
                    tensor.name, config.rotary.base, largest));
}

/// FLASH of the port: two linear and two quadratic views of the shared features, in groups of hints.chunk tokens.
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
    of_layer.take("rotary_pos_emb.freqs", {-1});  // import_flash() would take a module without them
    add_block(import_flash(of_layer, hints), stack, model.parameters);
  }
  take_layer_norm(import, "to_logits.0", "final_norm", width, model.parameters);
  stack.final_norm.eps = hints.norm_eps.value_or(stack.final_norm.eps);
  take_linear(import, "to_logits.1", "output", model.vocabulary, width, /*bias=*/true, model.parameters);
  finish_token_model(stack, hints.causal, /*output_bias=*/true, hints, model);
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
