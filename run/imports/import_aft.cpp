// The three public implementations of AFT, which differ in names, in the order of axes and in whether there is an
// output projection. tests/apps/test_import.cpp compares outputs with those of PyTorch twins (tests/parity/systems).
#include "run/imports/import_tensors.hpp"

namespace capstan {
namespace {

/// Packs three Linear layers into one matrix (3 inner, width), rows of q, k and v in this order, and three biases.
void pack_projections(Import& import, const std::vector<std::string>& names, ImportedModule& module, int64_t inner,
                      bool has_bias = true) {
  const int64_t width = module.width;
  ImportedTensor packed{{3 * inner, width}, {}};
  const std::vector<std::string> biases = {"query_bias", "key_bias", "value_bias"};
  for (size_t part = 0; part < names.size(); ++part) {
    const std::vector<float> weight = import.take(names[part] + ".weight", {inner, width}).to_floats();
    packed.values.insert(packed.values.end(), weight.begin(), weight.end());
    module.parameters[biases[part]] = {{inner},
                                       has_bias ? import.take(names[part] + ".bias", {inner}).to_floats()
                                                : std::vector<float>(static_cast<size_t>(inner), 0)};
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

AftProjections all_projections(bool output, int64_t inner = 0) {
  return {/*bias=*/true, /*key_bias=*/true, output, inner};
}

/// A mixer with these projections and, if it has a position bias, a dense one.
template <class Config>
Config with(const AftProjections& projections, Config config = {}) {
  static_cast<AftProjections&>(config) = projections;
  if constexpr (!std::is_same_v<Config, AftSimpleConfig>) config.position_bias = PositionBias::dense;
  return config;
}

/// The window, from the first column of the mask: the number of t for which |t - 0| < window.
int64_t window_of_mask(const std::vector<float>& mask, int64_t length) {
  int64_t window = 0;
  for (int64_t t = 0; t < length; ++t) window += mask[static_cast<size_t>(t * length)] != 0 ? 1 : 0;
  return window;
}

ImportedModule import_aft_full(Import& import, const ImportHints&) {
  ImportedModule module;
  module.source = "AFT_FULL";
  module.width = import.take("fc_q.weight", {-1, -1}).shape[0];
  pack_projections(import, {"fc_q", "fc_k", "fc_v"}, module, module.width);
  if (!import.has("position_biases")) {  // made with simple=True
    module.layer.mixer = with<AftSimpleConfig>(all_projections(false));
    return module;
  }
  take_position_bias(import, "position_biases", module);
  module.layer.mixer = with<AftFullConfig>(all_projections(false));
  return module;
}

/// Without a window among the hints, it is read from the file. Throws Error if the file does not have it either, or if
/// the two differ.
ImportedModule import_aft_local(Import& import, const ImportHints& hints) {
  int64_t window = hints.window;
  ImportedModule module;
  module.source = "AFTLocal";
  module.time_first = true;
  module.width = import.take("query.weight", {-1, -1}).shape[0];
  // Made with bias=False, it still has the output's bias.
  pack_projections(import, {"query", "key", "value"}, module, module.width, import.has("query.bias"));
  take_linear(import, "output", "to_out", module.width, module.width, /*bias=*/true, module.parameters);
  take_position_bias(import, "pos_bias", module);
  if (import.has("local_mask")) {
    const FileTensor& mask = import.take("local_mask", {module.max_length, module.max_length});
    const int64_t in_file = window_of_mask(mask.to_floats(), module.max_length);
    if (window > 0 && window != in_file)
      throw Error(fmt::format("--window {} contradicts {}, which has a window of {}", window, mask.name, in_file));
    window = in_file;
  }
  if (window <= 0) throw Error("AFTLocal: the file does not contain the window: give it with --window");
  auto config = with<AftLocalConfig>(all_projections(true));
  config.window = window;
  module.layer.mixer = config;
  return module;
}

/// Without a window among the hints, wbias is taken as it is, for all distances.
ImportedModule import_aft_projected(Import& import, const ImportHints& hints) {
  ImportedModule module;
  module.source = import.has("wbias") ? "AFTFull" : "AFTSimple";
  const FileTensor& query = import.take("to_q.weight", {-1, -1});
  const int64_t width = module.width = query.shape[1], inner = query.shape[0];
  pack_projections(import, {"to_q", "to_k", "to_v"}, module, inner);
  take_linear(import, "project", "to_out", width, inner, /*bias=*/true, module.parameters);
  const AftProjections projections = all_projections(true, inner == width ? 0 : inner);
  if (!import.has("wbias")) {
    module.layer.mixer = with<AftSimpleConfig>(projections);
    return module;
  }
  take_position_bias(import, "wbias", module);
  module.layer.mixer = with<AftFullConfig>(projections);
  if (hints.window == 0) return module;
  auto local = with<AftLocalConfig>(projections);
  local.window = hints.window;
  module.layer.mixer = local;
  module.source = "AFTLocal";
  return module;
}

}  // namespace

Importers aft_importers() {
  return {
      {{"AFT_FULL (fc_q, fc_k, fc_v, position_biases)", [](const Import& import) { return import.has("fc_q.weight"); },
        import_aft_full},
       {"AFTLocal (query, key, value, output, pos_bias)",
        [](const Import& import) { return import.has("query.weight") && import.has("pos_bias"); }, import_aft_local},
       {"AFTFull and AFTSimple (to_q, to_k, to_v, project, wbias)",
        [](const Import& import) { return import.has("to_q.weight") && import.has("project.weight"); },
        import_aft_projected}},
      {}};
}

}  // namespace capstan
