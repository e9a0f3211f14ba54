// Texts that occur more than once, within a split or in two, found by their hashes: for the warnings and reports of
// text and of labelled texts. tests/data/labelled/test_checks.cpp holds the counts, also those that are estimated from
// a sample.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace capstan {

constexpr size_t checked_splits = 3;  // train, valid, test

/// The hash of a text of a split, with the numbers by which its owner finds the text.
struct TextMark {
  uint64_t hash;  // copy_hash()
  uint32_t split;
  int32_t label;   // the class; 0 where there are none
  uint64_t place;  // an index of the owner's
  int64_t weight;  // what is counted: 1 for texts, their bytes for lines
};

/// Texts that occur twice: the first one and a later one.
struct TextPair {
  uint64_t first = 0, second = 0;
  uint32_t first_split = 0, second_split = 0;
};

struct Duplicates {
  static constexpr size_t shown = 5;

  struct Sum {
    int64_t texts = 0, weight = 0;
    void add(const TextMark& mark) {
      ++texts;
      weight += mark.weight;
    }
  };
  struct OfSplit {
    Sum repeated;                                                // texts that occurred before in the same split
    std::array<Sum, checked_splits> also_in{};                   // texts that also occur in that split
    std::array<std::vector<TextPair>, checked_splits> examples;  // of also_in, at most `shown`
    Sum other_label;  // texts of which a copy, in any split, has another label
  };
  std::array<OfSplit, checked_splits> splits;
  std::vector<TextPair> conflicts;  // copies with different labels, at most `shown`
};

/// Counts the copies among all marks, which it sorts: by hash, split and place.
Duplicates find_duplicates(std::vector<TextMark>& marks);

/// All marks or, of more than `most`, a sample: those whose hash is divisible by stride(), a power of two. Equal texts
/// are in it together or not at all.
class MarkSample {
 public:
  explicit MarkSample(size_t most = size_t{1} << 22) : most_(most) {}
  void add(const TextMark& mark);
  uint64_t stride() const { return stride_; }
  /// The sample's duplicates, scaled for each split to all texts, in number and in weight. Call it once, at the end.
  Duplicates duplicates();

 private:
  using Sums = std::array<Duplicates::Sum, checked_splits>;

  size_t most_;
  uint64_t stride_ = 1;
  std::vector<TextMark> marks_;
  Sums all_;  // of all texts, in the sample or not
};

}  // namespace capstan
