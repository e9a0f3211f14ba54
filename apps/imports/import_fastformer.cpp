#include "apps/imports/import_fastformer.hpp"

namespace capstan {
namespace {

/// One Linear layer, under its name in Capstan.
void take_linear(Import& import, const std::string& from, const std::string& to, int64_t out, int64_t in,
                 ImportedModule& module) {
  module.parameters[to + ".weight"] = {{out, in}, import.take(from + ".weight", {out, in}).to_floats()};
  module.parameters[to + ".bias"] = {{out}, import.take(from + ".bias", {out}).to_floats()};
}

}  // namespace

ImportedModule import_fastformer(Import& import) {
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
  for (const std::string part : {"weight", "bias"})  // belongs to the block, not to the mixer: not imported
    if (whole && import.has("output.LayerNorm." + part)) import.take("output.LayerNorm." + part, {width});

  FastformerConfig config;
  config.heads = heads;
  config.bias = config.logit_bias = true;
  config.output_projection = whole;
  module.layer.mixer = config;
  return module;
}

}  // namespace capstan
