// Pairs as examples, and rows of batches that several of them share: the batches of PairSource. A batch is a function
// of seed, epoch and index alone, which a resumed run relies on, and the draws must not change:
// tests/data/test_pairs.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/batches/batcher.hpp"
#include "data/batches/example_set.hpp"

namespace capstan {

/// Adds the sequence `end, source ..., separator, target ..., end`, whose label is its prompt_length(). The first `end`
/// starts the document, as in text with documents; the last one is a label alone, so a pair takes length() - 1 places
/// of a row. Throws std::invalid_argument for an empty target.
void add_pair(ExampleSet& pairs, const std::vector<int32_t>& source, const std::vector<int32_t>& target, int32_t end,
              int32_t separator);
/// Tokens up to and including the separator: what a completion is written after.
inline int64_t prompt_length(const ExampleSet& pairs, int64_t pair) { return pairs.label(pair); }
/// XXH3-128 over tokens and prompts.
std::string fingerprint_of_pairs(const ExampleSet& pairs);

/// Rows of up to `row_length` tokens. Within every 1,024 pairs of the order, the longest is placed first, in the first
/// row with room for it (first-fit decreasing). Every pair is one document of one row, once in an epoch. Labels are the
/// tokens of the target and the end after it; sources have none. Batch::examples = the place of the row in the epoch's
/// order.
class PackedPairs final : public BatchSource {
 public:
  /// With a seed, pairs and rows are permuted every epoch; without one, pairs are in their own order. `pairs` must
  /// outlive it. Throws std::invalid_argument when there are none, or one is longer than a row.
  PackedPairs(const ExampleSet& pairs, int64_t row_length, const BatchConfig& config, std::optional<uint64_t> seed);

  int64_t examples_per_epoch() const override { return plan(0)->batches(); }
  int64_t batches_per_epoch(int64_t epoch) const override;
  Batch batch(int64_t epoch, int64_t index) const override;

 private:
  /// An epoch's plan: its "batches" are rows.
  std::shared_ptr<const BatchPlan> plan(int64_t epoch) const;
  BatchPlan pack(int64_t epoch) const;

  const ExampleSet& pairs_;
  int64_t row_length_, rows_;  // rows of a batch
  std::optional<uint64_t> seed_;
  EpochPlan plan_;
};

}  // namespace capstan
