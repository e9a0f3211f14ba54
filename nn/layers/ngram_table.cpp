// A text's n-grams are counted by row, and their rows added in ascending order: the bits of a sum depend neither on the
// order of the text nor on the form of the table. Packed rows have their scale in front of the weights, so that a row
// is one or two lines of the cache; the few classes of most models are added in registers, four at a time.
#include "nn/layers/ngram_table.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

#include "core/base/error.hpp"
#include "core/io/tensor_rows.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

constexpr int max_fours = 4;  // groups of four classes that add_fours() keeps in registers

}  // namespace

/// Counts how often rows are added and gives the counts in the order of rows. Faster than sorting, but it needs a byte
/// and some bits of memory for every row of the table.
class RowCounter {
 public:
  void begin(int64_t rows) {
    if (!counts_.empty()) return;
    const auto count = static_cast<size_t>(rows);
    tops_.resize(count / 4096 + 1);
    words_.resize(count / 64 + 1);
    counts_.resize(count + 1);
  }
  /// Counts `row` once more, up to 255; false if it was counted before.
  bool add(uint32_t row) {
    uint8_t& count = counts_[row];
    if (count > 0) {
      count = static_cast<uint8_t>(std::min(count + 1, 255));
      return false;
    }
    count = 1;
    words_[row >> 6] |= uint64_t{1} << (row & 63);
    tops_[row >> 12] |= uint64_t{1} << (row >> 6 & 63);
    return true;
  }
  /// The rows with their counts, in ascending order; sets all counts back to 0.
  const std::vector<NgramCount>& take() {
    taken_.clear();
    for (size_t top = 0; top < tops_.size(); ++top)
      for (uint64_t words = std::exchange(tops_[top], 0); words != 0; words &= words - 1) {
        const size_t word = 64 * top + static_cast<size_t>(__builtin_ctzll(words));
        for (uint64_t bits = std::exchange(words_[word], 0); bits != 0; bits &= bits - 1) {
          const size_t row = 64 * word + static_cast<size_t>(__builtin_ctzll(bits));
          taken_.emplace_back(static_cast<uint32_t>(row), std::exchange(counts_[row], uint8_t{0}));
        }
      }
    return taken_;
  }

 private:
  std::vector<uint8_t> counts_;
  std::vector<uint64_t> words_, tops_;  // a bit for each row, and for each word of `words_`, that is not 0
  std::vector<NgramCount> taken_;
};

/// Work memory for one text, kept for the next one together with the n-grams of words that earlier texts had.
struct NgramScratch {
  NgramNumbers ngrams;
  NgramMemory memory;
  RowCounter counter;
};

/// A pool of NgramScratch: add_text() takes one for a text, so there is one for each thread that runs at the same time.
class NgramScratches {
 public:
  std::unique_ptr<NgramScratch> take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (idle_.empty()) return std::make_unique<NgramScratch>();
    std::unique_ptr<NgramScratch> scratch = std::move(idle_.back());
    idle_.pop_back();
    return scratch;
  }
  void give(std::unique_ptr<NgramScratch> scratch) {
    const std::lock_guard<std::mutex> lock(mutex_);
    idle_.push_back(std::move(scratch));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<NgramScratch>> idle_;
};

NgramTable::NgramTable(NgramOrders orders, const Array& scale, const Array& weight)
    : orders_(std::move(orders)),
      buckets_(scale.size()),
      classes_(weight.dim(1)),
      scale_(scale.data()),
      weight_(weight.data()),
      scale_step_(1),
      weight_step_(classes_) {}

