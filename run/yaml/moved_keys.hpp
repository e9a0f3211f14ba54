// Keys that have moved since version 0.2.0, whose runs this version goes on with. The configuration of a run that it
// made is translated; one that a user wrote is refused, with the new key. An entry stays as long as such runs are read:
// tests/run/yaml/test_moved_keys.cpp and tests/cli/runs/test_old_runs.cpp hold them.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "run/yaml/config_node.hpp"

namespace capstan {

struct MovedKey {
  std::string_view path;  // where it was: "model.layers.*.mixer.size"; * is any entry of a list
  std::string advice;     // "moved in version 0.3; use model.width"
  /// Translates the map that holds the key. False if this changed nothing that a reader of the run would miss, such as
  /// a default.
  std::function<bool(ConfigNode& parent)> move;
};

/// Moves of all versions, the oldest first: each is translated into what the next one moved.
const std::vector<MovedKey>& moved_keys();

/// Translates the configuration of a run. `below`: the path of `tree` in that configuration. Returns the paths of the
/// keys that were translated.
std::vector<std::string> translate(ConfigNode& tree, std::string_view below = "",
                                   const std::vector<MovedKey>& table = moved_keys());

/// What the log says of them; empty when there are none.
std::string translation_note(const std::string& source, const std::vector<std::string>& translated);

/// Adds a problem for each key of `tree` that moved. Returns whether there are any.
bool refuse_moved(const ConfigNode& tree, ProblemList& problems, const std::vector<MovedKey>& table = moved_keys());

/// What became of the key with this path, or with these last parts of it; a place in a list is a number. Empty for a
/// key that has not moved.
std::string moved_advice(std::string_view key, const std::vector<MovedKey>& table = moved_keys());

/// Whether a file is the config.yaml that a run wrote: beside it are others of a run.
bool is_run_config(const std::string& file);

}  // namespace capstan
