// What the mixers say they keep for their pullbacks, against what the pool has in use after a forward pass.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/autograd/tape.hpp"
#include "core/machine/pool.hpp"
#include "nn/systems/mixer_config.hpp"
#include "tests/nn/systems/samples.hpp"
#include "tests/support/compare.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

struct CostCase {
  std::string name;
  MixerConfig config;
};

using Options = std::vector<std::pair<std::string, std::string>>;

/// Options on which the number of kept elements depends, as YAML has them; those of a row are set together.
const std::vector<Options> option_rows = {{{"output_projection", "false"}},
                                          {{"inner", "32"}},
                                          {{"position_bias", "dense"}},
                                          {{"heads", "16"}},
                                          {{"value", "own"}},
                                          {{"kernel", "softmax"}},
                                          {{"global", "false"}},
                                          {{"local", "false"}}};

/// Every alternative as it is by default, and with each row of options that it has.
template <class... Configs>
std::vector<CostCase> cost_cases(const std::variant<Configs...>*) {
  std::vector<CostCase> all;
  const auto add = [&](auto* none) {
    using Config = std::remove_pointer_t<decltype(none)>;
    if constexpr (!std::is_same_v<Config, CustomMixerConfig>) {
      all.push_back({Config::type_name, Config{}});
      for (const Options& row : option_rows) {
        CostCase changed{Config::type_name, Config{}};
        bool known = true;
        for (const auto& [option, value] : row) {
          known = known && set_option(changed.config, option, value);
          changed.name += fmt::format(", {}: {}", option, value);
        }
        if (known) all.push_back(changed);
      }
    }
  };
  (add(static_cast<Configs*>(nullptr)), ...);
  return all;
}

/// What a recorded forward pass keeps, its result apart, as a share of what the mixer's cost predicts.
double kept_share(const Mixer& mixer, int64_t batch, int64_t length) {
  const Context context = Context::evaluation(batch, length);
  const Var x = Var::leaf(normal_array({batch, length, 64}, 12));
  TapeScope scope;
  const size_t before = pool::stats().bytes_in_use;
  const Var y = mixer.forward(x, context);
  const double kept = static_cast<double>(pool::stats().bytes_in_use - before) / sizeof(real);
  const double predicted = mixer.cost(length).saved_elements * static_cast<double>(batch * length);
  return (kept - static_cast<double>(y.size())) / predicted;
}

TEST_CASE("the cost of every mixer: what a recorded forward pass keeps per token, in both directions") {
  struct Sizes {
    int64_t batch, length;
  };
  // The pool rounds an array up to the next of 8, 9, ..., 15 times a power of two. 64 and 192 elements per token of
  // hardly less than 16 x 2^n tokens fill their blocks, 132 (aft-conv) those of 15 x 2^n: the better of two sizes
  // counts.
  const std::vector<std::vector<Sizes>> documents = {{{16, 255}, {15, 255}}, {{2, 2040}, {2, 1912}}};
  for (const auto& [name, config] : cost_cases(static_cast<const MixerConfig*>(nullptr)))
    for (const bool causal : {false, true})
      for (const std::vector<Sizes>& sizes : documents) {
        ParamStore store;
        const auto mixer = make_mixer(Scope(store, 1), {64, sizes.front().length, causal, 1}, config);
        if (mixer->forward_only()) continue;  // its cost is not known
        std::vector<double> shares;
        for (const auto& [batch, length] : sizes) shares.push_back(kept_share(*mixer, batch, length));
        const auto [least, greatest] = std::minmax_element(shares.begin(), shares.end());
        CHECK_MESSAGE((*least > 0.99 && *least < 1.03),
                      fmt::format("{}, {}, documents of {} tokens: {} to {} of the elements predicted", name,
                                  causal ? "causal" : "bidirectional", sizes.front().length, *least, *greatest));
      }
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
