// A configuration that names a mixer of the program's own.
#include <doctest/doctest.h>

#include "apps/config/config.hpp"
#include "apps/runs/run_config.hpp"
#include "core/base/error.hpp"

namespace capstan {
namespace {

const char* const text = R"(
name: mine
data: {type: text, train: [text.txt]}
train: {steps: 1}
model:
  type: language-model
  layers:
    - mixer: aft-simple
    - mixer: {type: custom, name: test-mine}
)";

TEST_CASE("a custom mixer is accepted once it is registered, and told from others in what a checkpoint records") {
  CHECK_THROWS_WITH_AS(
      load_config_text<RunConfig>(text, "a.yaml"),
      doctest::Contains("model.layers.1.mixer.name: this program has no mixer \"test-mine\" of its own"), ConfigError);
  register_mixer("test-mine", [](const Scope&, const MixerShape&) { return std::unique_ptr<Mixer>(); });
  const RunConfig config = load_config_text<RunConfig>(text, "a.yaml");
  CHECK(to_yaml(config).find("name: test-mine") != std::string::npos);
  CHECK_THROWS_WITH_AS(load_config_text<RunConfig>("name: a\ndata: {type: text, train: [a]}\ntrain: {steps: 1}\nmodel: "
                                                   "{type: language-model, layers: [{mixer: custom}]}",
                                                   "a.yaml"),
                       doctest::Contains("model.layers.0.mixer.name"), ConfigError);
}

}  // namespace
}  // namespace capstan
