// The state of a run, except for its tensors: state.json of a checkpoint, and what must be the same when a run goes on.
// The checksums of a state vouch for all else that the run has saved: the files of its step, the weights of the best
// one, metrics.jsonl up to here (saved_checkpoint.hpp).
// A field that is added needs a default for runs without it, and a change that earlier versions cannot read raises
// run_format: tests/train/test_run_state.cpp, test_resume.cpp, tests/cli/runs/test_old_runs.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/config/settings.hpp"
#include "core/io/regular_file.hpp"
#include "train/configuration/train_config.hpp"

namespace capstan {

/// What must be the same when a run is resumed: "model", "data", "tokenizer" -> a text (configuration or fingerprint),
/// one fact per line, so that a difference can be shown.
using Identity = std::map<std::string, std::string>;

constexpr const char* model_name = "model.safetensors";
constexpr const char* optimizer_name = "optimizer.safetensors";
constexpr const char* state_name = "state.json";

/// Weights that a run started from.
struct ParentCheckpoint {
  std::string path;         // absolute, of the file of weights
  std::string fingerprint;  // XXH3-128: its checksum, or that of its bytes
  int64_t step = -1;        // step of its training run; -1: not known
  std::string note = {};    // of an import: the module, and what differs from it
};

struct RunState {
  bool has_model() const { return files.count(model_name) > 0; }
  bool has_optimizer() const { return files.count(optimizer_name) > 0; }

  std::string run;                           // the id of the run, made when it begins
  std::map<std::string, std::string> files;  // of the step: checksums by name; those removed on purpose are not in it
  int64_t step = 0;                          // updates so far
  int64_t epoch = 0, batch = 0;              // the next batch to be read
  int64_t optimizer_step = 0;  // updates of the optimizer, those of an earlier run that it goes on from included
  int64_t tokens = 0;          // read so far, not counting padding
  std::map<std::string, double> best;  // all metrics of best_step, by name; train.monitor says which decides
  std::optional<double> threshold;     // multi-label: chosen by the last validation
  std::vector<double> rule;  // of a classifier: DecisionRule, multi-label a threshold for each label; empty: none
  int64_t best_step = 0;
  std::string best_weights;     // the checksum of the model of best_step
  int64_t stalled = 0;          // evaluations since the best one
  int64_t validated_step = -1;  // the step of the last validation; -1: there was none
  bool validates = false;       // are there validation data?
  double seconds = 0;           // training time over all sessions
  double window_loss = 0;       // summed over the targets since the last logged step, in nats
  int64_t window_targets = 0;
  int64_t window_steps = 0;                // since the last logged step
  int64_t metrics_bytes = -1;              // metrics.jsonl's size at this step; -1: unknown
  std::string metrics_checksum;            // XXH3-128 of these bytes
  std::string working_folder;              // the last session's, which relative data paths start from
  std::vector<ParentCheckpoint> ancestry;  // what the run started from, then what that did; empty: random weights
  bool slim = false;                       // weights for prediction alone (run/training/slim_run.hpp)
  uint64_t seed = 0;
  Identity identity;
  Settings settings;  // train: as it was
  Settings machine;   // what bit-for-bit equality also depends on
};

/// The number of the format in which a run is saved. It grows when earlier versions cannot read what this one writes,
/// or this one not what they wrote. Up to 4: versions before 0.4.
constexpr int64_t run_format = 5;
/// JSON with a checksum over its content.
std::string to_json(const RunState& state);
/// Throws Error naming `path` when the text is damaged, and NewerFile for another format, with the version to use.
RunState run_state_from_json(const std::string& text, const std::string& path);

/// run.json of a folder of checkpoints: which run they are of, and which step was saved last.
struct RunMark {
  std::string id;     // RunState::run
  int64_t last = -1;  // -1: none yet
};
/// An id that no other run has.
std::string new_run_id();
/// JSON with a checksum over its content.
std::string to_json(const RunMark& mark);
/// Throws Error naming `path` when the text is damaged.
RunMark run_mark_from_json(const std::string& text, const std::string& path);

/// What results depend on bit by bit: BLAS build and kernel set of this process, in bf16 also the library that computes
/// such products. With portable kernels nothing of the machine matters, and only these are named.
Settings this_machine(const TrainConfig& config);

/// The remedy where a run cannot continue, behind "continue with what it was started with".
constexpr const char* begin_another =
    ", or begin another run with --set name=NEW, or remove the folder if nobody needs that run";
/// The same for a replay.
constexpr const char* nothing_to_compare = ": what another run computes cannot be compared with what this one saved";
/// Checks that a run saved as `saved` can continue as `now` (seed, identity and settings filled in): whatever the
/// position in the data or the tensors depend on must be the same. Throws Error naming the first difference and
/// the remedy.
void check_resumable(const RunState& saved, const RunState& now, const std::string& folder,
                     const char* otherwise = begin_another);

/// "PATH, step 6, fingerprint ..., NOTE".
std::string to_text(const ParentCheckpoint& ancestor);

/// The first line in which two texts differ, in words; empty if they do not.
std::string first_difference(const std::string& saved, const std::string& now);
/// One line per setting that differs, for the log.
std::vector<std::string> changes(const Settings& saved, const Settings& now);

}  // namespace capstan
