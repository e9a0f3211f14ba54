// A trained run, read from its folder: config.yaml, tokenizer.json, classes.txt and checkpoints. Every command that
// uses a trained model opens it by open_run(). tests/cli/runs/test_bad_runs.cpp holds that damaged or mixed up runs are
// refused.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/safetensors.hpp"
#include "data/tokenizers/tokenizer.hpp"
#include "run/setup/run_config.hpp"
#include "run/setup/run_model.hpp"
#include "train/checkpoints/run_state.hpp"
#include "train/evaluation/decision.hpp"

namespace capstan {

/// Texts that identify a tokenizer and a list of classes; a checkpoint records both.
std::string identity_of(const Tokenizer& tokenizer);
std::string identity_of(const std::vector<std::string>& classes);

/// The names in a run folder's classes.txt, by label.
std::vector<std::string> read_classes(const std::filesystem::path& folder);

/// Writes the files of a run folder other than checkpoints: config.yaml, tokenizer.json and, for classifiers,
/// classes.txt. With the weights they are all that predict and generate need.
void write_run_files(const std::filesystem::path& folder, const RunConfig& config, const Tokenizer& tokenizer,
                     const std::vector<std::string>& classes);

/// A trained run: what its folder says of weights, and the model that has them.
struct SavedRun {
  std::filesystem::path folder;
  RunConfig config;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::vector<std::string> classes;  // of a classifier
  std::optional<RunState> state;     // the checkpoint's; none for a lone file of weights
  std::string weights;               // the file of them
  std::shared_ptr<RunModel> model;   // null: read_run_files() has not made it
  std::vector<double> thresholds;    // multi-label: for each class the probability from which a text has it
  DecisionRule rule;                 // with one label per text: which class a text is given
};

/// All but model, thresholds and rule. Throws Error, naming the file, if a file is missing or damaged, if the
/// checkpoint of the weights was trained with another tokenizer or other classes, or if the weights do not have the
/// shapes of the model. This is checked before anything is allocated in a size that a file states.
SavedRun read_run_files(const std::filesystem::path& folder, const SafetensorsFile& weights);

/// The run folder of a checkpoint's folder, or the folder itself. Throws Error when there is none.
std::filesystem::path run_folder_of(const std::filesystem::path& where);

/// `where`: a run folder (best checkpoint, else the last) or the folder of one of its checkpoints. Throws Error when
/// something is missing or damaged, naming the file. `memory`: allocated for a model that will have gradients.
SavedRun open_run(const std::filesystem::path& where, ParamMemory memory = ParamMemory::values);

/// The token in front of a text, after which its first one is predicted; none where the data have texts without.
std::optional<int32_t> start_token(const SavedRun& run);
/// The token that ends a document; none when the model was trained without documents.
std::optional<int32_t> end_of_document(const SavedRun& run);
/// The tokens that a language model reads before those that it predicts: the start token, where the data have one, the
/// text and, of pairs, whose text is the source (cut as in training), the separator. `place` is named by errors.
std::vector<int32_t> prompt_of(const SavedRun& run, std::string_view text, const std::string& place);

}  // namespace capstan
