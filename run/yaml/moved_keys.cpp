#include "run/yaml/moved_keys.hpp"

#include <algorithm>
#include <filesystem>

#include "core/base/error.hpp"
#include "core/strings/strings.hpp"

namespace capstan {
namespace {

/// Calls `found(parent, key's node, key's path)` for each node that `path` leads to from `node`, which is at `place`.
template <class Node, class Found>
void find_all(Node& node, std::string_view path, const std::string& place, const Found& found) {
  const std::size_t dot = path.find('.');
  const std::string_view part = path.substr(0, dot);
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    auto& child = node.children[i];
    if (part != "*" && (node.kind != NodeKind::map || child.key != part)) continue;
    const std::string here = join_path(place, node.kind == NodeKind::list ? std::to_string(i) : child.key);
    if (dot != std::string_view::npos) {
      find_all(child, path.substr(dot + 1), here, found);
    } else {
      found(node, child, here);
      return;  // a key is in a map once, and `found` may have changed the map
    }
  }
}

template <class Node, class Found>
void find_all(Node& tree, std::string_view below, const MovedKey& moved, const Found& found) {
  std::string_view path = moved.path;
  if (!below.empty()) {
    if (path.substr(0, below.size()) != below) return;
    path.remove_prefix(below.size() + 1);
  }
  find_all(tree, path, std::string(below), [&](Node& parent, Node& node, const std::string& place) {
    if (!moved.value.empty() && (node.kind != NodeKind::scalar || node.text != moved.value)) return;
    const auto* const type = parent.find("type");
    const auto& types = moved.types;
    if (types.empty() || type == nullptr || std::find(types.begin(), types.end(), type->text) != types.end())
      found(parent, node, place);
  });
}

/// Takes the key out of the map, which has it.
ConfigNode take(ConfigNode& map, std::string_view key) {
  const auto at =
      std::find_if(map.children.begin(), map.children.end(), [&](const ConfigNode& child) { return child.key == key; });
  ConfigNode taken = std::move(*at);
  map.children.erase(at);
  return taken;
}

/// The last part of a path.
std::string_view key_of(std::string_view path) { return path.substr(path.rfind('.') + 1); }

void set_compat(ConfigNode& map, ConfigNode value) {
  if (map.find("compat") == nullptr) {
    map.children.emplace_back(ConfigNode{NodeKind::map});
    map.children.back().key = "compat";
  }
  map.find("compat")->children.push_back(std::move(value));
}

/// A key that is in the map `compat` beside it now. `usual`: its default.
MovedKey to_compat(std::string_view path, std::string_view usual, std::vector<std::string_view> types = {}) {
  return {path, "", fmt::format("moved in version 0.2; use compat: {{{}: ...}}", key_of(path)),
          [=](ConfigNode& map) {
            ConfigNode value = take(map, key_of(path));
            const bool told = value.text != usual;
            set_compat(map, std::move(value));
            return told;
          },
          std::move(types)};
}

/// A key without a successor. A run that has another value than the usual one goes on without it.
MovedKey gone(std::string_view path, std::string_view usual, const char* why,
              std::vector<std::string_view> types = {}) {
  return {path, "", fmt::format("gone in version 0.2; remove it: {}", why),
          [=](ConfigNode& map) { return take(map, key_of(path)).text != usual; }, std::move(types)};
}

/// The form of logits in which the length divides the position bias, too.
bool whole_length_is_compat(ConfigNode& mixer) {
  mixer.find("logits")->text = "length";
  ConfigNode whole = scalar_node("true");
  whole.key = "whole_length";
  set_compat(mixer, std::move(whole));
  return true;
}

/// Label smoothing is a key of the loss that has it.
bool smoothing_is_of_the_loss(ConfigNode& model) {
  ConfigNode smoothing = take(model, "label_smoothing");
  if (smoothing.text == "0") return false;
  ConfigNode type = scalar_node("cross-entropy"), loss{NodeKind::map};
  type.key = "type";
  loss.key = "loss";
  loss.children = {std::move(type), std::move(smoothing)};
  model.children.push_back(std::move(loss));
  return true;
}

/// Tensors of init_from got other names, or none.
bool map_is_skip(ConfigNode& train) {
  const ConfigNode map = take(train, "init_map");
  ConfigNode skip{NodeKind::list};
  for (const ConfigNode& entry : map.children)
    if (entry.text.empty()) skip.children.push_back(scalar_node(entry.key, true));
  skip.key = "init_skip";
  train.children.push_back(std::move(skip));
  return !map.children.empty();
}

/// A mixer that a program registers was of type `custom`, with its own name.
bool name_is_type(ConfigNode& mixer) {
  if (mixer.find("name") == nullptr) return false;
  const ConfigNode name = take(mixer, "name");
  mixer.find("type")->text = name.text;
  return true;
}

/// A linear classifier was a text-classifier without layers; other classifiers had the key, too, with empty lists.
bool linear_is_type(ConfigNode& model) {
  ConfigNode linear = take(model, "linear");
  const auto has = [&](const char* key) {
    const ConfigNode* const sizes = linear.find(key);
    return sizes != nullptr && !sizes->children.empty();
  };
  ConfigNode* const type = model.find("type");
  if (type == nullptr || !(has("words") || has("characters"))) return false;
  type->text = "linear-classifier";
  linear.children.insert(linear.children.begin(), std::move(*type));
  model.children = std::move(linear.children);
  return true;
}

}  // namespace

