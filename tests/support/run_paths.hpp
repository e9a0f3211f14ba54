// Paths of checkpoints in tests, which need not know the steps.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace capstan {

/// The greatest step of a folder of checkpoints; -1 where there is none.
inline long long step_of_last(const std::filesystem::path& checkpoints) {
  long long last = -1;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoints, none))
    if (const std::string name = entry.path().filename().string(); name.rfind("step-", 0) == 0)
      last = std::max(last, std::stoll(name.substr(5)));
  return last;
}

/// The step that the state of a checkpoint names as the best so far; 0 where there is no such file.
inline long long step_of_best(const std::filesystem::path& checkpoint) {
  std::ifstream file(checkpoint / "state.json");
  const std::string state{std::istreambuf_iterator<char>(file), {}}, key = "\"best_step\": ";
  const size_t at = state.find(key);
  return at == std::string::npos ? 0 : std::stoll(state.substr(at + key.size()));
}

/// The path with "checkpoints/last" and "checkpoints/best" replaced by the folder of that step; unchanged where there
/// is none.
inline std::filesystem::path in_run(const std::filesystem::path& path) {
  const std::string text = path.string();
  for (const std::string name : {"last", "best"}) {
    const size_t at = text.find("checkpoints/" + name), end = at + 12 + name.size();
    if (at == std::string::npos || (end < text.size() && text[end] != '/')) continue;
    const std::filesystem::path checkpoints = text.substr(0, at + 11);
    const long long last = step_of_last(checkpoints);
    if (last < 0) return path;
    const std::string last_name = "step-" + std::to_string(last);
    const long long step = name == "last" ? last : step_of_best(checkpoints / last_name);
    return (checkpoints / ("step-" + std::to_string(step))).string() + text.substr(end);
  }
  return path;
}

/// "step-6" of a path to a checkpoint.
inline std::string checkpoint_name(const std::filesystem::path& path) { return in_run(path).filename().string(); }

}  // namespace capstan
