// The neutral tree between YAML and the config structs: what a YAML text says, where it says it,
// and how trees are combined.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace capstan {

/// Where something was written. Defaults have no place.
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
  bool quoted = false;                    // a scalar that can only be text, whatever it looks like
  std::vector<ConfigNode> children = {};  // of a list or map
  Place place = {};
  std::string key = "";  // the name by which the enclosing map holds this node, if a map does
  Place key_place = {};
  bool is_variant = false;     // written from a std::variant
  bool of_other_type = false;  // given beside a `type` that has changed since: void if the map turns out a variant's
  std::string help = "";       // the field's help text, if the node was written from a struct

  /// A map's child by its key, or nullptr.
  ConfigNode* find(std::string_view name);
  const ConfigNode* find(std::string_view name) const;
};

ConfigNode scalar_node(std::string text, bool quoted = false);

/// Nesting beyond this is refused, so that walking a tree by recursion is safe.
constexpr std::size_t max_config_depth = 64;

/// Lays `over` on `base`: maps are merged key by key, everything else is replaced. A map with another `type` marks
/// the keys beside the old one `of_other_type`: only the reader knows whether the map is a variant's, where they are
/// void, or a struct's with a field of that name. A map laid on a scalar NAME is laid on {type: NAME}.
void merge(ConfigNode& base, ConfigNode over);

/// What a message calls this value: "64", "\"fast\"", "a list", ...
std::string shown(const ConfigNode& node);

/// Advice for a scalar that stands where a map is expected: it may be "width:64".
std::string colon_hint(const ConfigNode& node);

/// `text` in double quotes with the escapes of YAML, cut after `longest` bytes.
std::string in_quotes(std::string_view text, std::size_t longest = std::string_view::npos);

/// path + "." + key; just the key at the top.
std::string join_path(const std::string& path, std::string_view key);

/// "a, b, c".
std::string join_words(const std::vector<std::string>& words);

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