const std::vector<MovedKey>& moved_keys() {
  const std::vector<std::string_view> gated = {"gau", "flash"}, rotary = {"gau", "flash", "attention"};
  static const std::vector<MovedKey> table = {
      {"model.linear", "", "moved in version 0.2; use model: {type: linear-classifier, words: [1, 2], ...}",
       linear_is_type},
      {"model.layers.*.mixer.type", "custom", "moved in version 0.2; use the name of the mixer: {type: NAME, ...}",
       name_is_type},
      to_compat("model.layers.*.mixer.key_bias", "false",
                {"aft-simple", "aft-full", "aft-local", "aft-conv", "attention"}),
      to_compat("model.layers.*.mixer.kernel_eps", "1e-05", {"aft-conv"}),
      to_compat("model.layers.*.mixer.logit_bias", "false", {"fastformer"}),
      to_compat("model.layers.*.mixer.rotary_dims", "0", rotary),
      to_compat("model.layers.*.mixer.rotary_pairs", "halves", rotary),
      to_compat("model.layers.*.mixer.least_length", "16", gated),
      to_compat("model.layers.*.mixer.t5_scale", "0", gated),
      to_compat("model.layers.*.mixer.paper_length", "512", gated),
      to_compat("model.layers.*.mixer.shift_tokens", "false", gated),
      {"model.layers.*.mixer.logits", "whole-length",
       "moved in version 0.2; use logits: length with compat: {whole_length: true}", whole_length_is_compat, gated},
      to_compat("model.layers.*.norm.clamp", "false"),
      to_compat("model.final_norm.clamp", "false"),
      to_compat("model.norm_after_post", "false"),
      {"model.label_smoothing", "", "moved in version 0.3; use model.loss: {type: cross-entropy, label_smoothing: ...}",
       smoothing_is_of_the_loss},
      gone("train.min_delta", "0", "any better value is a new best"),
      gone("train.optimizer.nesterov", "true", "muon always looks one step ahead", {"muon"}),
      gone("train.optimizer.iterations", "5", "there are always five", {"muon"}),
      gone("train.optimizer.update_rms", "0.2", "it is always 0.2; train.lr scales all updates", {"muon"}),
      {"train.init_map", "",
       "gone in version 0.2; use train.init_skip: [PATTERN, ...] to leave tensors out, and rename others in the file",
       map_is_skip},
  };
  return table;
}

std::vector<std::string> translate(ConfigNode& tree, std::string_view below, const std::vector<MovedKey>& table) {
  std::vector<std::string> translated;
  for (const MovedKey& moved : table)
    find_all(tree, below, moved, [&](ConfigNode& parent, ConfigNode&, const std::string& place) {
      if (moved.move(parent)) translated.push_back(place);
    });
  return translated;
}

std::string translation_note(const std::string& source, const std::vector<std::string>& translated) {
  if (translated.empty()) return "";
  return fmt::format("{}: written by an earlier version; translated, since they moved or went: {}", source,
                     join(translated));
}

bool refuse_moved(const ConfigNode& tree, ProblemList& problems, const std::vector<MovedKey>& table) {
  const std::size_t before = problems.size();
  for (const MovedKey& moved : table)
    find_all(tree, "", moved, [&](const ConfigNode&, const ConfigNode& node, const std::string& place) {
      problems.add(node.key_place.given() ? node.key_place : node.place, place, moved.advice);
    });
  return problems.size() > before;
}

std::string moved_advice(std::string_view key, const std::vector<MovedKey>& table) {
  const auto parts_of = [](std::string_view path) {
    std::vector<std::string_view> parts = split(path, ".");
    for (std::string_view& part : parts)
      if (part.find_first_not_of("0123456789") == std::string_view::npos) part = "*";
    return parts;
  };
  const auto wanted = parts_of(key);
  for (const MovedKey& moved : table) {
    const auto parts = parts_of(moved.path);
    if (moved.value.empty() && parts.size() >= wanted.size() &&
        std::equal(wanted.rbegin(), wanted.rend(), parts.rbegin()))
      return moved.advice;
  }
  return "";
}

bool is_run_config(const std::string& file) {
  const std::filesystem::path path(file);
  std::error_code unknown;
  return path.filename() == "config.yaml" && (std::filesystem::exists(path.parent_path() / "checkpoints", unknown) ||
                                              std::filesystem::exists(path.parent_path() / "tokenizer.json", unknown) ||
                                              std::filesystem::exists(path.parent_path() / "metrics.jsonl", unknown));
}

}  // namespace capstan
