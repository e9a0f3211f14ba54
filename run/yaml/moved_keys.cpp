#include "run/yaml/moved_keys.hpp"

#include <algorithm>
#include <filesystem>

#include "core/base/error.hpp"
#include "core/strings/join.hpp"

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
    if (moved.value.empty() || (node.kind == NodeKind::scalar && node.text == moved.value)) found(parent, node, place);
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
  static const std::vector<MovedKey> table = {
      {"0.2", "model.linear", "", "model: {type: linear-classifier, words: [1, 2], ...}", linear_is_type},
      {"0.2", "model.layers.*.mixer.type", "custom", "the name of the mixer: {type: NAME, ...}", name_is_type},
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
  return fmt::format("{}: written by an earlier version; translated, since they moved: {}", source, join(translated));
}

bool refuse_moved(const ConfigNode& tree, ProblemList& problems, const std::vector<MovedKey>& table) {
  const std::size_t before = problems.size();
  for (const MovedKey& moved : table)
    find_all(tree, "", moved, [&](const ConfigNode&, const ConfigNode& node, const std::string& place) {
      problems.add(node.key_place.given() ? node.key_place : node.place, place,
                   fmt::format("moved in version {}; use {}", moved.since, moved.instead));
    });
  return problems.size() > before;
}

bool is_run_config(const std::string& file) {
  const std::filesystem::path path(file);
  std::error_code unknown;
  return path.filename() == "config.yaml" && (std::filesystem::exists(path.parent_path() / "checkpoints", unknown) ||
                                              std::filesystem::exists(path.parent_path() / "tokenizer.json", unknown) ||
                                              std::filesystem::exists(path.parent_path() / "metrics.jsonl", unknown));
}

}  // namespace capstan
