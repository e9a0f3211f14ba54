// Keys that moved: translated for runs, refused for users, with a table of planted rows.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "core/base/error.hpp"
#include "run/setup/saved_config.hpp"
#include "run/yaml/moved_keys.hpp"
#include "run/yaml/yaml_parse.hpp"
#include "tests/run/yaml/sample_config.hpp"

namespace capstan {
namespace {

/// The name of a map becomes its type.
bool name_is_type(ConfigNode& mixer) {
  ConfigNode* const name = mixer.find("name");
  if (name == nullptr) return false;
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
    {"model.layers.*.mixer.type", "custom", "use mixer: {type: NAME, ...}", name_is_type},
    {"model.size", "", "use model.width", size_is_width},
    {"model.extra", "", "remove it", drop_extra},
    {"model.width", "", "use model.breadth", width_is_breadth},
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
  try {
    problems.throw_if_any();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
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
  CHECK(translated == std::vector<std::string>{"model.layers.0.mixer.type", "model.layers.2.mixer.type", "model.size",
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
  CHECK(translate(model, "model", planted) == std::vector<std::string>{"model.layers.0.mixer.type"});
  CHECK(write_flow(model) == "{layers: [{mixer: {type: mine}}]}");
  ConfigNode data = tree_of("{size: 3}");
  CHECK(translate(data, "data", planted).empty());
  CHECK(write_flow(data) == "{size: 3}");
}

TEST_CASE("moved keys: what a user has written is refused with its place and the new key") {
  CHECK(refusal(old_config) ==
        "a.yaml:2:3: model.size: use model.width\n"
        "a.yaml:3:3: model.extra: remove it\n"
        "a.yaml:5:15: model.layers.0.mixer.type: use mixer: {type: NAME, ...}\n"
        "a.yaml:7:38: model.layers.2.mixer.type: use mixer: {type: NAME, ...}");
  CHECK(refusal("model: {breadth: 8, layers: [{mixer: local}]}") == "");
  for (const char* const odd :
       {"model: 3", "model: [1]", "model: {layers: 3}", "model: {layers: {mixer: custom}}", "3"})
    CHECK(refusal(odd) == "");
}

TEST_CASE(
    "moved keys: what only published weights need is in a map compat now, but options of a program's own mixer stay") {
  ConfigNode tree = tree_of(
      "model: {layers: [{mixer: {type: flash, logits: whole-length, shift_tokens: true, rotary_pairs: halves}, norm: "
      "{clamp: true}}, {mixer: {type: custom, name: mine, key_bias: true}}, {mixer: {type: attention, key_bias: "
      "true}}], "
      "norm_after_post: true}");
  CHECK(translate(tree) == std::vector<std::string>{"model.layers.1.mixer.type", "model.layers.2.mixer.key_bias",
                                                    "model.layers.0.mixer.shift_tokens", "model.layers.0.mixer.logits",
                                                    "model.layers.0.norm.clamp",
                                                    "model.norm_after_post"});  // not rotary_pairs, a default
  CHECK(write_flow(tree) ==
        "{model: {layers: [{mixer: {type: flash, logits: length, compat: {rotary_pairs: halves, shift_tokens: true, "
        "whole_length: true}}, norm: {compat: {clamp: true}}}, {mixer: {type: mine, key_bias: true}}, {mixer: {type: "
        "attention, compat: {key_bias: true}}}], compat: {norm_after_post: true}}}");
}

TEST_CASE("moved keys: each key that is in a map compat now sets the field that it set before") {
  const auto model_of = [](const std::string& keys) {
    return std::get<LanguageModelConfig>(
        saved_part<TaskConfig>("type: language-model\nwidth: 64\n" + keys, "model", "config.yaml"));
  };
  const auto mixer_of = [&](const std::string& mixer) {
    return model_of("layers: [{mixer: {type: " + mixer + "}}]").layers[0].mixer;
  };
  CHECK(std::get<AftSimpleConfig>(mixer_of("aft-simple, key_bias: true")).key_bias);
  CHECK(std::get<AftFullConfig>(mixer_of("aft-full, key_bias: true")).key_bias);
  CHECK(std::get<AftLocalConfig>(mixer_of("aft-local, key_bias: true")).key_bias);
  const auto conv = std::get<AftConvConfig>(mixer_of("aft-conv, key_bias: true, kernel_eps: 0.25"));
  CHECK(conv.key_bias);
  CHECK(conv.kernel_eps == 0.25);
  CHECK(std::get<FastformerConfig>(mixer_of("fastformer, logit_bias: true")).logit_bias);
  const auto attention =
      std::get<AttentionConfig>(mixer_of("attention, key_bias: true, rotary_dims: 8, rotary_pairs: interleaved"));
  CHECK(attention.key_bias);
  CHECK(attention.rotary.dims == 8);
  CHECK(attention.rotary.pairs == RotaryPairs::interleaved);
  const auto check_unit = [](const GatedUnitConfig& unit) {
    CHECK(unit.rotary.dims == 8);
    CHECK(unit.rotary.pairs == RotaryPairs::interleaved);
    CHECK(unit.least_length == 3);
    CHECK(unit.t5_scale == 0.25);
    CHECK(unit.logits == LogitForm::length);
    CHECK(unit.whole_length);
  };
  const std::string unit =
      ", rotary_dims: 8, rotary_pairs: interleaved, least_length: 3, t5_scale: 0.25, logits: whole-length";
  const auto gau = std::get<GauConfig>(mixer_of("gau, paper_length: 77" + unit));
  check_unit(gau);
  CHECK(gau.paper_length == 77);
  const auto flash = std::get<FlashConfig>(mixer_of("flash, shift_tokens: true" + unit));
  check_unit(flash);
  CHECK(flash.shift_tokens);
  const LanguageModelConfig model = model_of(
      "layers: [{norm: {type: rms, clamp: true}}]\nfinal_norm: {type: scale, clamp: true}\nnorm_after_post: true");
  CHECK(model.layers[0].norm.clamp);
  CHECK(model.final_norm.clamp);
  CHECK(model.norm_after_post);
}

TEST_CASE("moved keys: those that are gone leave a run, which is told if it had set them") {
  ConfigNode tree = tree_of(
      "train: {min_delta: 0.01, init_map: {\"head.*\": \"\", \"a.*\": \"b.*\"}, optimizer: {type: muon, nesterov: "
      "true, iterations: 5, update_rms: 0.4}}");
  CHECK(translate(tree) == std::vector<std::string>{"train.min_delta", "train.optimizer.update_rms", "train.init_map"});
  CHECK(write_flow(tree) == "{train: {optimizer: {type: muon}, init_skip: [\"head.*\"]}}");
  ConfigNode sgd = tree_of("train: {optimizer: {type: sgd, nesterov: true}}");
  CHECK(translate(sgd).empty());
  CHECK(write_flow(sgd) == "{train: {optimizer: {type: sgd, nesterov: true}}}");
  ProblemList problems;
  CHECK(refuse_moved(tree_of("model: {layers: [{mixer: {key_bias: true}}]}\ntrain: {min_delta: 1}"), problems));
  CHECK_THROWS_WITH_AS(problems.throw_if_any(),
                       "a.yaml:1:27: model.layers.0.mixer.key_bias: moved in version 0.2; use compat: {key_bias: ...}\n"
                       "a.yaml:2:9: train.min_delta: gone in version 0.2; remove it: any better value is a new best",
                       ConfigError);
}

TEST_CASE("moved keys: only a file among those of a run is a run's own") {
  const std::string folder = sample::temporary_path();
  std::filesystem::create_directory(folder);
  for (const char* const name : {"config.yaml", "mine.yaml"}) std::ofstream(folder + "/" + name) << "a: 1\n";
  CHECK_FALSE(is_run_config(folder + "/config.yaml"));
  for (const char* const name : {"tokenizer.json", "metrics.jsonl", "checkpoints"}) {
    std::ofstream(folder + "/" + name) << "";
    CHECK(is_run_config(folder + "/config.yaml"));
    CHECK_FALSE(is_run_config(folder + "/mine.yaml"));
    std::filesystem::remove(folder + "/" + name);
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace capstan
