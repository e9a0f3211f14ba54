// Each weight matrix costs two operations per element and token; what mixers compute beside these products comes from
// Mixer::cost(). The summary() of a type of model then corrects parts that do not run once per token, such as a head.
// tests/models/test_summary.cpp.
#include "models/summary.hpp"

#include "core/base/error.hpp"
#include "core/strings/strings.hpp"
#include "nn/layers/feed_forward.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// "blocks.3" of "blocks.3.mixer.to_qkv.weight", "embed" of "embed.weight".
std::string part_of(const std::string& name) {
  const size_t dot = name.find('.');
  return name.substr(0, name.compare(0, dot, "blocks") == 0 ? name.find('.', dot + 1) : dot);
}

/// FLOPs per token of the matrix product with a parameter; tables that are only looked up cost nothing.
double product_flops(const std::string& part, const Param& param) {
  const bool table = part == "embed" || part == "positions";
  return !table && param.var.rank() == 2 && ends_with(param.name, ".weight")
             ? 2.0 * static_cast<double>(param.var.size())
             : 0;
}

/// Elements per token that a block keeps for its pullbacks: the inputs of norms and of branches (without a norm they
/// are one array), what the mixer keeps, and the raw hidden layer of the feed-forward network. `owner`: the name of the
/// block whose parameters it uses.
double saved_elements(const std::string& owner, const LayerConfig& config, const Block& block, const ParamStore& store,
                      double width, int64_t length) {
  const double inputs = (config.norm.type == NormKind::none ? 1 : 2) * width;
  double saved = block.mixer().cost(length).saved_elements + inputs;
  if (const Param* const up = store.known(owner + ".feed_forward.up.weight"))
    saved += inputs + static_cast<double>(up->var.dim(0));
  return saved;
}

/// For a mixer that does not say what it costs: its products with parameters keep what they read and give, unless the
/// block is recomputed, and a step repeats them for each of `length` tokens.
void estimate_mixer(LayerSummary& layer, const ParamStore& store, int64_t length, bool recompute) {
  for (const Param& param : store.params()) {
    const double flops = starts_with(param.name, layer.name + ".mixer.") ? product_flops(layer.name, param) : 0;
    if (flops == 0) continue;
    layer.decode_flops += flops * static_cast<double>(length - 1);
    if (!recompute) layer.activation_bytes += static_cast<double>(param.var.dim(0) + param.var.dim(1)) * sizeof(real);
  }
}

/// The sum of one member over all parts.
template <class Number>
Number total_of(const std::vector<LayerSummary>& layers, Number LayerSummary::*number) {
  Number total = 0;
  for (const LayerSummary& layer : layers) total += layer.*number;
  return total;
}

}  // namespace

ModelSummary summarize_parameters(const ParamStore& store, int64_t length) {
  check(length > 0, "summary: documents of {} tokens", length);
  ModelSummary summary;
  summary.length = length;
  for (const Param& param : store.params()) {
    const std::string part = part_of(param.name);
    LayerSummary& layer = summary.part(part);
    layer.parameters += param.var.size();
    if (param.frozen) summary.frozen += param.var.size();
    layer.flops += product_flops(part, param);
    layer.decode_flops = layer.flops;
  }
  return summary;
}

ModelSummary Model::summary(const ParamStore& store, int64_t length, DecodeStates) const {
  return summarize_parameters(store, length);
}

ModelSummary summarize_stack(const Stack& stack, const ParamStore& store, int64_t length, DecodeStates states) {
  ModelSummary summary = summarize_parameters(store, length);
  summary.decodes = stack.shape().causal;
  summary.recompute = stack.config().recompute;
  summary.estimated = stack.forward_only_mixers();
  const std::vector<LayerConfig> configs = expanded_layers(stack.config());
  const double width = static_cast<double>(stack.config().width);
  for (size_t i = 0; i < configs.size(); ++i) {
    const Block& block = stack.blocks()[i];
    LayerSummary& layer = summary.part(fmt::format("blocks.{}", i));
    layer.mixer = mixer_label(configs[i].mixer);
    const MixerCost cost = block.mixer().cost(length);
    layer.flops += cost.mixing_flops;
    layer.decode_flops += cost.decode_flops;
    const double parts =
        configs[i].feed_forward.type == FeedForwardKind::none ? 1 : 2;  // each keeps its input if recomputed
    const double saved =
        stack.config().recompute ? parts * width : saved_elements(layer.name, configs[i], block, store, width, length);
    layer.activation_bytes = saved * sizeof(real);
    if (block.mixer().forward_only()) estimate_mixer(layer, store, length, stack.config().recompute);
    if (summary.decodes && states == DecodeStates::measured)
      layer.state_bytes = block.make_state(1)->elements(length) * static_cast<int64_t>(sizeof(real));
  }
  const NgramEmbeddingConfig& ngrams = stack.config().ngram_embedding;
  if (!ngrams.orders.empty()) {
    LayerSummary& layer = summary.part("ngram_embedding");
    layer.flops += static_cast<double>(ngrams.orders.size()) * static_cast<double>(ngrams.width);
    layer.decode_flops = layer.flops;
    layer.activation_bytes = (static_cast<double>(ngrams.width) + (ngrams.every_block ? width : 0)) * sizeof(real);
  }
  for (LayerSummary& layer : summary.layers)
    if (layer.name == "final_norm" || layer.name == "embed_norm") layer.activation_bytes = width * sizeof(real);
  return summary;
}

LayerSummary& ModelSummary::part(const std::string& name) {
  if (!layers.empty() && layers.back().name == name) return layers.back();
  for (LayerSummary& layer : layers)
    if (layer.name == name) return layer;
  layers.emplace_back();
  layers.back().name = name;
  return layers.back();
}

int64_t ModelSummary::parameters() const { return total_of(layers, &LayerSummary::parameters); }
double ModelSummary::flops() const { return total_of(layers, &LayerSummary::flops); }
double ModelSummary::decode_flops() const { return total_of(layers, &LayerSummary::decode_flops); }
double ModelSummary::activation_bytes() const { return total_of(layers, &LayerSummary::activation_bytes); }
int64_t ModelSummary::state_bytes() const { return total_of(layers, &LayerSummary::state_bytes); }

double ModelSummary::training_flops() const {
  double total = 3 * flops();
  for (const LayerSummary& layer : layers)
    if (recompute && !layer.mixer.empty()) total += layer.flops;
  return total;
}

}  // namespace capstan::CAPSTAN_PRECISION
