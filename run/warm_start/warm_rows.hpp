// Which rows of a tensor fill which rows of a parameter, when a run starts from weights of another: for warm_start.cpp.
// tests/cli/training/test_warm_start.cpp.
#pragma once

#include <string>
#include <vector>

#include "run/setup/weights_origin.hpp"

namespace capstan {

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

}  // namespace capstan
