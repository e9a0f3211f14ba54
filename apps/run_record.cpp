#include "apps/run_record.hpp"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "apps/config/config.hpp"
#include "core/error.hpp"

namespace capstan {
namespace {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void add_event(const nlohmann::json& event, RunRecord& run, std::vector<double>& speeds) {
  const std::string kind = event.value("event", "");
  run.step = std::max(run.step, event.value("step", int64_t{0}));
  if (kind == "train") {
    run.seconds = event.value("seconds", run.seconds);
    run.train_loss = event.value("loss", run.train_loss);
    run.peak_rss_bytes = std::max(run.peak_rss_bytes, event.value("peak_rss_bytes", int64_t{0}));
    speeds.push_back(event.value("tokens_per_second", 0.0));
  } else if (kind == "valid") {
    const RunRecord::Validation valid{event.value("step", int64_t{0}), event.value("loss", 0.0),
                                      event.value("accuracy", 0.0)};
    if (!run.best || valid.loss < run.best->loss) run.best = valid;
  }
}

using Leaves = std::vector<std::pair<std::string, std::string>>;

void add_leaves(const ConfigNode& node, const std::string& path, Leaves& out) {
  if (node.kind == NodeKind::map) {
    for (const ConfigNode& child : node.children) add_leaves(child, join_path(path, child.key), out);
  } else if (node.kind == NodeKind::list) {
    out.emplace_back(path, fmt::format("{} {}", node.children.size(), node.children.size() == 1 ? "entry" : "entries"));
    for (size_t i = 0; i < node.children.size(); ++i)
      add_leaves(node.children[i], join_path(path, std::to_string(i)), out);
  } else {
    out.emplace_back(path, write_flow(node));
  }
}

/// Do `name` and `path` end alike, at a dot of the path?
bool ends_with_name(const std::string& path, const std::string& name) {
  if (path.size() < name.size() || path.compare(path.size() - name.size(), name.size(), name) != 0) return false;
  return path.size() == name.size() || path[path.size() - name.size() - 1] == '.';
}

/// The shortest end of `path` that says what it is and is the end of no other key's path.
std::string short_name(const std::string& path, const std::vector<DifferingKey>& keys) {
  for (size_t dot = path.rfind('.'); dot != std::string::npos && dot > 0; dot = path.rfind('.', dot - 1)) {
    const std::string name = path.substr(dot + 1);
    const auto ends = [&](const DifferingKey& key) { return ends_with_name(key.path, name); };
    if (name != "type" && std::count_if(keys.begin(), keys.end(), ends) == 1) return name;
  }
  return path;
}

}  // namespace

RunRecord read_record(const std::filesystem::path& folder) {
  const auto config = folder / "config.yaml", metrics = folder / "metrics.jsonl";
  if (!std::filesystem::exists(config))
    throw Error(
        fmt::format("{}: there is no config.yaml here: give the folder of a run, such as runs/NAME", folder.string()));
  RunRecord run;
  run.folder = folder.string();
  run.config = load_config<RunConfig>({config.string()});
  std::vector<double> speeds;
  std::ifstream file(metrics);
  for (std::string line; std::getline(file, line);) {
    const nlohmann::json event = nlohmann::json::parse(line, nullptr, false);
    // The last line may be half there: the run may be training now.
    if (event.is_object()) add_event(event, run, speeds);
  }
  if (run.step == 0) throw Error(fmt::format("{}: tells of no step: has the run trained yet?", metrics.string()));
  run.tokens_per_second = median(std::move(speeds));
  return run;
}

std::vector<DifferingKey> differing_keys(const std::vector<RunRecord>& runs) {
  std::vector<Leaves> all(runs.size());
  for (size_t i = 0; i < runs.size(); ++i) add_leaves(to_node(runs[i].config), "", all[i]);
  std::vector<DifferingKey> keys;
  for (const auto& [path, value] : all.empty() ? Leaves{} : all.front()) {
    if (path == "name" || path == "folder") continue;  // the folder stands in every row
    DifferingKey key{path, "", {}};
    for (const Leaves& leaves : all) {
      const auto leaf =
          std::find_if(leaves.begin(), leaves.end(), [&path = path](const auto& l) { return l.first == path; });
      if (leaf != leaves.end()) key.values.push_back(leaf->second);
    }
    const bool everywhere = key.values.size() == runs.size();
    if (everywhere && std::any_of(key.values.begin(), key.values.end(),
                                  [&](const std::string& v) { return v != key.values.front(); }))
      keys.push_back(std::move(key));
  }
  for (DifferingKey& key : keys) key.short_name = short_name(key.path, keys);
  return keys;
}

}  // namespace capstan
