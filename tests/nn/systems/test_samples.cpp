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

}  // namespace capstan::CAPSTAN_PRECISION::testing
