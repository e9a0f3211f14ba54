// Compares the trees of two configurations, key by key and element by element. Training that goes on, warm starts and
// plans refuse or log what diff_configs() names. tests/run/yaml/test_config_write.cpp.
#include "run/yaml/config_diff.hpp"

#include <algorithm>

namespace capstan {
namespace {

constexpr const char* absent = "absent";

bool compared_by_key(const ConfigNode& a, const ConfigNode& b) {
  if (a.kind != NodeKind::map || b.kind != NodeKind::map) return false;
  return !a.is_variant || !b.is_variant || a.find("type")->text == b.find("type")->text;
}

void add_differences(const ConfigNode& a, const ConfigNode& b, const std::string& path,
                     std::vector<ConfigDifference>& out) {
  if (compared_by_key(a, b)) {
    for (const auto& child : a.children) {
      const ConfigNode* other = b.find(child.key);
      if (other)
        add_differences(child, *other, join_path(path, child.key), out);
      else
        out.push_back({join_path(path, child.key), write_flow(child), absent});
    }
    for (const auto& child : b.children)
      if (!a.find(child.key)) out.push_back({join_path(path, child.key), absent, write_flow(child)});
  } else if (a.kind == NodeKind::list && b.kind == NodeKind::list) {
    for (std::size_t i = 0; i < std::max(a.children.size(), b.children.size()); ++i) {
      const auto element_path = join_path(path, std::to_string(i));
      if (i >= a.children.size())
        out.push_back({element_path, absent, write_flow(b.children[i])});
      else if (i >= b.children.size())
        out.push_back({element_path, write_flow(a.children[i]), absent});
      else
        add_differences(a.children[i], b.children[i], element_path, out);
    }
  } else if (write_flow(a) != write_flow(b)) {
    out.push_back({path, write_flow(a), write_flow(b)});
  }
}

}  // namespace

std::vector<ConfigDifference> diff_trees(const ConfigNode& a, const ConfigNode& b) {
  std::vector<ConfigDifference> out;
  add_differences(a, b, "", out);
  return out;
}

}  // namespace capstan
