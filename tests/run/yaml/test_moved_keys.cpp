// Keys that moved: translated for runs, refused for users, with a table of planted rows.
#include <doctest/doctest.h>

#include <filesystem>

#include "core/base/error.hpp"
#include "run/setup/saved_config.hpp"
#include "run/yaml/config_source.hpp"
#include "run/yaml/moved_keys.hpp"
#include "run/yaml/yaml_parse.hpp"
#include "tests/run/yaml/sample_config.hpp"

namespace capstan {
namespace {

/// The name of a map becomes its type.
bool name_is_type(ConfigNode& mixer) {
  ConfigNode* const name = mixer.find("name");
  mixer.find("type")->text = name->text;
  mixer.children.erase(mixer.children.begin() + (name - mixer.children.data()));
  return true;
}

/// `size` is now `width`.
bool size_is_width(ConfigNode& model) {
  model.find("size")->key = "width";
  return true;
}

/// `extra` is gone; it meant something if it was not empty.
bool drop_extra(ConfigNode& model) {
  ConfigNode* const extra = model.find("extra");
  const bool used = !extra->children.empty();
  model.children.erase(model.children.begin() + (extra - model.children.data()));
  return used;
}

/// `width` moved again, later, to `breadth`.
bool width_is_breadth(ConfigNode& model) {
  model.find("width")->key = "breadth";
  return true;
}

const std::vector<MovedKey> planted = {
    {"model.layers.*.mixer.name", "use mixer: {type: NAME, ...}", name_is_type},
    {"model.size", "use model.width", size_is_width},
    {"model.extra", "remove it", drop_extra},
    {"model.width", "use model.breadth", width_is_breadth},
};

ConfigNode tree_of(const std::string& text) {
  ProblemList problems;
  auto tree = parse_yaml(text, Place{"a.yaml"}, Places::kept, "", problems);
  problems.throw_if_any();
  return *tree;
}

std::string refusal(const std::string& text) {
  ProblemList problems;
  const bool refused = refuse_moved(tree_of(text), problems, planted);
  CHECK(refused == (problems.size() > 0));
  return message_of<ConfigError>([&] { problems.throw_if_any(); });
}

constexpr const char* old_config =
    "model:\n"
    "  size: 8\n"
    "  extra: [1]\n"
    "  layers:\n"
    "    - mixer: {type: custom, name: mine, heads: 2}\n"
    "    - mixer: {type: local}\n"
    "    - mixer: {heads: 4, name: other, type: custom}\n";

TEST_CASE("moved keys: what a run has is translated, one version after the other") {
  ConfigNode tree = tree_of(old_config);
  const std::vector<std::string> translated = translate(tree, "", planted);
  CHECK(translated == std::vector<std::string>{"model.layers.0.mixer.name", "model.layers.2.mixer.name", "model.size",
                                               "model.extra", "model.width"});
  const ConfigNode now = tree_of(
      "model: {breadth: 8, layers: [{mixer: {type: mine, heads: 2}}, {mixer: {type: local}}, {mixer: {heads: 4, type: "
      "other}}]}");
  CHECK(write_flow(tree) == write_flow(now));
  CHECK(translate(tree, "", planted).empty());
  CHECK(translation_note("runs/a/config.yaml", {"model.size", "model.extra"}) ==
        "runs/a/config.yaml: written by an earlier version; translated, since they moved or went: model.size, "
        "model.extra");
  CHECK(translation_note("runs/a/config.yaml", {}) == "");
}

TEST_CASE("moved keys: a part of a configuration is translated by the same rows, and defaults are not told of") {
  ConfigNode model = tree_of("{extra: [], layers: [{mixer: {type: custom, name: mine}}]}");
  CHECK(translate(model, "model", planted) == std::vector<std::string>{"model.layers.0.mixer.name"});
  CHECK(write_flow(model) == "{layers: [{mixer: {type: mine}}]}");
  ConfigNode data = tree_of("{size: 3}");
  CHECK(translate(data, "data", planted).empty());
  CHECK(write_flow(data) == "{size: 3}");
}

TEST_CASE("moved keys: what a user has written is refused with its place and the new key") {
  CHECK(refusal(old_config) ==
        "a.yaml:2:3: model.size: use model.width\n"
        "a.yaml:3:3: model.extra: remove it\n"
        "a.yaml:5:29: model.layers.0.mixer.name: use mixer: {type: NAME, ...}\n"
        "a.yaml:7:25: model.layers.2.mixer.name: use mixer: {type: NAME, ...}");
  CHECK(refusal("model: {breadth: 8, layers: [{mixer: local}]}") == "no error");
  for (const char* const odd :
       {"model: 3", "model: [1]", "model: {layers: 3}", "model: {layers: {mixer: custom}}", "3"})
    CHECK(refusal(odd) == "no error");
}

TEST_CASE(
    "moved keys: label smoothing is a key of the loss, and what is gone leaves a run, which is told if it had set it") {
  ConfigNode tree = tree_of("{model: {label_smoothing: 0.1}, train: {tensorboard: true}}");
  CHECK(translate(tree) == std::vector<std::string>{"model.label_smoothing", "train.tensorboard"});
  CHECK(write_flow(tree) == "{model: {loss: {type: cross-entropy, label_smoothing: 0.1}}, train: {}}");
  ConfigNode usual = tree_of("{model: {label_smoothing: 0}, train: {tensorboard: false, lr: 1}}");
  CHECK(translate(usual).empty());
  CHECK(write_flow(usual) == "{model: {}, train: {lr: 1}}");
  ProblemList problems;
  CHECK(refuse_moved(tree_of("train: {tensorboard: true}"), problems));
  CHECK_THROWS_WITH_AS(problems.throw_if_any(),
                       "a.yaml:1:9: train.tensorboard: gone in version 0.3; scripts/tensorboard.py writes event files "
                       "from the metrics.jsonl of a run",
                       ConfigError);
}

TEST_CASE("moved keys: only a file among those of a run is a run's own") {
  const TemporaryFolder folder;
  for (const char* const name : {"config.yaml", "mine.yaml"}) folder.write(name, "a: 1\n");
  CHECK_FALSE(is_run_config(folder / "config.yaml"));
  for (const char* const name : {"tokenizer.json", "metrics.jsonl", "checkpoints"}) {
    folder.write(name, "");
    CHECK(is_run_config(folder / "config.yaml"));
    CHECK_FALSE(is_run_config(folder / "mine.yaml"));
    std::filesystem::remove(folder / name);
  }
}

}  // namespace
}  // namespace capstan
