// A file of weights that another run, an import or another program has written, and what is known of it: what
// train.init_from names. run/warm_start fills a model from it, and a linear classifier starts from it in
// run_ngrams.cpp. tests/cli/training/test_warm_start.cpp and test_warm_refusals.cpp hold what is taken and refused.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/io/safetensors.hpp"
#include "run/setup/run_config.hpp"
#include "run/setup/saved_run.hpp"
#include "train/checkpoints/run_state.hpp"

namespace capstan {

/// What config.json of an export says. Programs that train an export copy it beside the weights that they write.
struct ExportedModel {
  TaskConfig model;
  std::string tokenizer;  // its fingerprint
};

/// An opened file of weights, and what is known of them by the files beside it.
struct WeightsOrigin {
  std::string file;
  std::unique_ptr<SafetensorsFile> tensors;
  std::optional<RunState> state;          // of the checkpoint
  std::optional<SavedRun> run;            // in a run folder; without a model
  std::optional<ExportedModel> exported;  // where config.json beside the file is that of an export

  std::filesystem::path folder() const { return std::filesystem::path(file).parent_path(); }
  /// Where a run keeps its tokenizer: in the folder of its checkpoints' folder.
  std::filesystem::path tokenizer_file() const { return folder().parent_path().parent_path() / "tokenizer.json"; }
  ParentCheckpoint ancestor() const;
  /// Other names of tensors.
  std::map<std::string, std::string> aliases() const;
};

/// `where`: a run folder (its best checkpoint), the folder of a checkpoint, or a safetensors file. Throws Error when
/// there is none, when it is damaged, and where read_run_files() refuses its run.
WeightsOrigin open_weights(const std::filesystem::path& where);

}  // namespace capstan
