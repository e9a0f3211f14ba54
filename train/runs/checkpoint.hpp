// Checkpoints of a run: FOLDER/step-N/{model.safetensors, optimizer.safetensors, state.json}
// and the links `last`, `best`.
//
// A checkpoint is written into a hidden folder, synced, renamed to step-N, and only then linked; old ones are removed
// last. At whichever call the process is killed, `last` points to a complete checkpoint, or there is none yet.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "nn/params/param_store.hpp"
#include "train/optimizers/optimizer.hpp"
#include "train/runs/run_state.hpp"

namespace capstan {

/// What a checkpoint saves and restores. model.safetensors holds the weights to use: the averaged ones if there is an
/// average; the trained ones are then in optimizer.safetensors.
struct RunParts {
  ParamStore& params;
  Optimizer& optimizer;
  WeightAverage* average;  // null: off
  RunState& state;
};

class Checkpoints {
 public:
  explicit Checkpoints(std::filesystem::path folder) : folder_(std::move(folder)) {}
  const std::filesystem::path& folder() const { return folder_; }

  /// Creates the folder and completes or undoes a save that was killed. Only for the process that trains.
  void recover();

  /// The folder that `last` points to; empty when nothing has been saved.
  /// Throws Error with the remedy when the link dangles.
  std::optional<std::filesystem::path> last() const;
  std::filesystem::path of_step(int64_t step) const { return folder_ / ("step-" + std::to_string(step)); }
  /// Steps that have a folder, ascending.
  std::vector<int64_t> steps() const;

  /// Saves under parts.state.step, points `last` (and `best`) there, and removes older checkpoints except the newest
  /// `keep_last`, the best and the last. When it throws, all earlier checkpoints are intact.
  void save(const RunParts& parts, bool best, int64_t keep_last);

  /// Reads a checkpoint into the parts, unless `accept` throws on its state. Throws Error naming the damaged file and
  /// the other checkpoints that are complete, or the first tensor that does not fit.
  void load(const std::filesystem::path& checkpoint, const RunParts& parts,
            const std::function<void(const RunState&)>& accept = {}) const;

  /// Points `best` at the checkpoint that the state names, in case a kill prevented it. Call it after load().
  void repair_best(const RunState& state);

 private:
  void write_files(const std::filesystem::path& folder, const RunParts& parts) const;
  void prune(int64_t current, int64_t keep_last);
  std::string complete_ones(const std::filesystem::path& but) const;

  std::filesystem::path folder_;
};

/// The file of a model: `where` may be a run folder (its best checkpoint, else its last), a checkpoint's folder, or a
/// file. Throws Error when there is none.
std::string find_model_file(const std::filesystem::path& where);

/// Reads all parameters from a file. Throws Error naming the first parameter that is missing,
/// unknown or of another shape.
void load_model(const std::string& path, ParamStore& params);

/// The state of a checkpoint's folder.
RunState read_state(const std::filesystem::path& checkpoint);

}  // namespace capstan
