// Finds and removes the files that only resuming needs. tests/cli/runs/test_clean.cpp.
#include "run/training/clean_run.hpp"

#include <optional>

#include "core/base/error.hpp"
#include "core/strings/printable.hpp"
#include "core/strings/strings.hpp"
#include "run/setup/saved_config.hpp"
#include "run/summaries/run_record.hpp"
#include "train/checkpoints/run_folder.hpp"
#include "train/loop/run_length.hpp"

namespace capstan {
namespace fs = std::filesystem;

namespace {

/// Whether a run is solved for: it has one checkpoint and no state of an optimizer, so nothing to remove.
bool is_solved(const fs::path& folder) { return facts_of(load_run_config(folder).model).is_solved; }

std::vector<CleanedPart> parts_of(const fs::path& folder) {
  std::vector<CleanedPart> parts;
  if (is_solved(folder)) return parts;
  for (const fs::path& path : Checkpoints(folder / "checkpoints").for_resuming())
    parts.push_back({path, bytes_below(path.string())});
  return parts;
}

}  // namespace

std::vector<CleanedPart> clean_run(const fs::path& folder, const CleanOptions& options) {
  const Checkpoints checkpoints(folder / "checkpoints");
  if (!fs::exists(folder / "config.yaml") || !checkpoints.last())
    throw Error(fmt::format("{}: there is no run with a checkpoint here: give the folder of a run", folder.string()));
  Communicator one_process;
  std::optional<RunFolder> locked;
  if (!options.dry_run) locked.emplace(folder, one_process);
  const auto last = checkpoints.last();
  if (!options.unfinished && !has_ended(load_run_config(folder).train, read_state(last.value())))
    throw Error(
        fmt::format("{}: this run has not reached its end and could not be resumed: train it to its end first, or give "
                    "it up with --unfinished",
                    folder.string()));
  std::vector<CleanedPart> parts = parts_of(folder);
  if (locked && !is_solved(folder)) locked->checkpoints().remove_for_resuming();
  return parts;
}

std::string disk_line(const fs::path& folder) {
  int64_t resuming = 0, bytes = 0;
  try {
    for (const std::string& run : run_folders({folder.string()}, ShortRuns::with))
      for (const CleanedPart& part : parts_of(run)) resuming += part.bytes;
    bytes = bytes_below(folder.string());
  } catch (const Error&) {  // training has succeeded, and a line of the log must not turn that into a failure
    return folder.string();
  }
  const std::string size = fmt::format("{}: {} on disk", folder.string(), bytes_text(static_cast<double>(bytes)));
  constexpr int64_t little = 1'000'000;
  return resuming < little ? size
                           : fmt::format("{}, {} of it for resuming alone (capstan clean {} removes it)", size,
                                         bytes_text(static_cast<double>(resuming)), shell_word(folder.string()));
}

}  // namespace capstan
