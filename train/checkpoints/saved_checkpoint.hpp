// What a run has saved, and the one check of it. state.json has the run's id, the step and a checksum of each file
// beside it, and of the best step's weights; run.json has the id and the last step; the name of a folder has its step.
// A checkpoint that does not agree in all of these is damaged: training, predictions, verify and all others read it
// here. tests/train/test_damaged_runs.cpp, tests/cli/runs/test_verify.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/io/safetensors.hpp"
#include "train/checkpoints/run_state.hpp"

namespace capstan {

constexpr const char* mark_name = "run.json";
/// In front of the name of a checkpoint while it is saved again.
constexpr const char* resaved_prefix = ".replaced-";

/// What is read of a checkpoint, and so checked: its state, with it the weights, or all files.
enum class Reading { state, weights, all };

/// A checkpoint as it was found.
struct SavedCheckpoint {
  bool whole() const { return damage.empty(); }
  bool can_resume() const { return whole() && state.has_optimizer(); }
  std::string path_of(const char* name) const { return (folder / name).string(); }

  std::filesystem::path folder;
  std::string damage;  // the first file that is absent, damaged or of something else, and why
  RunState state;
  std::optional<SafetensorsFile> model, optimizer;  // as far as they were read; empty if they were removed on purpose
};

/// Throws FileError when a file cannot be read for another reason than its absence, NewerFile for a state of another
/// version.
SavedCheckpoint open_checkpoint(const std::filesystem::path& folder, Reading reading);
/// The checkpoint that the run is used with: the best one, or the last one if there is no best. Nothing when nothing
/// was saved. Where the last one is damaged, which says which one is the best, it is returned.
std::optional<SavedCheckpoint> open_best(const std::filesystem::path& checkpoints, Reading reading);
/// Opens a file that the state of this checkpoint names. Throws Error unless it is the one that was saved with it;
/// weights for predictions may be without a checksum, as other programs write them.
SafetensorsFile open_saved_file(const std::filesystem::path& checkpoint, const RunState& state, const std::string& name,
                                Reading reading = Reading::all);
/// Why this whole checkpoint has no weights, and what to use instead.
std::string why_no_model(const SavedCheckpoint& checkpoint);
/// The state in a checkpoint's folder, which may be damaged otherwise. Throws Error as run_state_from_json().
RunState read_state(const std::filesystem::path& checkpoint);

/// Steps that have a folder, ascending.
std::vector<int64_t> saved_steps(const std::filesystem::path& checkpoints);
std::filesystem::path folder_of_step(const std::filesystem::path& checkpoints, int64_t step);
/// Step of a folder called step-N; -1 for any other name.
int64_t step_of(const std::string& name);
/// The last step, whose folder is absent if it was lost; -1 when nothing was saved.
int64_t last_step(const std::filesystem::path& checkpoints);
/// run.json; nothing where there is none. Throws Error for a damaged one.
std::optional<RunMark> read_mark(const std::filesystem::path& checkpoints);
/// "complete checkpoints: a, b": those that can be resumed from or, unless all of them are read, have a model; empty
/// when there is none.
std::string complete_checkpoints(const std::filesystem::path& checkpoints, Reading reading);

}  // namespace capstan
