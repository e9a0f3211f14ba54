#include "run/imports/import_gated.hpp"

#include <algorithm>
#include <cmath>

namespace capstan {
namespace {

using Tensor = ImportedModule::Tensor;

/// `rows` of a tensor of `width` columns, in this order.
void append_rows(std::vector<float>& to, const std::vector<float>& from, int64_t width,
                 const std::vector<int64_t>& rows) {
  for (const int64_t row : rows) to.insert(to.end(), from.begin() + row * width, from.begin() + (row + 1) * width);
}

/// The port projects to values | gate and, separately, to the shared features;
/// here the rows are gate | values | features.
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
    Tensor result{shape, {}};
    result.values.insert(result.values.end(), uv.begin() + inner * columns, uv.end());
    result.values.insert(result.values.end(), uv.begin(), uv.begin() + inner * columns);
    result.values.insert(result.values.end(), z.begin(), z.end());
    return result;
  };
  module.parameters["to_uvz.weight"] = packed("weight", {rows, width}, width);
  module.parameters["to_uvz.bias"] = packed("bias", {rows}, 1);
  const std::string out = import.has("to_out.0.weight") ? "to_out.0." : "to_out.";
  module.parameters["to_out.weight"] = {{width, inner}, import.take(out + "weight", {width, inner}).to_floats()};
  module.parameters["to_out.bias"] = {{width}, import.take(out + "bias", {width}).to_floats()};
  config.expansion = static_cast<double>(inner) / static_cast<double>(width);
  config.key_dim = key_dim;
  config.bias = true;
}

/// Gains and offsets of the views, in the order of Capstan.
void take_views(Import& import, const std::string& name, const std::vector<int64_t>& order, int64_t key_dim,
                ImportedModule& module) {
  const auto views = static_cast<int64_t>(order.size());
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"gamma", "gain"}, {"beta", "offset"}}) {
    Tensor tensor{{views, key_dim}, {}};
    append_rows(tensor.values, import.take(name + from, {views, key_dim}).to_floats(), key_dim, order);
    module.parameters[to] = std::move(tensor);
  }
}

void take_position_buckets(Import& import, double scale, ImportedModule& module, GatedUnitConfig& config) {
  const std::string name = "rel_pos_bias.relative_attention_bias.weight";
  config.position_bias = import.has(name) ? RelativeBiasKind::t5 : RelativeBiasKind::none;
  if (!import.has(name)) return;
  config.t5_scale = scale;
  module.parameters["relative_bias.buckets"] = {{32}, import.take(name, {32, 1}).to_floats()};
}

/// rotary_pos_emb.freqs: the angle per position of each pair of neighbouring features.
void take_rotary(Import& import, GatedUnitConfig& config) {
  config.rotary.enabled = import.has("rotary_pos_emb.freqs");
  if (!config.rotary.enabled) return;
  const FileTensor& tensor = import.take("rotary_pos_emb.freqs", {-1});
  const std::vector<double> found = tensor.to_doubles();
  const auto pairs = static_cast<double>(found.size());
  config.rotary.dims = 2 * static_cast<int64_t>(found.size());
  config.rotary.pairs = RotaryPairs::interleaved;
  if (config.rotary.dims == 0 || config.rotary.dims > config.key_dim)
    throw Error(fmt::format("{} rotates {} of {} features", tensor.name, config.rotary.dims, config.key_dim));
  if (found.size() > 1) config.rotary.base = std::round(std::pow(found[1], -pairs));
  if (!(config.rotary.base >= 2 && config.rotary.base <= 1e9)) config.rotary.base = RotaryConfig{}.base;
  const double largest =
      largest_difference(found, [&](double pair) { return std::pow(config.rotary.base, -pair / pairs); });
  if (largest > 1e-6)
    import.approximate(
        fmt::format("the frequencies in {} are not those of rotary positions with base {}, which are used instead: "
                    "angles differ by up to {:.2g} radians for each position between query and key",
                    tensor.name, config.rotary.base, largest));
}

/// LayerNorm, or ScaleNorm with its single gain.
void take_norm(Import& import, ImportedModule& module) {
  const int64_t width = module.width;
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"norm.weight", "gain"}, {"norm.bias", "bias"}})
    if (import.has(from)) module.block["mixer_norm." + to] = {{width}, import.take(from, {width}).to_floats()};
  if (import.has("norm.g")) {
    module.block["mixer_norm.gain"] = {{1}, import.take("norm.g", {1}).to_floats()};
    module.layer.norm = {NormKind::scale, 1e-5, /*clamp=*/true};
  }
  module.layer.feed_forward.type = FeedForwardKind::none;
  module.is_block = true;
}

}  // namespace

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
  config.logits = LogitForm::whole_length;
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

ImportedModule import_flash(Import& import, const ImportHints& hints) {
  ImportedModule module;
  module.source = "FLASH";
  FlashConfig config;
  take_projections(import, module, config);
  // The port's order: quad_q, lin_q, quad_k, lin_k.
  take_views(import, "qk_offset_scale.", {0, 2, 1, 3}, config.key_dim, module);
  take_position_buckets(import, std::sqrt(static_cast<double>(config.key_dim)), module, config);
  take_rotary(import, config);
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

}  // namespace capstan
