// The files of one checkpoint: model.safetensors, optimizer.safetensors and state.json, each with a checksum.
// Checkpoints (checkpoint.hpp) writes them into a hidden folder. Their bytes do not depend on the number of ranks:
// tests/train/test_disk_use.cpp.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "core/io/safetensors.hpp"
#include "nn/params/param_store.hpp"
#include "train/checkpoints/saved_checkpoint.hpp"
#include "train/optimizers/optimizer.hpp"
#include "train/ranks/communicator.hpp"

namespace capstan {

/// What a checkpoint saves and restores. The files do not depend on how many ranks wrote them.
struct RunParts {
  ParamStore& params;
  Optimizer& optimizer;
  RunState& state;
  Communicator* ranks = nullptr;     // null: one process
  std::vector<Elements> owned = {};  // with several ranks: what this one owns of the parameters
};

/// Writes the files of tensors, and returns their checksums, by name. All ranks call it; each writes what it owns into
/// the files that rank 0 has made.
std::map<std::string, std::string> write_tensor_files(const std::filesystem::path& folder, const RunParts& parts);
/// Writes all files; `parts.state` gets what it says of them. All ranks call it. They are not on the disk before
/// sync_checkpoint() has returned, which is for rank 0.
void write_checkpoint(const std::filesystem::path& folder, const RunParts& parts);
void sync_checkpoint(const std::filesystem::path& folder);
/// Makes the folder of checkpoints of a run that is made without training: one checkpoint, whose files `write` writes
/// into the folder that it is given. It returns their checksums, by name.
using WriteFiles = std::function<std::map<std::string, std::string>(const std::filesystem::path& folder)>;
void write_only_checkpoint(const std::filesystem::path& checkpoints, RunState state, const WriteFiles& write);
/// An estimate of how long that takes, for the time left before one was timed: a quarter of a gigabyte per second.
double seconds_to_save(const RunParts& parts);
/// Reads a whole checkpoint, of which all was read, into the parts. Throws Error naming the first tensor that does not
/// fit, or the checkpoint without a model; the parts may then be partly read. Of a run that has ended, the last
/// checkpoint may be its state alone.
void read_checkpoint(const SavedCheckpoint& checkpoint, const RunParts& parts);

/// Throws Error naming the first parameter that a file does not have, that is unknown or of another shape. The store
/// needs no memory (ParamMemory::none).
void check_model_fits(const SafetensorsFile& file, const ParamStore& params);
/// Reads all parameters from a file. Throws Error as check_model_fits().
void load_model(const SafetensorsFile& file, ParamStore& params);

}  // namespace capstan
