// The files of one checkpoint: model.safetensors, optimizer.safetensors and state.json, each with a checksum.
// Checkpoints (checkpoint.hpp) writes them into a hidden folder. Their bytes do not depend on the number of ranks:
// tests/train/test_disk_use.cpp.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/io/safetensors.hpp"
#include "nn/params/param_store.hpp"
#include "train/checkpoints/run_state.hpp"
#include "train/optimizers/optimizer.hpp"
#include "train/ranks/communicator.hpp"

namespace capstan {

constexpr const char* model_name = "model.safetensors";
constexpr const char* optimizer_name = "optimizer.safetensors";
constexpr const char* state_name = "state.json";

/// What a checkpoint saves and restores. The files do not depend on how many ranks wrote them.
struct RunParts {
  ParamStore& params;
  Optimizer& optimizer;
  RunState& state;
  Communicator* ranks = nullptr;     // null: one process
  std::vector<Elements> owned = {};  // with several ranks: what this one owns of the parameters
};

/// Writes all files. All ranks call it; each writes what it owns into the files that rank 0 has made. They are not on
/// the disk before sync_checkpoint() has returned, which is for rank 0.
void write_checkpoint(const std::filesystem::path& folder, const RunParts& parts);
void sync_checkpoint(const std::filesystem::path& folder);
/// An estimate of how long that takes, for the time left before one was timed: a quarter of a gigabyte per second.
double seconds_to_save(const RunParts& parts);
/// Reads all files that the checkpoint has. Throws Error naming the damaged file, the first tensor that does not fit,
/// or the checkpoint without a model; the parts may then be partly read. Of a run that has ended, the last checkpoint
/// may be its state alone.
void read_checkpoint(const std::filesystem::path& checkpoint, const RunParts& parts);
/// Names the first file that is absent, damaged or of another step, and why; nothing when all are whole or were removed
/// on purpose. Throws FileError when a file cannot be read for another reason, NewerFile for one of another version.
std::optional<std::string> damage_of(const std::filesystem::path& checkpoint);
/// Whether training can go on from it: it is whole and has the optimizer's state.
bool can_resume(const std::filesystem::path& checkpoint);

/// The state of a checkpoint's folder.
RunState read_state(const std::filesystem::path& checkpoint);

/// Throws Error naming the first parameter that a file does not have, that is unknown or of another shape. The store
/// needs no memory (ParamMemory::none).
void check_model_fits(const SafetensorsFile& file, const ParamStore& params);
/// Reads all parameters from a file. Throws Error as check_model_fits().
void load_model(const SafetensorsFile& file, ParamStore& params);
/// damage_of() for what is needed to use a model: its file and, if there is one, the state next to it. Without damage,
/// `model` is the open file.
std::optional<std::string> damage_of_model(const std::string& path, std::optional<SafetensorsFile>& model);

}  // namespace capstan
