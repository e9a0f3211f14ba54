// What every mixer must do, for each mixer there is.
#include <atomic>
#include <thread>

#include "core/ops/ops.hpp"
#include "nn/systems/mixer_config.hpp"
#include "tests/nn/mixer/mixer_suite.hpp"
#include "tests/nn/systems/samples.hpp"
#include "tests/support/ragged.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

TEST_CASE("every mixer of the variant does what every mixer must do") {
  for (const MixerCase& c : mixer_samples(5)) check_mixer(c);
}

TEST_CASE("every mixer has a name of its own, can be made, and says what it costs") {
  std::vector<std::string> names;
  for (const MixerConfig& config : default_mixers()) {
    names.emplace_back(mixer_name(config));
    ParamStore store;
    const auto mixer = make_mixer(Scope(store, 1), {8, 16, true, 1}, config);
    CHECK((mixer->forward_only() || mixer->cost(16).saved_elements > 0));
  }
  CHECK(names.size() == std::variant_size_v<MixerConfig> - 1);  // registered ones: test_register_mixer.cpp
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
}

TEST_CASE("every mixer computes the same while another thread sets the number of threads") {
  const Threads one(1);
  for (const MixerCase& c : mixer_samples(5)) {
    INFO(c.name);
    const auto built = built_mixer(c, true, 70);
    const Array x = normal_array({6, 70, width}, 4);
    const auto computed = [&] {
      const Var input = Var::leaf(x);
      TapeScope scope;
      const Var y = built.module->forward(input, Context{segments_of_lengths({70, 69, 70, 60, 70, 1}, 70)});
      scope.backward(sum(square(y)));
      return std::pair(y.value(), input.grad());
    };
    const auto wanted = computed();
    std::atomic<bool> done{false};
    std::thread setter([&] {
      for (int count = 1; !done; count = 9 - count) set_threads(count);
    });
    bool same = true;
    for (int round = 0; round < 40; ++round) {
      const auto again = computed();
      same = same && identical(again.first, wanted.first) && identical(again.second, wanted.second);
    }
    done = true;
    setter.join();
    set_threads(1);
    CHECK(same);
  }
}

TEST_CASE("dropout of attention weights: in training only; padding and batch mates change no mask") {
  for (MixerCase& c : mixer_samples(5)) {
    if (!set_option(c.config, "attention_dropout", "0.4")) continue;
    INFO(c.name);
    for (const bool causal : {true, false}) {
      const auto built = built_mixer(c.config, causal, 41);
      const Array x = normal_array({2, 41, width}, 4);
      const auto trained = [&](const Array& input, const std::vector<int64_t>& lengths,
                               const std::vector<int32_t>& examples) {
        Context context{segments_of_lengths(lengths, input.dim(1)), /*training=*/true, /*step=*/3,
                        Ids(Shape{input.dim(0)}, examples)};
        return built.module->forward(Var(input), context).value();
      };
      const Array y = trained(x, {41, 33}, {8, 5});
      CHECK(!identical(y, forward(*built.module, x, segments_of_lengths({41, 33}, 41))));
      CHECK(identical(y, trained(x, {41, 33}, {8, 5})));
      CHECK(!identical(y, trained(x, {41, 33}, {8, 6})));
      Array alone(Shape{1, 33, width});  // the second text without its padding and its batch mate
      std::copy_n(x.data() + 41 * width, 33 * width, alone.mutable_data());
      const Array z = trained(alone, {33}, {5});
      Array wanted(z.shape());
      std::copy_n(y.data() + 41 * width, 33 * width, wanted.mutable_data());
      CHECK(relative_error(z, wanted, 1) <= layer_tolerance);
    }
  }
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
