#include "apps/imports/import_aft.hpp"

namespace capstan {
namespace {

/// q|k|v rows in one matrix, and the three biases, from three Linear layers.
void pack_projections(Import& import, const std::vector<std::string>& names, ImportedModule& module) {
  const int64_t width = module.width;
  ImportedModule::Tensor packed{{3 * width, width}, {}};
  const std::vector<std::string> biases = {"query_bias", "key_bias", "value_bias"};
  for (size_t part = 0; part < names.size(); ++part) {
    const std::vector<float> weight = import.take(names[part] + ".weight", {width, width}).to_floats();
    packed.values.insert(packed.values.end(), weight.begin(), weight.end());
    module.parameters[biases[part]] = {{width}, import.take(names[part] + ".bias", {width}).to_floats()};
  }
  module.parameters["to_qkv.weight"] = std::move(packed);
}

void take_position_bias(Import& import, const std::string& name, ImportedModule& module) {
  const FileTensor& bias = import.take(name, {-1, -1});
  if (bias.shape[0] != bias.shape[1])
    throw Error(fmt::format("{} has shape {}: a position bias is square", bias.name, to_string(Shape(bias.shape))));
  module.max_length = bias.shape[0];
  module.parameters["position_bias"] = {bias.shape, bias.to_floats()};
}

AftProjections all_projections(bool output) {
  AftProjections projections;
  projections.bias = projections.key_bias = true;
  projections.output_projection = output;
  return projections;
}

/// The window, from the first column of the mask: the number of t for which |t - 0| < window.
int64_t window_of_mask(const std::vector<float>& mask, int64_t length) {
  int64_t window = 0;
  for (int64_t t = 0; t < length; ++t) window += mask[static_cast<size_t>(t * length)] != 0 ? 1 : 0;
  return window;
}

}  // namespace

ImportedModule import_aft_full(Import& import) {
  ImportedModule module;
  module.source = "AFT_FULL";
  module.width = import.take("fc_q.weight", {-1, -1}).shape[0];
  pack_projections(import, {"fc_q", "fc_k", "fc_v"}, module);
  take_position_bias(import, "position_biases", module);
  AftFullConfig config;
  static_cast<AftProjections&>(config) = all_projections(false);
  config.position_bias = PositionBias::dense;
  module.mixer = config;
  return module;
}

ImportedModule import_aft_local(Import& import, int64_t window) {
  ImportedModule module;
  module.source = "AFTLocal";
  module.width = import.take("query.weight", {-1, -1}).shape[0];
  pack_projections(import, {"query", "key", "value"}, module);
  module.parameters["to_out.weight"] = {{module.width, module.width},
                                        import.take("output.weight", {module.width, module.width}).to_floats()};
  module.parameters["to_out.bias"] = {{module.width}, import.take("output.bias", {module.width}).to_floats()};
  take_position_bias(import, "pos_bias", module);
  if (import.has("local_mask")) {
    const FileTensor& mask = import.take("local_mask", {module.max_length, module.max_length});
    const int64_t in_file = window_of_mask(mask.to_floats(), module.max_length);
    if (window > 0 && window != in_file)
      throw Error(fmt::format("--window {} contradicts {}, which has a window of {}", window, mask.name, in_file));
    window = in_file;
  }
  if (window <= 0) throw Error("AFTLocal: the file does not contain the window: give it with --window");
  AftLocalConfig config;
  static_cast<AftProjections&>(config) = all_projections(true);
  config.window = window;
  config.position_bias = PositionBias::dense;
  module.mixer = config;
  return module;
}

}  // namespace capstan
