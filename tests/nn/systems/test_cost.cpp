// What the mixers say they keep for their pullbacks, against what the pool has in use after a forward pass.
#include <doctest/doctest.h>

#include "core/autograd/tape.hpp"
#include "core/machine/pool.hpp"
#include "nn/systems/make_mixer.hpp"
#include "tests/support/compare.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace testing {
namespace {

struct CostCase {
  std::string name;
  MixerConfig config;
};

template <class Config, class Change>
MixerConfig changed(Config config, const Change& change) {
  change(config);
  return config;
}

/// The systems, and the options on which the number of kept elements depends.
std::vector<CostCase> cost_cases() {
  const auto softmax = [](auto& c) {
    c.kernel = AttentionKernel::softmax;
    c.logits = LogitForm::log_length;
  };
  return {{"aft-simple", AftSimpleConfig{}},
          {"aft-simple, alone", changed(AftSimpleConfig{}, [](auto& c) { c.output_projection = false; })},
          {"aft-simple, inner", changed(AftSimpleConfig{}, [](auto& c) { c.inner = 32; })},
          {"aft-full", AftFullConfig{}},
          {"aft-full, dense", changed(AftFullConfig{}, [](auto& c) { c.position_bias = PositionBias::dense; })},
          {"aft-local", AftLocalConfig{}},
          {"aft-conv", AftConvConfig{}},
          {"aft-conv, 16 heads", changed(AftConvConfig{}, [](auto& c) { c.heads = 16; })},
          {"fastformer", FastformerConfig{}},
          {"fastformer, own values", changed(FastformerConfig{}, [](auto& c) { c.value = FastformerValue::own; })},
          {"fastformer, alone", changed(FastformerConfig{}, [](auto& c) { c.output_projection = false; })},
          {"attention", AttentionConfig{}},
          {"attention, 16 heads", changed(AttentionConfig{}, [](auto& c) { c.heads = 16; })},
          {"gau", GauConfig{}},
          {"gau, softmax", changed(GauConfig{}, softmax)},
          {"flash", FlashConfig{}},
          {"flash, softmax", changed(FlashConfig{}, softmax)},
          {"flash, local", changed(FlashConfig{}, [](auto& c) { c.global = false; })},
          {"flash, global", changed(FlashConfig{}, [](auto& c) { c.local = false; })}};
}

/// Few enough that blocks fit into a size class of the pool that is hardly larger.
constexpr int64_t token_count = 4080;

/// Elements per token that a recorded forward pass keeps, its result apart.
double kept_elements(const Mixer& mixer, int64_t length) {
  const int64_t batch = token_count / length;
  const Context context = Context::evaluation(batch, length);
  const Var x = Var::leaf(normal_array({batch, length, 64}, 12));
  TapeScope scope;
  const size_t before = pool::stats().bytes_in_use;
  const Var y = mixer.forward(x, context);
  const double bytes = static_cast<double>(pool::stats().bytes_in_use - before);
  return (bytes / sizeof(real) - static_cast<double>(y.size())) / token_count;
}

TEST_CASE("the cost of every mixer: what a recorded forward pass keeps per token, in both directions") {
  for (const auto& [name, config] : cost_cases())
    for (const bool causal : {false, true})
      for (const int64_t length : {255, 2040}) {
        ParamStore store;
        const auto mixer = make_mixer(Scope(store, 1), {64, length, causal, 1}, config);
        const double kept = kept_elements(*mixer, length), predicted = mixer->cost(length).saved_elements;
        CHECK_MESSAGE((kept > 0.99 * predicted && kept < 1.06 * predicted), name, causal ? ", causal, " : ", ", length,
                      " tokens: ", kept, " elements per token, ", predicted, " predicted");
      }
}

}  // namespace
}  // namespace testing
}  // namespace capstan::CAPSTAN_PRECISION
