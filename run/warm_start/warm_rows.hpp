// Which rows of a tensor fill which rows of a parameter, when a run starts from weights of another.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "run/setup/weights_origin.hpp"

namespace capstan {

/// What a run knows of the rows of its tables, to find them again in those of another run.
struct RowNames {
  std::vector<std::string> tokens;   // a name for every token id, that every vocabulary gives to the same token
  std::vector<std::string> classes;  // by label
  std::string tokenizer;             // fingerprint
};
RowNames row_names(const RunConfig& config, const Tokenizer& tokenizer, std::vector<std::string> classes);

/// The tensor's row for each row of a parameter, -1: none; empty: the tensor does not fit.
struct RowPlan {
  std::vector<int64_t> rows;
  std::string note;     // why it does not fit, or how its rows were found
  bool misfit = false;  // it has the name of a parameter of another shape
};

/// Rows of tables mean something: a token, a class, a position, a bucket of n-grams.
class WarmRows {
 public:
  /// All must outlive it.
  WarmRows(const RunConfig& config, const RowNames& rows, const WeightsOrigin& origin);

  RowPlan plan(const Param& param, const FileTensor& tensor) const;

 private:
  RowPlan by_name(const Param& param, const FileTensor& tensor, const std::vector<std::string>& now,
                  const std::vector<std::string>& then, const char* what) const;
  /// Is the origin an export that was made with another tokenizer, or does not say with which?
  bool other_tokenizer() const;
  std::string ngram_difference(const std::string& table) const;

  const RunConfig& config_;
  const RowNames& rows_;
  const WeightsOrigin& origin_;
  RowNames theirs_;
};

}  // namespace capstan
