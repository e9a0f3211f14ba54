// Each sign is one that no kill can leave before the first save: links are made after what they name, and a step begins
// only after the save that the one before it asked for. tests/cli/runs/test_verify.cpp.
#include "run/summaries/lost_checkpoints.hpp"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/io/json.hpp"
#include "run/setup/run_model.hpp"
#include "train/checkpoints/checkpoint.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;

/// What the lines of a metrics.jsonl say of saves.
struct RecordedSteps {
  bool any = false;
  int64_t last = -1;
  int64_t best = -1;  // the first new best that a later step follows; it was saved before that step
};

RecordedSteps recorded_steps(const fs::path& path) {
  RecordedSteps found;
  int64_t best = -1;
  std::ifstream file(path);
  for (std::string text; std::getline(file, text);) {
    const nlohmann::json line = try_parse_json(text);
    if (!line.is_object()) continue;
    const auto field = line.find("step");
    const std::optional<int64_t> step = field == line.end() ? std::nullopt : whole_number(*field, 0);
    if (!step) continue;
    found.any = true;
    found.last = std::max(found.last, *step);
    if (best >= 0 && *step > best && found.best < 0) found.best = best;
    const auto verdict = line.find("best");
    if (best < 0 && verdict != line.end() && *verdict == true) best = *step;
  }
  return found;
}

}  // namespace

std::string sign_of_saves(const fs::path& folder, const std::optional<RunConfig>& config) {
  const Checkpoints checkpoints(folder / "checkpoints");
  const bool has_folder = fs::is_directory(checkpoints.folder());
  // What a kill has left unfinished is completed or undone when training starts.
  if (has_folder && checkpoints.has_unfinished()) return "";
  std::error_code unknown;
  for (const char* const name : {"last", "best"})
    if (fs::is_symlink(checkpoints.folder() / name, unknown))
      return fmt::format("checkpoints/{} {}", name, checkpoints.link_problem(name));
  const RecordedSteps recorded = recorded_steps(folder / "metrics.jsonl");
  if (recorded.best >= 0)
    return fmt::format("metrics.jsonl goes on to step {} after the new best of step {}, which was saved", recorded.last,
                       recorded.best);
  const int64_t save_every = config && !facts_of(config->model).is_solved ? config->train.save_every : 0;
  if (save_every > 0 && recorded.last > save_every)
    return fmt::format("metrics.jsonl goes on to step {}, and train.save_every is {}", recorded.last, save_every);
  // A run makes this folder before the first line of its metrics.jsonl.
  if (recorded.any && !has_folder) return fmt::format("metrics.jsonl goes on to step {}", recorded.last);
  return "";
}

}  // namespace capstan
