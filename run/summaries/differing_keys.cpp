// Flattens the configurations of runs into paths and values, and compares them. tests/run/test_run_table.cpp.
#include "run/summaries/differing_keys.hpp"

#include <algorithm>

#include "core/strings/strings.hpp"
#include "run/yaml/config.hpp"

namespace capstan {
namespace {

using Leaves = std::vector<std::pair<std::string, std::string>>;

bool is_list_of_values(const ConfigNode& node) {
  return node.kind == NodeKind::list &&
         std::all_of(node.children.begin(), node.children.end(),
                     [](const ConfigNode& child) { return child.kind == NodeKind::scalar; });
}

void add_leaves(const ConfigNode& node, const std::string& path, Leaves& out) {
  if (node.kind == NodeKind::map) {
    for (const ConfigNode& child : node.children) add_leaves(child, join_path(path, child.key), out);
  } else if (node.kind == NodeKind::list && !is_list_of_values(node)) {
    out.emplace_back(path, fmt::format("{} {}", node.children.size(), node.children.size() == 1 ? "entry" : "entries"));
    for (size_t i = 0; i < node.children.size(); ++i)
      add_leaves(node.children[i], join_path(path, std::to_string(i)), out);
  } else {
    out.emplace_back(path, write_flow(node));
  }
}

/// Whether `name` is a suffix of `path` that begins at the path's beginning or after a dot.
bool ends_with_name(const std::string& path, const std::string& name) {
  return path == name || ends_with(path, "." + name);
}

}  // namespace

std::vector<DifferingKey> differing_keys(const std::vector<RunRecord>& runs) {
  std::vector<Leaves> of_runs(runs.size());
  for (size_t i = 0; i < runs.size(); ++i) add_leaves(to_node(runs[i].config), "", of_runs[i]);
  std::vector<std::string> all_paths;
  for (const Leaves& leaves : of_runs)
    for (const auto& [path, value] : leaves)
      if (std::find(all_paths.begin(), all_paths.end(), path) == all_paths.end()) all_paths.push_back(path);
  std::vector<DifferingKey> keys;
  for (const std::string& path : all_paths) {
    if (path == "name" || path == "folder") continue;  // every row shows the folder
    DifferingKey key{path, "", {}};
    bool everywhere = true;
    for (const Leaves& leaves : of_runs) {
      const auto leaf = std::find_if(leaves.begin(), leaves.end(), [&path](const auto& l) { return l.first == path; });
      everywhere = everywhere && leaf != leaves.end();
      key.values.push_back(leaf != leaves.end() ? leaf->second : "");
    }
    if (everywhere && std::any_of(key.values.begin(), key.values.end(),
                                  [&](const std::string& v) { return v != key.values.front(); }))
      keys.push_back(std::move(key));
  }
  std::vector<std::string> paths;
  for (const DifferingKey& key : keys) paths.push_back(key.path);
  const std::vector<std::string> names = short_names(paths);
  for (size_t i = 0; i < keys.size(); ++i) keys[i].short_name = names[i];
  return keys;
}

std::string repeated_settings(const RunRecord& run) {
  Leaves leaves;
  add_leaves(to_node(run.config), "", leaves);
  std::string settings;
  for (const auto& [path, value] : leaves)
    if (path != "name" && path != "folder" && path != "seed" && path != "data.fold")
      settings += path + "=" + value + "\n";
  return settings;
}

std::vector<std::string> short_names(const std::vector<std::string>& paths) {
  std::vector<std::string> names = paths;
  for (size_t i = 0; i < paths.size(); ++i) {
    const std::string& path = paths[i];
    for (size_t dot = path.rfind('.'); dot != std::string::npos && dot > 0; dot = path.rfind('.', dot - 1)) {
      const std::string name = path.substr(dot + 1);
      const auto ends = [&](const std::string& other) { return ends_with_name(other, name); };
      if (name == "type" || std::count_if(paths.begin(), paths.end(), ends) != 1) continue;
      names[i] = name;
      break;
    }
  }
  return names;
}

}  // namespace capstan
