// The weights that a run starts from: train.init_from. Training calls it once, before the first step; a run that goes
// on from a checkpoint does not. tests/cli/training/test_warm_start.cpp and test_warm_refusals.cpp hold what is taken
// and refused.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "run/setup/weights_origin.hpp"
#include "train/loop/trainer.hpp"

namespace capstan {

// Which rows of a tensor fill which rows of a parameter, when a run starts from weights of another.

/// Names for the rows of a run's tables, by which they are found in the tables of another run.
struct RowNames {
  std::vector<std::string> tokens;   // by token id, a name that is the same in every vocabulary with this token
  std::vector<std::string> classes;  // by label
  std::string tokenizer;             // the fingerprint of the tokenizer
};
RowNames row_names(const RunConfig& config, const Tokenizer& tokenizer, std::vector<std::string> classes);

/// The tensor's row for each row of a parameter, -1: none; empty: the tensor does not fit.
struct RowMapping {
  std::vector<int64_t> rows;
  std::string note;     // why it does not fit, or how its rows were found
  bool misfit = false;  // it has the name of a parameter of another shape
};

/// Finds the rows of tables by what they mean: a token, a class, a position, a bucket of n-grams.
class WarmRows {
 public:
  /// All three must outlive it.
  WarmRows(const RunConfig& config, const RowNames& rows, const WeightsOrigin& origin);

  RowMapping map(const Param& param, const FileTensor& tensor) const;

 private:
  /// Matches rows by their names in this run (`ours`) and in the file (`theirs`; empty: not known).
  RowMapping by_name(const Param& param, const FileTensor& tensor, const std::vector<std::string>& ours,
                     const std::vector<std::string>& theirs, const char* what) const;
  /// Is the origin an export that was made with another tokenizer, or does not say with which?
  bool other_tokenizer() const;
  /// Why n-grams do not have the same buckets in the file; empty: they have.
  std::string ngram_difference(const std::string& table) const;

  const RunConfig& config_;
  const RowNames& rows_;
  const WeightsOrigin& origin_;
  RowNames theirs_;  // of the run that the file is from; empty where that is not known
};

/// Fills the parameters from config.train.init_from, without the tensors of init_skip: a parameter takes the tensor of
/// its name and shape. Rows of embed, output, head and ngrams.output are found by token and class, those of position
/// tables by position, and tables of n-grams only fit if all that their hash depends on is equal. Whatever finds
/// nothing keeps its value. Returns where the weights are from, with a table for the log. Throws Error when the file
/// cannot be used, when nothing in it fits, when a pattern of init_skip matches no tensor, and when a value is not
/// finite.
WarmStart warm_start(const RunConfig& config, const RowNames& rows, const RunParts& parts);

/// Adds a problem unless train.init_from leads to something, or is not needed because the run has a checkpoint.
void check_init_from(const RunConfig& config, Problems& problems);

}  // namespace capstan
