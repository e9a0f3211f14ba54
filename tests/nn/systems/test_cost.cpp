// What the mixers say they keep for their pullbacks, against what the pool has in use after a forward pass.
#include <doctest/doctest.h>

#include "core/autograd/tape.hpp"
#include "core/machine/pool.hpp"
#include "nn/systems/make_mixer.hpp"
#include "tests/nn/systems/samples.hpp"
#include "tests/support/compare.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace testing {
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
                                          {{"kernel", "softmax"}, {"logits", "log-length"}},
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
  for (const auto& [name, config] : cost_cases(static_cast<const MixerConfig*>(nullptr)))
    for (const bool causal : {false, true})
      for (const int64_t length : {255, 2040}) {
        ParamStore store;
        const auto mixer = make_mixer(Scope(store, 1), {64, length, causal, 1}, config);
        const double kept = kept_elements(*mixer, length), predicted = mixer->cost(length).saved_elements;
        CHECK_MESSAGE((kept > 0.99 * predicted && kept < 1.07 * predicted),
                      fmt::format("{}, {}, {} tokens: {} elements per token, {} predicted", name,
                                  causal ? "causal" : "bidirectional", length, kept, predicted));
      }
}

}  // namespace
}  // namespace testing
}  // namespace capstan::CAPSTAN_PRECISION
