// A configuration that names a mixer of the program's own.
#include <doctest/doctest.h>

#include "core/base/error.hpp"
#include "nn/systems/register_mixer.hpp"
#include "run/setup/run_config.hpp"
#include "run/yaml/config.hpp"
#include "tests/support/texts.hpp"

namespace capstan {
namespace {

/// A configuration whose second layer has this mixer.
std::string with_mixer(const std::string& mixer) {
  return "name: mine\n"
         "data: {type: text, train: [text.txt]}\n"
         "train: {steps: 1}\n"
         "model:\n"
         "  type: language-model\n"
         "  layers:\n"
         "    - mixer: aft-simple\n"
         "    - mixer: " +
         mixer + "\n";
}

RunConfig load(const std::string& mixer) { return load_config_text<RunConfig>(with_mixer(mixer), "a.yaml"); }

enum class Shade { light, dark };

std::vector<EnumName<Shade>> enum_names(Shade) { return {{Shade::light, "light"}, {Shade::dark, "dark"}}; }

struct OptionsConfig {
  static constexpr const char* type_name = "test-options";
  int64_t heads = 4;
  double rate = 0.5;
  bool bias = false;
  Shade shade = Shade::light;
  std::vector<int64_t> sizes = {1, 2};
  std::optional<double> limit;

  bool has_position_limit() const { return true; }
  std::string prefix_obstacle() const { return "a test"; }
};

template <class Fields>
void describe(Fields& f, OptionsConfig& c) {
  f("heads", c.heads, at_least(1), "divides the width");
  f("rate", c.rate, between(0, 1), "a rate");
  f("bias", c.bias, any(), "a bias");
  f("shade", c.shade, any(), "a shade");
  f("sizes", c.sizes, not_empty(), "some sizes");
  f("limit", c.limit, greater(0), "a limit");
}
void validate(const OptionsConfig& c, const ModelShape& model, Problems& problems) {
  check_heads(c.heads, model, problems);
}
std::unique_ptr<Mixer> make(const Scope&, const MixerShape&, const OptionsConfig&) { return nullptr; }

const OptionsConfig& options(const RunConfig& config) {
  const auto& model = std::get<LanguageModelConfig>(config.model);
  return std::get<CustomMixerConfig>(model.layers[1].mixer).options.as<OptionsConfig>();
}

/// Registers test-options once, whichever case runs first.
const bool registered = [] {
  register_mixer<OptionsConfig>();
  return true;
}();

TEST_CASE("a registered mixer is a type like those of the library, and an unknown type is told what there is") {
  REQUIRE(registered);
  CHECK(to_yaml(load("test-options")).find("type: test-options") != std::string::npos);
  const auto types = [](const std::string& mixer) { return message_of<ConfigError>([&] { load(mixer); }); };
  std::string known;
  for (const MixerConfig& mixer : default_mixers()) known += std::string(mixer_name(mixer)) + ", ";
  known = "expected one of (" + known + "test-options), got ";
  CHECK(types("{type: test-option}") ==
        "a.yaml:8:21: model.layers.1.mixer.type: " + known + "\"test-option\", did you mean test-options?");
  CHECK(types("test-mine") == "a.yaml:8:14: model.layers.1.mixer: " + known + "\"test-mine\"");
}

TEST_CASE("what a registered mixer says of prefixes is said with its key") {
  REQUIRE(registered);
  const std::string config = with_mixer("test-options") + "  prefix: bidirectional\n";
  CHECK_THROWS_WITH_AS(load_config_text<RunConfig>(config, "a.yaml"), doctest::Contains("model.prefix"), ConfigError);
}

TEST_CASE("the options of a registered mixer are keys beside its name: read, limited, saved, compared") {
  REQUIRE(registered);
  const RunConfig plain = load("test-options");
  CHECK(options(plain).heads == 4);
  const RunConfig config =
      load("{type: test-options, heads: 8, rate: 0.25, bias: true, shade: dark, sizes: [3], limit: 2}");
  CHECK(options(config).heads == 8);
  CHECK(options(config).rate == 0.25);
  CHECK(options(config).bias);
  CHECK(options(config).shade == Shade::dark);
  CHECK(options(config).sizes == std::vector<int64_t>{3});
  CHECK(options(config).limit == 2);

  const std::string yaml = to_yaml(config);
  CHECK(yaml.find("heads: 8") != std::string::npos);
  CHECK(yaml.find("shade: dark") != std::string::npos);
  CHECK(to_yaml(load_config_text<RunConfig>(yaml, "saved.yaml")) == yaml);
  const std::vector<ConfigDifference> differences = diff_configs(plain, config);
  REQUIRE(differences.size() == 7);  // two for the list, which is shorter
  CHECK(differences[0].path == "model.layers.1.mixer.heads");
}

TEST_CASE("what is wrong with the options of a registered mixer is said with its place") {
  const auto problem = [](const std::string& keys) {
    return message_of<ConfigError>([&] { load("{type: test-options, " + keys + "}"); });
  };
  const std::string at = "a.yaml:8:35: model.layers.1.mixer.";
  CHECK(problem("heads: 8") == "no error");
  CHECK(problem("heads: 0") == "a.yaml:8:42: model.layers.1.mixer.heads: expected a whole number (at least 1), got 0");
  CHECK(problem("heds: 8") == at + "heds: unknown key for type test-options, did you mean heads?");
  CHECK(problem("shade: drak") ==
        "a.yaml:8:42: model.layers.1.mixer.shade: expected one of (light, dark), got \"drak\", did you mean dark?");
  CHECK(problem("heads: 7") == "a.yaml:8:42: model.layers.1.mixer.heads: 7 heads do not divide the width 256");
}

}  // namespace
}  // namespace capstan
