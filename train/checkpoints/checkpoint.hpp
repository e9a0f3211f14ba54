// The checkpoints of a run that is trained: FOLDER/step-N/{model.safetensors, optimizer.safetensors, state.json}, and
// run.json. The last one has the greatest step; its state names the best one. What they must be: saved_checkpoint.hpp.
//
// The best one loses its optimizer.safetensors once two newer ones can be resumed from, as its state then says. Of a
// run that has ended, the best model is left, with the state of the best and of the last step. A checkpoint is written
// into a hidden folder, synced and renamed to step-N: only then is it there. run.json follows; old ones are removed
// last. At whichever call the process is killed, the last checkpoint is whole, or there is none yet. One that was
// damaged later is renamed to damaged-step-N when a run goes on without it, and one behind the step from which a run
// goes on to replaced-step-N. Whatever else is in the folder is left alone.
//
// train/loop/session saves and resumes by it. What a kill, a full disk or damage may leave:
// tests/train/test_run_files.cpp, test_damaged_runs.cpp, test_disk_use.cpp, tests/faults/long_power_loss.cpp.
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

  /// Creates the folder and run.json, and completes or undoes a save that was killed. Only for the process that trains.
  void recover();

  /// The folder of last_step(); nothing when nothing was saved.
  std::optional<std::filesystem::path> last() const;
  std::filesystem::path of_step(int64_t step) const { return folder_of_step(folder_, step); }
  std::vector<int64_t> steps() const { return saved_steps(folder_); }

  /// The first half of a save, under parts.state.step, which all ranks call: the files are in a hidden folder, in
  /// memory of the system. A process that is killed before publish() leaves a checkpoint that recover() publishes;
  /// after a power loss it may be gone.
  void write(const RunParts& parts, int64_t keep_last);
  /// The second half, for rank 0: waits until the files of what was written are on the disk, but for the newest `but`,
  /// and removes older checkpoints except the newest `keep_last`, the best and the last. When it throws, all earlier
  /// checkpoints that it keeps are intact.
  void publish(size_t but = 0);
  /// Bytes of the newest checkpoint that was written and not published; 0 for none.
  int64_t unpublished_bytes() const;

  /// Reads a checkpoint, which may be of another folder, into the parts, unless `accept` throws. Throws Error naming
  /// the damaged file and the other checkpoints that are complete, or the first tensor that does not fit.
  void load(const std::filesystem::path& checkpoint, const RunParts& parts, const AcceptState& accept = {}) const;
  /// The run goes on from a step: later ones, which are of another history, are replaced-step-N from now on.
  void set_later_aside(int64_t than);

  /// Where a run continues from, and what could not be used: a line for each damaged checkpoint.
  struct Resumed {
    std::filesystem::path from;
    std::vector<std::string> warnings;
  };
  /// Reads the last checkpoint or, if it is damaged, the newest complete one before it. Damaged ones are then
  /// damaged-step-N; not if `accept` throws. Nothing when nothing has been saved. Throws Error with the remedy when no
  /// checkpoint is complete.
  std::optional<Resumed> load_newest(const RunParts& parts, const AcceptState& accept = {});

  /// The files that only resuming needs: the optimizer's states, and all weights but the best.
  std::vector<std::filesystem::path> for_resuming() const;
  /// Removes these, and the checkpoints that are neither the best nor the last; with `tensors`, the best model too, so
  /// that only the state of the run is left. A kill at any call leaves the best model, and a run that goes on or says
  /// that it cannot; the next call completes the work. Only for the process that holds the run's lock. Throws Error
  /// unless the best and the last checkpoint are whole.
  void remove_for_resuming(bool tensors = false);

 private:
  struct Written {
    int64_t step, best;  // best: its step, below 0 if there is none
    int64_t keep_last;
  };
  /// Publishes the oldest one of written_.
  void publish_oldest();
  /// Removes checkpoints and states of the optimizer that save() need not keep.
  void prune(const Written& saved);
  void remove_files(int64_t step, bool model);
  void remove_step(int64_t step);
  void set_last(int64_t step);
  std::string set_aside(const std::filesystem::path& checkpoint, const char* prefix);
  std::filesystem::path hidden(const char* prefix, int64_t step) const;

  std::filesystem::path folder_;
  RunMark mark_;                  // run.json, of the process that trains
  std::vector<Written> written_;  // and not published, in the order of writing
};

}  // namespace capstan
