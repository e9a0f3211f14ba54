// Windows of a row of tokens, for training and for evaluation of language models. The label of a position is the token
// after its own.
#pragma once

#include "data/batcher.hpp"
#include "data/text_source.hpp"

namespace capstan {

/// Examples of sequence_length + 1 tokens. `contiguous`: an epoch draws an offset in [0, sequence_length), cuts the
/// text from there into windows that share no label, and visits each of them once in permuted order; what is left over
/// at the two ends, less than two windows, differs from epoch to epoch. `random`: as many windows, from anywhere.
/// Batch::examples = the place in the epoch's order.
class TrainingWindows final : public BatchSource {
 public:
  struct Options {
    int64_t sequence_length = 256;
    WindowRule rule = WindowRule::contiguous;
    uint64_t seed = 0;
  };

  /// `corpus` must outlive it. Throws Error when the text is shorter than one window.
  TrainingWindows(const TextCorpus& corpus, const Options& options, const BatchConfig& batches);

  int64_t examples_per_epoch() const override { return windows_; }
  int64_t batches_per_epoch(int64_t) const override { return (windows_ + rows_ - 1) / rows_; }
  Batch batch(int64_t epoch, int64_t index) const override;
  /// First token of the window at a place of an epoch's order.
  int64_t window_begin(int64_t epoch, int64_t place) const;

 private:
  const TextCorpus& corpus_;
  Options options_;
  int64_t rows_, windows_, offsets_;
};

/// Every token of a split is the label of exactly one position, the first one after the tokenizer's start token. With
/// `per_file` each file is a document of its own, so that its loss can be summed; otherwise the split is one document.
/// Windows after a document's first repeat the last `overlap` tokens as context, without counting them. The longest
/// windows come first; Batch::examples = the number of the window in text order.
class EvaluationWindows final : public BatchSource {
 public:
  struct Options {
    int64_t sequence_length = 256;
    int32_t start_token = 0;
    int64_t overlap = 0;
    bool per_file = false;
  };

  /// `corpus` must outlive it. Throws std::invalid_argument unless 0 <= overlap < sequence_length.
  EvaluationWindows(const TextCorpus& corpus, const Options& options, const BatchConfig& batches);

  int64_t examples_per_epoch() const override { return static_cast<int64_t>(windows_.size()); }
  int64_t batches_per_epoch(int64_t) const override { return plan_.batches(); }
  Batch batch(int64_t epoch, int64_t index) const override;
  /// Index into TextCorpus::files of the file that a window belongs to; -1 unless `per_file`.
  int64_t file_of(int64_t window) const { return windows_.at(static_cast<size_t>(window)).file; }

 private:
  /// Labels are tokens [begin, end); those before `counted` are context only.
  struct Window {
    int64_t file, document_begin, begin, counted, end;
  };
  void add_document(int64_t file, int64_t begin, int64_t end);

  const TextCorpus& corpus_;
  Options options_;
  std::vector<Window> windows_;
  BatchPlan plan_;
};

}  // namespace capstan
