// Pairs as tokens, and rows of batches that several of them share: the batches of PairSource. A batch is a function of
// seed, epoch and index alone, which a resumed run relies on, and the draws must not change: tests/data/test_pairs.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/batches/batcher.hpp"

namespace capstan {

/// Sequences `end, source ..., separator, target ..., end`, one after the other in memory. The first `end` starts the
/// document, as in text with documents; the last one is a label alone, so a pair takes length() - 1 places of a row.
class PairSet {
 public:
  int64_t size() const { return static_cast<int64_t>(prompts_.size()); }
  const int32_t* tokens(int64_t pair) const { return tokens_.data() + offsets_[static_cast<size_t>(pair)]; }
  /// Tokens of the whole sequence.
  int64_t length(int64_t pair) const {
    return offsets_[static_cast<size_t>(pair) + 1] - offsets_[static_cast<size_t>(pair)];
  }
  /// Tokens up to and including the separator: what a completion is written after.
  int64_t prompt_length(int64_t pair) const { return prompts_[static_cast<size_t>(pair)]; }
  int64_t token_count() const { return static_cast<int64_t>(tokens_.size()); }

  /// Throws std::invalid_argument for an empty target.
  void add(const std::vector<int32_t>& source, const std::vector<int32_t>& target, int32_t end, int32_t separator);
  /// XXH3-128 over tokens and prompts.
  std::string fingerprint() const;

 private:
  std::vector<int32_t> tokens_;
  std::vector<int64_t> offsets_{0}, prompts_;  // where pairs begin, and the end; prompt_length() of each
};

/// Rows of up to `row_length` tokens. Within every 1,024 pairs of the order, the longest is placed first, in the first
/// row with room for it (first-fit decreasing). Every pair is one document of one row, once in an epoch. Labels are the
/// tokens of the target and the end after it; sources have none. Batch::examples = the place of the row in the epoch's
/// order.
class PackedPairs final : public BatchSource {
 public:
  /// With a seed, pairs and rows are permuted every epoch; without one, pairs are in their own order. `pairs` must
  /// outlive it. Throws std::invalid_argument when there are none, or one is longer than a row.
  PackedPairs(const PairSet& pairs, int64_t row_length, const BatchConfig& config, std::optional<uint64_t> seed);

  int64_t examples_per_epoch() const override { return plan(0)->batches(); }
  int64_t batches_per_epoch(int64_t epoch) const override;
  Batch batch(int64_t epoch, int64_t index) const override;

 private:
  /// An epoch's plan: its "batches" are rows.
  std::shared_ptr<const BatchPlan> plan(int64_t epoch) const;
  BatchPlan pack(int64_t epoch) const;

  const PairSet& pairs_;
  int64_t row_length_, rows_;  // rows of a batch
  std::optional<uint64_t> seed_;
  EpochPlan plan_;
};

}  // namespace capstan
