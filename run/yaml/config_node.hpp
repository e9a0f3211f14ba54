// The tree between YAML and the config structs: values with their places, and how trees are merged. The rest of
// run/yaml builds, reads and writes it. tests/run/yaml/test_config_read.cpp holds what wins in a merge,
// test_config_errors.cpp which place a message names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace capstan {

/// Where a value was written. Defaults have no place.
struct Place {
  std::string source = "";  // "configs/a.yaml", or a whole override: "--set model.width=64"
  int order = 0;            // rank of the source: files as given, then overrides as given
  int line = 0;             // from 1; 0 for an override, or for a file as a whole
  int column = 0;

  bool given() const { return !source.empty(); }
};

enum class NodeKind { null, scalar, list, map };

/// A value in the tree.
struct ConfigNode {
  NodeKind kind = NodeKind::null;
  std::string text = "";                  // of a scalar
  bool quoted = false;                    // a scalar that can only be text
  std::vector<ConfigNode> children = {};  // of a list or map
  Place place = {};
  std::string key = "";  // the key of this node in the enclosing map, if it is in one
  Place key_place = {};
  bool is_variant = false;     // written from a std::variant
  bool of_other_type = false;  // given with a `type` that was replaced later: ignored if the map is a variant

  /// A map's child by its key, or nullptr.
  ConfigNode* find(std::string_view name);
  const ConfigNode* find(std::string_view name) const;
};

ConfigNode scalar_node(std::string text, bool quoted = false);

/// Parses all of `text`. Decimal, an optional sign, for doubles a fraction and an exponent; inf, nan, .inf and .nan are
/// doubles too. Returns errc{}, invalid_argument (not a number) or result_out_of_range.
std::errc parse_number(std::string_view text, double& value);
std::errc parse_number(std::string_view text, std::int64_t& value);

/// The shortest text that parse_number() turns into the same double.
std::string format_number(double value);

/// Deeper nesting is refused, so that recursion over a tree is safe.
constexpr std::size_t max_config_depth = 64;

/// Merges `over` into `base`: maps key by key, everything else is replaced. A map with another `type` marks the keys of
/// the old one as `of_other_type`: only the reader knows whether the map is a variant, which ignores them, or a struct
/// with a field `type`. Maps so marked are replaced. A map merged into a scalar NAME is merged into {type: NAME}.
void merge(ConfigNode& base, ConfigNode over);

/// One key whose values differ, both as YAML on one line; "absent" if a list is shorter.
struct ConfigDifference {
  std::string path, a, b;
};
/// Maps and lists are compared key by key and element by element;
/// a variant whose type differs counts as one difference.
std::vector<ConfigDifference> diff_trees(const ConfigNode& a, const ConfigNode& b);

/// A tree on one line: {type: gau, sizes: [1, 2]}.
std::string write_flow(const ConfigNode& node);

/// What a message calls this value: "64", "\"fast\"", "a list", ...
std::string shown(const ConfigNode& node);

/// Advice for a scalar in place of a map: it may be "width:64".
std::string colon_hint(const ConfigNode& node);

/// `text` in double quotes with the escapes of YAML, cut after `longest` bytes.
std::string in_quotes(std::string_view text, std::size_t longest = std::string_view::npos);

/// path + "." + key; just the key at the top.
std::string join_path(const std::string& path, std::string_view key);

/// Everything found wrong, thrown as one ConfigError.
class ProblemList {
 public:
  void add(const Place& place, const std::string& path, const std::string& message);
  std::size_t size() const { return problems_.size(); }
  /// Throws ConfigError, one line per problem in the order of sources, lines and columns, unless there are none.
  void throw_if_any() const;

 private:
  struct Problem {
    Place place;
    std::string path, message;
    std::string line() const;
  };
  std::vector<Problem> problems_;
};

}  // namespace capstan
