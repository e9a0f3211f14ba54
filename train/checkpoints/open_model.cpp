// Chooses the checkpoint that a run's folder stands for, and says which are whole where that one is not.
// tests/train/test_damaged_runs.cpp, tests/cli/runs/test_bad_runs.cpp.
#include "train/checkpoints/open_model.hpp"

#include "core/base/error.hpp"
#include "train/checkpoints/saved_checkpoint.hpp"

namespace capstan {
namespace fs = std::filesystem;

namespace {

/// Why the folder of a run or of something else has no checkpoint.
std::string no_checkpoint(const fs::path& where) {
  std::error_code unknown;
  if (fs::exists(where / "config.yaml", unknown))
    return fmt::format(
        "{0}: this run has no checkpoint: one is saved at every new best, every train.save_every steps, and at the "
        "end; go on with capstan train --config {0}/config.yaml",
        where.string());
  return fmt::format("{}: there is no model here: give a run folder, a checkpoint's folder or a .safetensors file",
                     where.string());
}

}  // namespace

SafetensorsFile open_model(const fs::path& where) {
  std::error_code unknown;
  const bool is_file = fs::is_regular_file(where, unknown);
  const fs::path folder = is_file ? where.parent_path() : where;
  const bool is_checkpoint = step_of(folder.filename().string()) >= 0 || fs::exists(folder / state_name, unknown);
  if (is_file && (!is_checkpoint || where.filename() != model_name)) return SafetensorsFile(where.string());
  if (!is_checkpoint && fs::is_regular_file(folder / model_name, unknown))
    return SafetensorsFile((folder / model_name).string());
  std::optional<SavedCheckpoint> found =
      is_checkpoint ? open_checkpoint(folder, Reading::weights) : open_best(where / "checkpoints", Reading::weights);
  if (!found) throw Error(no_checkpoint(where));
  if (found->whole() && found->model) return *std::move(found->model);
  const std::string others = complete_checkpoints(found->folder.parent_path(), Reading::weights);
  const std::string problem = found->whole() ? why_no_model(*found) : found->damage;
  throw Error(others.empty() ? problem
                             : fmt::format("{}; {}: give the folder of one of them to use it", problem, others));
}

}  // namespace capstan
