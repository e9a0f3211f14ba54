// The checksum of a file is the one in its header, which opening compares with the content: nothing is read twice.
// tests/train/test_damaged_runs.cpp.
#include "train/checkpoints/saved_checkpoint.hpp"

#include <algorithm>
#include <cerrno>

#include "core/io/file.hpp"
#include "core/strings/strings.hpp"

namespace capstan {

namespace fs = std::filesystem;

namespace {

/// Throws Error unless the state is of the folder that it is in, and of the run of this folder.
void check_place(const SavedCheckpoint& found) {
  const std::string path = found.path_of(state_name);
  std::error_code unknown;
  const fs::path folder = fs::weakly_canonical(found.folder, unknown);  // its own name, not that of a link
  if (const int64_t step = step_of(folder.filename().string()); step >= 0 && step != found.state.step)
    throw Error(fmt::format("{}: this is the state of step {}: the folder was renamed", path, found.state.step));
  if (const auto mark = read_mark(folder.parent_path()); mark && mark->id != found.state.run)
    throw Error(fmt::format("{}: this checkpoint is of another run than its folder ({})", path, mark_name));
}

void read_files(SavedCheckpoint& found, Reading reading) {
  for (const auto& [name, checksum] : found.state.files) {
    if (reading == Reading::weights && name != model_name) continue;
    SafetensorsFile file = open_saved_file(found.folder, found.state, name, reading);
    if (name == model_name) found.model = std::move(file);
    if (name == optimizer_name) found.optimizer = std::move(file);
  }
}

}  // namespace

SavedCheckpoint open_checkpoint(const fs::path& folder, Reading reading) {
  SavedCheckpoint found;
  const fs::path before = folder.parent_path() / (resaved_prefix + folder.filename().string());
  std::error_code unknown;
  found.folder = !fs::exists(folder, unknown) && fs::exists(before, unknown) ? before : folder;
  try {
    found.state = read_state(found.folder);
    check_place(found);
    if (reading != Reading::state) read_files(found, reading);
  } catch (const FileError& error) {
    const bool absent = error.error_number() == ENOENT || error.error_number() == ENOTDIR;
    if (!absent) throw;  // no permission, too many open files: no damage
    found.damage = error.what();
  } catch (const NewerFile&) {
    throw;
  } catch (const Error& error) {
    found.damage = error.what();
  }
  return found;
}

SafetensorsFile open_saved_file(const fs::path& checkpoint, const RunState& state, const std::string& name,
                                Reading reading) {
  SafetensorsFile file((checkpoint / name).string());
  const bool may_lack = reading == Reading::weights && file.checksum().empty();
  if (file.checksum() != state.files.at(name) && !may_lack)
    throw Error(
        fmt::format("{}: the file is not the one that was saved with {}, by its checksum: it is of another step or "
                    "run, or another program wrote it",
                    file.path(), state_name));
  return file;
}

std::optional<SavedCheckpoint> open_best(const fs::path& checkpoints, Reading reading) {
  const int64_t newest = last_step(checkpoints);
  if (newest < 0) return std::nullopt;
  SavedCheckpoint last = open_checkpoint(folder_of_step(checkpoints, newest), Reading::state);
  if (!last.whole()) return last;
  const int64_t step = last.state.best.empty() ? newest : last.state.best_step;
  SavedCheckpoint best = open_checkpoint(folder_of_step(checkpoints, step), reading);
  if (best.whole() && step != newest && best.state.has_model() &&
      best.state.files.at(model_name) != last.state.best_weights)
    best.damage = fmt::format("{}: not the weights that step {} names as the best", best.path_of(model_name), newest);
  return best;
}

std::string why_no_model(const SavedCheckpoint& checkpoint) {
  return fmt::format(
      "{}: its weights were removed: when the run ended, and those of the best are in {}, or since this was a trial of "
      "capstan autotune: train its config.yaml under another name to have them",
      checkpoint.folder.string(), folder_of_step(checkpoint.folder.parent_path(), checkpoint.state.best_step).string());
}

RunState read_state(const fs::path& checkpoint) {
  const std::string path = (checkpoint / state_name).string();
  return run_state_from_json(read_file(path), path);
}

std::vector<int64_t> saved_steps(const fs::path& checkpoints) {
  std::vector<int64_t> steps;
  for (const std::string& name : names_in_folder(checkpoints.string()))
    if (step_of(name) >= 0) steps.push_back(step_of(name));
  std::sort(steps.begin(), steps.end());
  return steps;
}

fs::path folder_of_step(const fs::path& checkpoints, int64_t step) {
  return checkpoints / ("step-" + std::to_string(step));
}

int64_t step_of(const std::string& name) {
  constexpr const char* prefix = "step-";
  const std::string digits = starts_with(name, prefix) ? name.substr(std::string(prefix).size()) : "";
  if (digits.empty() || digits.size() > 18 || digits.find_first_not_of("0123456789") != std::string::npos) return -1;
  return std::stoll(digits);
}

int64_t last_step(const fs::path& checkpoints) {
  const std::vector<int64_t> steps = saved_steps(checkpoints);
  const auto mark = read_mark(checkpoints);
  // A kill may have come between the checkpoint and run.json, which then names one before the last.
  return std::max(steps.empty() ? -1 : steps.back(), mark ? mark->last : -1);
}

std::optional<RunMark> read_mark(const fs::path& checkpoints) {
  const fs::path path = checkpoints / mark_name;
  std::error_code unknown;
  if (!fs::exists(path, unknown)) return std::nullopt;
  return run_mark_from_json(read_file(path.string()), path.string());
}

std::string complete_checkpoints(const fs::path& checkpoints, Reading reading) {
  std::vector<std::string> complete;
  for (const int64_t step : saved_steps(checkpoints)) {
    const SavedCheckpoint found = open_checkpoint(folder_of_step(checkpoints, step), reading);
    if (reading == Reading::all ? found.can_resume() : found.whole() && found.state.has_model())
      complete.push_back(found.folder.string());
  }
  return complete.empty() ? "" : fmt::format("complete checkpoints: {}", join(complete));
}

}  // namespace capstan
