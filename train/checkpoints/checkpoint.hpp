// Checkpoints of a run: FOLDER/step-N/{model.safetensors, optimizer.safetensors, state.json}
// and the links `last`, `best`.
//
// The best one loses its optimizer.safetensors once two newer ones can be resumed from, as its state then says. Of a
// run that has ended, the best model is left, with the state of the best and of the last step. A checkpoint is written
// into a hidden folder, synced, renamed to step-N, and only then linked; old ones are removed last. At whichever call
// the process is killed, `last` points to a complete checkpoint, or there is none yet. A checkpoint that was damaged
// later is renamed to damaged-step-N when a run goes on without it. Whatever else is in the folder is left alone.
//
// train/loop/session saves and resumes by it; run/ and the commands open models. What a kill, a full disk or damage may
// leave: tests/train/test_run_files.cpp, test_damaged_runs.cpp, test_disk_use.cpp, tests/faults/long_power_loss.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "train/checkpoints/checkpoint_files.hpp"

namespace capstan {

/// Throws when a run cannot continue from the state of the checkpoint at `from`.
using AcceptState = std::function<void(const RunState& saved, const std::filesystem::path& from)>;

class Checkpoints {
 public:
  explicit Checkpoints(std::filesystem::path folder) : folder_(std::move(folder)) {}
  const std::filesystem::path& folder() const { return folder_; }

  /// Creates the folder and completes or undoes a save that was killed. Only for the process that trains.
  void recover();

  /// The folder that `last` points to, which may be damaged or absent, or the newest if `last` names none of this
  /// folder; empty when nothing has been saved.
  std::optional<std::filesystem::path> last() const;
  /// Why the link `name` leads to no checkpoint of this folder; empty if it leads to one. A folder in place of the
  /// link, as some programs make it when they copy, is no problem.
  std::string link_problem(const std::string& name) const;
  /// Does the link `name` name something else than a checkpoint of this folder?
  bool leads_elsewhere(const std::string& name) const;
  std::filesystem::path of_step(int64_t step) const { return folder_ / ("step-" + std::to_string(step)); }
  /// Steps that have a folder, ascending.
  std::vector<int64_t> steps() const;
  /// Names in the folder that a killed process or an earlier damage left: .unfinished-step-N, damaged-step-N, ...
  std::vector<std::string> leftovers() const;
  /// Whether a save was killed, or goes on: recover() completes or undoes it.
  bool has_unfinished() const;

  /// Saves under parts.state.step, points `last` (and `best`) there, and removes older checkpoints except the newest
  /// `keep_last`, the best and the last. When it throws, all earlier checkpoints that it keeps are intact.
  void save(const RunParts& parts, bool best, int64_t keep_last) {
    write(parts, best, keep_last);
    publish();
  }
  /// The first half of save(), which all ranks call: the files are in a hidden folder, in memory of the system. A
  /// process that is killed before publish() leaves a checkpoint that recover() publishes; after a power loss it may be
  /// gone.
  void write(const RunParts& parts, bool best, int64_t keep_last);
  /// The second half, for rank 0: waits until the files of what was written are on the disk, but for the newest `but`.
  void publish(size_t but = 0);
  /// Bytes of the newest checkpoint that was written and not published; 0 for none.
  int64_t unpublished_bytes() const;

  /// Reads a checkpoint into the parts, unless `accept` throws. Throws Error naming the damaged file and
  /// the other checkpoints that are complete, or the first tensor that does not fit.
  void load(const std::filesystem::path& checkpoint, const RunParts& parts, const AcceptState& accept = {}) const;

  /// Where a run continues from, and what could not be used: a line for each damaged checkpoint.
  struct Resumed {
    std::filesystem::path from;
    std::vector<std::string> warnings;
  };
  /// Reads the last checkpoint or, if it is damaged, the newest complete one before it. Damaged ones are renamed to
  /// damaged-step-N, and `last` is corrected; not if `accept` throws. Nothing when nothing has been saved. Throws Error
  /// with the remedy when no checkpoint is complete.
  std::optional<Resumed> load_newest(const RunParts& parts, const AcceptState& accept = {});

  /// Points `best` at the checkpoint that the state names, in case a kill prevented it. Call it after loading.
  void repair_best(const RunState& state);

  /// The files and folders that only resuming needs: the optimizer's states, the weights of the last checkpoint where
  /// the best is another, and all other checkpoints.
  std::vector<std::filesystem::path> for_resuming() const;
  /// Removes for_resuming(); with `tensors`, the best model too, so that only the state of the run is left. A kill at
  /// any call leaves the best model, and a run that goes on or says that it cannot; the next call completes the work.
  /// Only for the process that holds the run's lock. Throws Error unless the best and the last checkpoint and their
  /// links are whole.
  void remove_for_resuming(bool tensors = false);

  enum class Use { predicting, resuming };
  /// "complete checkpoints: a, b": those that have what this use needs, except `but`; empty when there is none.
  std::string complete_ones(const std::filesystem::path& but, Use use) const;

 private:
  /// Removes checkpoints and states of the optimizer that save() need not keep. `current`: the step that was just
  /// saved.
  void prune(int64_t current, int64_t keep_last);
  void remove_files(int64_t step, bool model);
  void remove_step(int64_t step);
  std::vector<int64_t> linked_steps() const;
  std::string set_aside(const std::filesystem::path& checkpoint);

  struct Written {
    int64_t step;
    bool best;
    int64_t keep_last;
  };
  /// Publishes the oldest one of written_.
  void publish_oldest();

  std::filesystem::path folder_;
  std::vector<Written> written_;  // and not published, in the order of writing
};

}  // namespace capstan
