// Windows of a row of tokens, for training and for evaluation of language models: the batches of TextSource. The label
// of a position is the token after its own. A training window is a function of seed, epoch and place alone, which a
// resumed run relies on, and the draws must not change: tests/data/test_text_source.cpp, test_mixture.cpp and
// test_documents.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/batches/batcher.hpp"
#include "data/text/text_config.hpp"
#include "data/text/text_corpus.hpp"

namespace capstan {

/// Deals the places of an epoch to sources. Source i has exactly count(i) of them in every epoch, places w_i / sum(w)
/// rounded by the largest remainders, so that the counts add up. Its places are spread evenly: of the first source's,
/// floor(p count(0) / places) precede place p, and the places it leaves are dealt to the others in the same way.
/// A look-up takes O(sources) and no memory.
class Mixture {
 public:
  struct Turn {
    size_t source;
    int64_t number;  // of the source's places in this epoch, from 0
  };

  /// Throws std::invalid_argument unless there are weights, all of them greater than 0 and finite, and places >= 0.
  Mixture(const std::vector<double>& weights, int64_t places);

  int64_t places() const { return places_; }
  /// The number of a source's places in an epoch; may be 0 for a small weight.
  int64_t count(size_t source) const { return counts_.at(source); }
  /// place: in [0, places).
  Turn at(int64_t place) const;

 private:
  int64_t places_;
  std::vector<int64_t> counts_;
};

/// Examples of sequence_length + 1 tokens. `contiguous`: an epoch draws an offset in [0, sequence_length), or as far as
/// a short text allows, cuts the text from there into windows that share no label, and visits each of them once in
/// permuted order; what is left over at the two ends, less than two windows, differs from epoch to epoch. `random`: as
/// many windows, from anywhere. Batch::examples = the place in the epoch's order. Where the corpus has documents, each
/// of them is a segment of its own, and one that a window cuts is two of them.
///
/// A corpus with sources is cut source by source, and an epoch has as many windows as all of them have together. A
/// Mixture deals these to the sources by their weights; a source of n windows whose turn it is for the k-th time since
/// the first epoch began gives window k mod n of its own epoch floor(k / n).
class TrainingWindows final : public BatchSource {
 public:
  struct Options {
    int64_t sequence_length = 256;
    WindowRule rule = WindowRule::contiguous;
    uint64_t seed = 0;
  };
  /// What an epoch takes of a source: the number of its windows, and how often these pass through its text.
  struct Share {
    int64_t windows;
    double passes;
  };

  /// `corpus` must outlive it. Throws Error when the text, or that of a source, is shorter than one window, and when a
  /// weight is too small for a single window.
  TrainingWindows(const TextCorpus& corpus, const Options& options, const BatchConfig& batches);

  int64_t examples_per_epoch() const override { return mixture_.places(); }
  int64_t batches_per_epoch(int64_t) const override { return (mixture_.places() + rows_ - 1) / rows_; }
  Batch batch(int64_t epoch, int64_t index) const override;
  BatchExtent extent(int64_t epoch, int64_t index) const override;
  Batch rows(int64_t epoch, int64_t index, int64_t begin, int64_t end) const override;
  /// First token of the window at a place of an epoch's order.
  int64_t window_begin(int64_t epoch, int64_t place) const;
  /// The share of source number `source` in an epoch.
  Share share(size_t source) const;

 private:
  /// Tokens [begin, end), whose windows have an order of their own. offsets: how many an epoch may draw from.
  struct Stretch {
    int64_t begin, end, windows, offsets;
    std::string name;  // in the keys of its random numbers
  };
  static std::vector<Stretch> cut(const TextCorpus& corpus, const Options& options);
  /// `length`: of a window. `text`: what an error calls the stretch.
  static Stretch make_stretch(int64_t begin, int64_t end, int64_t length, const std::string& text);
  static Mixture mix(const TextCorpus& corpus, const std::vector<Stretch>& stretches);
  int64_t window_begin(const Stretch& stretch, int64_t epoch, int64_t place) const;

  const TextCorpus& corpus_;
  Options options_;
  std::vector<Stretch> stretches_;  // one for each source; without sources, one for the whole corpus
  Mixture mixture_;
  int64_t rows_;
};

/// Every token of a split is the label of exactly one position, the first one after the start token. Windows after
/// the first repeat the last `overlap` tokens as context, without counting them. Where the corpus has documents, a
/// window begins with a document and ends with another one or the same, so that each document of at most
/// sequence_length tokens has the loss that it has alone; only within longer ones are there windows that repeat. The
/// longest windows come first; Batch::examples = the number of the window.
class EvaluationWindows final : public BatchSource {
 public:
  struct Options {
    int64_t sequence_length = 256;
    int32_t start_token = 0;
    int64_t overlap = 0;
    int64_t max_tokens = 0;  // windows with about as many, each batch from all over the text; 0: all of them
  };

  /// `corpus` must outlive it. Throws std::invalid_argument unless 0 <= overlap < sequence_length.
  EvaluationWindows(const TextCorpus& corpus, const Options& options, const BatchConfig& batches);

  int64_t examples_per_epoch() const override { return static_cast<int64_t>(windows_.size()); }
  int64_t batches_per_epoch(int64_t) const override { return plan_.batches(); }
  Batch batch(int64_t epoch, int64_t index) const override;
  /// Tokens whose loss counts.
  int64_t counted_tokens() const;

 private:
  /// Labels are tokens [begin, end); those before `counted` are context only.
  struct Window {
    int64_t begin, counted, end;
  };
  void add_windows();
  /// Keeps `count` windows at equal distances, ordered so that each `rows` of them are from all over the text: the
  /// losses of such batches differ as little as those of samples, and say how far the mean is from that of all.
  void keep(int64_t count, int64_t rows);
  /// The position after the last document that ends within tokens [begin, end); `end` when none does.
  int64_t boundary_within(int64_t begin, int64_t end) const;

  const TextCorpus& corpus_;
  Options options_;
  std::vector<Window> windows_;
  BatchPlan plan_;
};

}  // namespace capstan
