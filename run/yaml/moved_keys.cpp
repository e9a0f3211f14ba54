// The list of keys that have moved, with what translates or refuses each. An entry stays as long as such runs are read:
// tests/run/yaml/test_moved_keys.cpp and tests/cli/runs/test_old_runs.cpp.
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
  find_all(tree, path, std::string(below), found);
}

/// Takes the key out of the map, which has it.
ConfigNode take(ConfigNode& map, std::string_view key) {
  const auto at =
      std::find_if(map.children.begin(), map.children.end(), [&](const ConfigNode& child) { return child.key == key; });
  ConfigNode taken = std::move(*at);
  map.children.erase(at);
  return taken;
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

/// A key without a successor. A run that has another value than the usual one goes on without it.
MovedKey gone(std::string_view path, std::string_view usual, const char* instead) {
  return {path, fmt::format("gone in version 0.3; {}", instead),
          [=](ConfigNode& map) { return take(map, path.substr(path.rfind('.') + 1)).text != usual; }};
}

}  // namespace

const std::vector<MovedKey>& moved_keys() {
  static const std::vector<MovedKey> table = {
      {"model.label_smoothing", "moved in version 0.3; use model.loss: {type: cross-entropy, label_smoothing: ...}",
       smoothing_is_of_the_loss},
      gone("train.tensorboard", "false", "scripts/tensorboard.py writes event files from the metrics.jsonl of a run"),
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
    if (parts.size() >= wanted.size() && std::equal(wanted.rbegin(), wanted.rend(), parts.rbegin()))
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
