// Chooses the checkpoint that a run's folder stands for, and says which are whole where that one is not.
// tests/train/test_damaged_runs.cpp, tests/cli/runs/test_bad_runs.cpp.
#include "train/checkpoints/open_model.hpp"

#include "train/checkpoints/checkpoint.hpp"

namespace capstan {
namespace fs = std::filesystem;

namespace {

/// The checkpoint that is used where a run's folder is named.
fs::path checkpoint_to_use(const fs::path& where) {
  const fs::path best = where / "checkpoints" / "best", last = where / "checkpoints" / "last";
  std::error_code error;
  const Checkpoints checkpoints(where / "checkpoints");
  for (const char* const link : {"best", "last"})
    if (checkpoints.leads_elsewhere(link))
      throw Error(fmt::format("{} {}; {}: give the folder of one of them to use it",
                              (checkpoints.folder() / link).string(), checkpoints.link_problem(link),
                              checkpoints.complete_ones({}, Checkpoints::Use::predicting)));
  if (fs::exists(fs::symlink_status(best, error))) return best;
  if (!fs::exists(fs::symlink_status(last, error)) && fs::exists(where / ".lock", error))
    throw Error(fmt::format(
        "{0}: this run has no checkpoint: one is saved at every new best, every train.save_every steps, and at the "
        "end; go on with capstan train --config {0}/config.yaml",
        where.string()));
  if (!fs::exists(fs::symlink_status(last, error)))
    throw Error(fmt::format(
        "{}: there is no model here: give a run folder, a checkpoint's folder or a .safetensors file", where.string()));
  try {
    const RunState state = read_state(last);
    // The state names a best checkpoint, whose link was lost: opening it says so.
    if (!state.best.empty() && (state.has_model || state.best_step != state.step)) return best;
  } catch (const Error&) {  // open_model() reports the damage
  }
  return last;
}

}  // namespace

SafetensorsFile open_model(const fs::path& where) {
  std::error_code error;
  const bool is_file = fs::is_regular_file(where, error);
  const bool is_checkpoint =
      !is_file && (fs::is_regular_file(where / model_name, error) || fs::is_regular_file(where / state_name, error));
  const fs::path checkpoint = is_checkpoint ? where : is_file ? where.parent_path() : checkpoint_to_use(where);
  const std::string file = (is_file ? where : checkpoint / model_name).string();
  std::optional<SafetensorsFile> model;
  const auto damage = damage_of_model(file, model);
  if (!damage) return *std::move(model);
  const std::string others = Checkpoints(checkpoint.parent_path()).complete_ones({}, Checkpoints::Use::predicting);
  throw Error(others.empty() ? *damage
                             : fmt::format("{}; {}: give the folder of one of them to use it", *damage, others));
}

}  // namespace capstan
