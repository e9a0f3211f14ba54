#include "run/imports/import_gated.hpp"

namespace capstan {
namespace {

/// `rows` of a tensor of `width` columns, in this order.
void append_rows(std::vector<float>& to, const std::vector<float>& from, int64_t width,
                 const std::vector<int64_t>& rows) {
  for (const int64_t row : rows) to.insert(to.end(), from.begin() + row * width, from.begin() + (row + 1) * width);
}

}  // namespace

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

}  // namespace capstan