NgramTable::NgramTable(NgramOrders orders, const FileTensor& scale, const FileTensor& weight)
    : orders_(std::move(orders)),
      buckets_(scale.size),
      classes_(weight.shape.at(1)),
      scale_step_(classes_ + 1),
      weight_step_(classes_ + 1) {
  check(scale.size == weight.shape[0], "n-grams: {} scales for {} rows of weights", scale.size, weight.shape[0]);
  std::vector<real> scales;
  index_ = std::make_shared<const RowIndex>(buckets_, [&](const auto& keep) {
    for_rows<real>(scale, [&](int64_t bucket, const real* value) {
      if (*value == 0) return;
      keep(bucket);
      scales.push_back(*value);
    });
  });
  const int64_t rows = index_->count();
  const Array memory(Shape{rows * (classes_ + 1) + max_fours * 4});  // add_fours() reads beyond the last row
  scratches_ = std::make_shared<NgramScratches>();
  rows_ = memory.view(0, Shape{rows, classes_ + 1});
  real* const out = rows_.shared_data();
  scale_ = out;
  weight_ = out + 1;
  for (size_t number = 0; number < scales.size(); ++number) {
    real* const to = out + static_cast<int64_t>(number) * scale_step_;
    *to = scales[number];
    std::fill_n(to + 1, classes_, real{0});
  }
  std::fill_n(out + rows_.size(), max_fours * 4, real{0});
  for_rows<real>(weight, [&](int64_t bucket, const real* values) {
    if (const int64_t number = row_of(bucket); number >= 0)
      std::copy_n(values, classes_, out + number * weight_step_ + 1);
  });
}

real NgramTable::scale(int64_t bucket) const {
  const int64_t row = row_of(bucket);
  return row < 0 ? real{0} : scale_[row * scale_step_];
}

const real* NgramTable::weights(int64_t bucket) const {
  const int64_t number = row_of(bucket);
  return number < 0 ? nullptr : row(number);
}

void NgramTable::add_text(std::string_view text, double* sums) const {
  const int bits = bits_of(buckets_);
  if (index_ == nullptr) {
    const TextNgrams counts = count_ngrams(text, orders_, bits);
    add_rows(counts.words, sums);
    add_rows(counts.characters, sums);
    return;
  }
  // After an exception the scratch is dropped, not given back: its counts may not be 0.
  std::unique_ptr<NgramScratch> scratch = scratches_->take();
  NgramNumbers& ngrams = scratch->ngrams;
  find_ngrams(text, orders_, bits, index_.get(), &scratch->memory, ngrams);
  add_block(ngrams.words, *scratch, sums);
  add_block(ngrams.characters, *scratch, sums);
  scratches_->give(std::move(scratch));
}

void NgramTable::add_block(std::vector<uint32_t>& rows, NgramScratch& scratch, double* sums) const {
  scratch.counter.begin(rows_.dim(0));
  for (const uint32_t number : rows) {
    if (!scratch.counter.add(number)) continue;
    __builtin_prefetch(row(number) - 1);  // all rows of a text fit into a cache
    __builtin_prefetch(row(number) + classes_ - 1);
  }
  add_rows(scratch.counter.take(), sums);
}

/// add_rows() for at most 4 * fours classes, with sums in registers. Reads 4 * fours weights of each row: those after
/// the last class belong to the next row, and their sums are not used.
template <int fours>
void NgramTable::add_fours(const std::vector<NgramCount>& counts, double* sums) const {
  double block[4 * fours] = {}, squares = 0;
  for (const NgramCount& entry : counts) {
    const double x = value_of(entry);
    squares += x * x;
    const real* const weights = row(entry.bucket());
    for (int c = 0; c < 4 * fours; ++c) block[c] += x * static_cast<double>(weights[c]);
  }
  add_scaled(block, squares, sums);
}

void NgramTable::add_rows(const std::vector<NgramCount>& counts, double* sums) const {
  if (index_ != nullptr && classes_ <= 4) return add_fours<1>(counts, sums);
  if (index_ != nullptr && classes_ <= 8) return add_fours<2>(counts, sums);
  if (index_ != nullptr && classes_ <= 4 * max_fours) return add_fours<max_fours>(counts, sums);
  std::vector<double> block(static_cast<size_t>(classes_), 0);
  double squares = 0;
  for (const NgramCount& entry : counts) {
    const double x = value_of(entry);
    if (x == 0) continue;
    squares += x * x;
    const real* const weights = row(entry.bucket());
    for (int64_t c = 0; c < classes_; ++c) block[static_cast<size_t>(c)] += x * static_cast<double>(weights[c]);
  }
  add_scaled(block.data(), squares, sums);
}

void NgramTable::add_scaled(const double* block, double squares, double* sums) const {
  if (squares == 0) return;
  for (int64_t c = 0; c < classes_; ++c) sums[c] += block[c] / std::sqrt(squares);
}

}  // namespace capstan::CAPSTAN_PRECISION
