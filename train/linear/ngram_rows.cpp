// Makes the rows of NgramRows, which are kept in memory or made again whenever one is read. What is computed from rows
// must not depend on whether they are kept: tests/train/linear/test_linear.cpp ("rows of n-grams: ...").
#include "train/linear/ngram_rows.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>

#include <fmt/core.h>

#include "core/base/error.hpp"
#include "core/base/math.hpp"
#include "core/base/stop.hpp"
#include "core/io/tensor_rows.hpp"
#include "core/machine/parallel.hpp"

namespace capstan {
namespace {

constexpr int64_t few_ngrams = 4'000'000;            // entries: of fewer, n-grams of a single text are used, too
constexpr int64_t buckets_per_ngram = 4;             // for each n-gram that is used: most have a bucket alone
constexpr int64_t max_weights = 1 << 26;             // buckets times classes that are solved for: 256 MB
constexpr int64_t max_adagrad_weights = 1 << 27;     // buckets times classes that AdaGrad learns: 512 MB
constexpr int min_bits = 10, default_max_bits = 22;  // bits of a bucket's number, where it is chosen here
constexpr int64_t texts_at_once = 2048, blocks_per_thread = 256;  // work for all threads in little memory

}  // namespace

/// In three steps: the number of entries is estimated; the entries are read if they fit into memory; where they do not,
/// or solving would take too long, AdaGrad is chosen. Then buckets and scales follow from how many texts have n-grams.
NgramRows::NgramRows(const LabelledTexts& texts, const LinearClassifierConfig& config, int64_t classes,
                     std::shared_ptr<const BaseClassifier> base, RowBudget budget, WorkPlace work)
    : config_(config),
      classes_(classes),
      rows_(texts.size()),
      tokens_(texts.tokens()),
      multi_label_(texts.multi_label()),
      base_(std::move(base)),
      work_(std::move(work)) {
  if (base_ != nullptr) {
    config_.buckets = base_->config.buckets;
    config_.words = base_->config.words;
  } else if (!config_.words) {
    config_.words = rows() >= many_texts ? std::vector<int64_t>{1, 2, 3} : std::vector<int64_t>{1, 2};
  }
  const auto max_entries = [](int64_t bytes) { return bytes / static_cast<int64_t>(sizeof(NgramCount)); };
  const int64_t max_kept = max_entries(std::max(budget.kept, budget.solved)), max_solved = max_entries(budget.solved);
  read_labels(texts);
  copies_ = find_copies(rows(), [&](int64_t i) { return texts.hash(i); });
  texts.report_earlier(0);  // the rate of the readings begins here
  const double expected = expected_entries(texts);
  const int64_t problems = is_binary() ? 1 : classes_,
                soon_solved = std::min(max_solved, max_entries_solved(rows(), problems));
  const bool fit = expected <= static_cast<double>(max_kept);
  if (base_ == nullptr && (!fit || expected > static_cast<double>(soon_solved)))
    texts.expect_readings(adagrad_in_readings(problems, fit));
  const bool are_kept = fit && read(texts, max_kept, expected);
  by_adagrad_ =
      base_ == nullptr && (!are_kept || expected > static_cast<double>(max_solved) || entries() > soon_solved);
  if (base_ != nullptr && (!are_kept || rows() > max_kept / base_->columns))
    throw Error(
        fmt::format("train.init_from: the n-grams of the training texts, or {} scores for each of {} texts, take more "
                    "than {} MB (train.memory), and a linear-classifier that starts from another one has them in "
                    "memory; raise train.memory, lower data.max_length, train on fewer texts, start from a classifier "
                    "of fewer classes, or leave out train.init_from",
                    base_->columns, rows(), std::max(budget.kept, budget.solved) / 1'000'000));
  if (!are_kept) texts_.emplace(texts);
  choose_sizes();
  weigh(rows_with(bits_of(config_.buckets)));
  if (are_kept)
    set_final_entries();
  else
    texts_->stop_reporting();
  if (base_ != nullptr) score_with_base();
}

void NgramRows::read_labels(const LabelledTexts& texts) {
  labels_.reserve(static_cast<size_t>(rows()));
  if (texts.has_weights()) weights_.reserve(labels_.capacity());
  if (multi_label_) label_starts_.assign(1, 0);
  for (int64_t row = 0; row < rows(); ++row) {
    if (row % texts_at_once == 0) texts.stop_point();
    if (texts.has_weights()) weights_.push_back(texts.weight(row));
    if (!multi_label_) {
      labels_.push_back(texts.label(row));
      continue;
    }
    const LabelSet labels = texts.labels(row);
    labels_.insert(labels_.end(), labels.begin(), labels.end());
    label_starts_.push_back(static_cast<int64_t>(labels_.size()));
  }
  if (texts.has_weights())
    mean_weight_ = std::accumulate(weights_.begin(), weights_.end(), 0.0) / static_cast<double>(rows());
  std::vector<int64_t> counts(static_cast<size_t>(classes_), 0);
  for (const int32_t label : labels_) ++counts[static_cast<size_t>(label)];
  class_weights_ = weights_of(config_.class_weights, counts, rows(), multi_label_);
}

/// An estimate of the number of entries by the first texts, which are a sample since the order of texts is random. It
/// does not depend on the memory. 0 for few texts: they are read in any case, and their entries counted.
double NgramRows::expected_entries(const LabelledTexts& texts) const {
  if (rows() <= texts_at_once) return 0;
  std::vector<int64_t> entries(static_cast<size_t>(texts_at_once));
  LabelledTexts quiet(texts);
  quiet.stop_reporting();
  parallel_units(texts_at_once, [&](int64_t i) {
    const TextNgrams found = count_ngrams(quiet.text(i), orders_of(config_), max_bucket_bits);
    entries[static_cast<size_t>(i)] = static_cast<int64_t>(found.words.size() + found.characters.size());
  });
  const auto total = static_cast<double>(std::accumulate(entries.begin(), entries.end(), int64_t{0}));
  return total / static_cast<double>(texts_at_once) * static_cast<double>(rows());
}

/// Reads the entries of all texts, in 2^max_bucket_bits buckets. False, without any, for more than `max_entries`.
bool NgramRows::read(const LabelledTexts& texts, int64_t max_entries, double expected) {
  const NgramOrders orders = orders_of(config_);
  starts_.assign(1, 0);
  starts_.reserve(static_cast<size_t>(2 * rows() + 1));
  entries_.reserve(static_cast<size_t>(std::min(1.05 * expected, static_cast<double>(max_entries))));
  std::vector<RowScratch> scratches(static_cast<size_t>(team_size()));
  for (int64_t first = 0; first < rows(); first += texts_at_once) {
    std::vector<TextNgrams> group(static_cast<size_t>(std::min(texts_at_once, rows() - first)));
    parallel_units(static_cast<int64_t>(group.size()), [&](int64_t i) {
      RowScratch& scratch = scratches[static_cast<size_t>(thread_index())];
      find_ngrams(texts.text(first + i), orders, max_bucket_bits, nullptr, &scratch.memory, scratch.found);
      group[static_cast<size_t>(i)] = {counted(scratch.found.words, max_bucket_bits),
                                       counted(scratch.found.characters, max_bucket_bits)};
    });
    for (const TextNgrams& found : group)
      for (const auto* const counts : {&found.words, &found.characters})
        starts_.push_back(starts_.back() + static_cast<int64_t>(counts->size()));
    entry_count_ = starts_.back();
    if (entry_count_ > max_entries) {
      entries_ = {};
      starts_ = {};
      entry_count_ = 0;
      return false;
    }
    entries_.resize(static_cast<size_t>(entry_count_));
    parallel_each(static_cast<int64_t>(group.size()), 64, [&](int64_t i) {
      auto to = entries_.begin() + starts_[static_cast<size_t>(2 * (first + i))];
      for (const auto* const counts : {&group[static_cast<size_t>(i)].words, &group[static_cast<size_t>(i)].characters})
        to = std::copy(counts->begin(), counts->end(), to);
    });
  }
  return true;
}

/// The buckets of a row, each once, ascending.
void NgramRows::find_buckets(int64_t row, int bits, RowScratch& scratch, std::vector<uint32_t>& buckets) const {
  if (texts_) {
    find_ngrams(texts_->text(row), orders_of(config_), bits, nullptr, &scratch.memory, scratch.found);
    buckets.swap(scratch.found.words);
    buckets.insert(buckets.end(), scratch.found.characters.begin(), scratch.found.characters.end());
    sort_numbers(buckets, bits);
  } else {  // words, then characters
    buckets.clear();
    const auto add = [&](const NgramBlock& block) {
      for (const NgramCount* entry = block.begin; entry != block.end; ++entry)
        buckets.push_back(entry->bucket() >> (max_bucket_bits - bits));
      return static_cast<std::ptrdiff_t>(buckets.size());
    };
    const std::ptrdiff_t words = add(block(row, 0));
    add(block(row, 1));
    std::inplace_merge(buckets.begin(), buckets.begin() + words, buckets.end());
  }
  buckets.erase(std::unique(buckets.begin(), buckets.end()), buckets.end());
}

/// How many rows have each of 2^bits buckets. Where rows are not kept, counts are: to read all texts takes long.
std::vector<int32_t> NgramRows::rows_with(int bits) {
  const int64_t buckets = int64_t{1} << bits;
  std::vector<int32_t> count(static_cast<size_t>(buckets), 0);
  WorkFile file(kept() ? WorkPlace{} : work_, "ngrams");
  int64_t position[2] = {0, 0};  // the next row, and the entries before it
  int64_t &first = position[0], &found = position[1];
  if (const auto saved = file.load()) {
    for_rows<double>(saved->at("rows"), [&](int64_t f, const double* rows) {
      count[static_cast<size_t>(f)] = static_cast<int32_t>(*rows);
    });
    const std::vector<double> at = saved->at("position").to_doubles();
    std::copy(at.begin(), at.end(), position);
    texts_->report_earlier(first);
  }
  const auto save = [&] {
    file.save({{"rows", DType::i32, {buckets}, count.data()}, {"position", DType::i64, {2}, position}});
  };
  std::vector<RowScratch> scratches(static_cast<size_t>(team_size()));
  std::vector<std::vector<uint32_t>> group(static_cast<size_t>(texts_at_once));
  const bool any_left = first < rows();
  for (; first < rows(); first += texts_at_once) {
    if (file.due()) save();
    const int64_t size = std::min(texts_at_once, rows() - first);
    parallel_units(size, [&](int64_t i) {
      find_buckets(first + i, bits, scratches[static_cast<size_t>(thread_index())], group[static_cast<size_t>(i)]);
    });
    // A thread counts in buckets of its own, so that no two write the same count.
    parallel_for(buckets, buckets / std::max(threads(), 1), [&](int64_t begin, int64_t end) {
      for (int64_t i = 0; i < size; ++i) {
        const std::vector<uint32_t>& all = group[static_cast<size_t>(i)];
        for (auto at = std::lower_bound(all.begin(), all.end(), begin); at != all.end() && *at < end; ++at)
          ++count[*at];
      }
    });
    for (int64_t i = 0; i < size; ++i) found += static_cast<int64_t>(group[static_cast<size_t>(i)].size());
  }
  if (any_left) save();
  if (!kept()) entry_count_ = found;
  return count;
}

/// The most bits of a bucket's number, so that the weights of all classes are not too many.
int NgramRows::max_bits() const {
  const int64_t weights = by_adagrad_ ? max_adagrad_weights : max_weights;
  return std::clamp(bits_of(weights / classes_ + 1) - 1, min_bits, by_adagrad_ ? max_bucket_bits : default_max_bits);
}

/// Chooses min_texts and buckets; for AdaGrad, without the number of n-grams, which rows that are not kept do not tell.
void NgramRows::choose_sizes() {
  if (config_.min_texts == 0) config_.min_texts = !by_adagrad_ && entries() < few_ngrams ? 1 : 2;
  if (config_.buckets != 0) return;
  int bits = max_bits();
  if (!by_adagrad_) {
    const std::vector<int32_t> rows = rows_with(max_bucket_bits);
    const int64_t ngrams = std::count_if(rows.begin(), rows.end(), [&](int32_t n) { return n >= config_.min_texts; });
    bits = std::clamp(bits_of(buckets_per_ngram * ngrams), min_bits, bits);
  }
  config_.buckets = int64_t{1} << bits;
}

/// Sets the scale. rows: by bucket, how many rows have it.
void NgramRows::weigh(const std::vector<int32_t>& rows) {
  scale_.assign(rows.size(), 0);
  for (size_t f = 0; f < rows.size(); ++f)
    if (base_ != nullptr && base_->scale[f] != 0)
      scale_[f] = base_->scale[f];
    else if (rows[f] >= config_.min_texts)
      scale_[f] = static_cast<float>(math::log(static_cast<double>(1 + rows_) / (1 + rows[f])) + 1);
}

/// Gives the entries of a block their buckets, drops those of buckets that are in too few texts, and returns the norm.
float NgramRows::finish_block(std::vector<NgramCount>& block) const {
  join_buckets(block, max_bucket_bits, bits_of(config_.buckets));
  block.erase(std::remove_if(block.begin(), block.end(), [&](const NgramCount& e) { return scale_[e.bucket()] == 0; }),
              block.end());
  double squares = 0;
  for (const NgramCount& entry : block) {
    const auto x = static_cast<double>(count_weight(entry.count()) * scale_[entry.bucket()]);
    squares += x * x;
  }
  return squares > 0 ? static_cast<float>(1 / std::sqrt(squares)) : 0;
}

/// Finishes all blocks on all threads, and closes the gaps. Threads may move entries in place: a thread has
/// neighbouring blocks, takes a copy of one before it changes it, and writes no further than it has read, so that no
/// entry of another thread is touched. Gaps between threads come last.
void NgramRows::set_final_entries() {
  norms_.assign(starts_.size() - 1, 0);
  std::vector<int64_t> sizes(norms_.size());
  std::vector<std::pair<size_t, size_t>> pieces;  // first and last block that one thread moved together
  std::mutex mutex;
  parallel_for(static_cast<int64_t>(sizes.size()), blocks_per_thread, [&](int64_t first, int64_t last) {
    std::vector<NgramCount> block;
    auto to = entries_.begin() + starts_[static_cast<size_t>(first)];
    for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(last); ++i) {
      if (static_cast<int64_t>(i) % texts_at_once == 0) stop_point();
      block.assign(entries_.begin() + starts_[i], entries_.begin() + starts_[i + 1]);
      norms_[i] = finish_block(block);
      to = std::copy(block.begin(), block.end(), to);
      sizes[i] = static_cast<int64_t>(block.size());
    }
    const std::lock_guard<std::mutex> lock(mutex);
    pieces.emplace_back(first, last);
  });
  std::sort(pieces.begin(), pieces.end());
  entry_count_ = 0;
  for (const auto& [first, last] : pieces) {
    const int64_t begin = starts_[first],
                  size = std::accumulate(sizes.begin() + static_cast<std::ptrdiff_t>(first),
                                         sizes.begin() + static_cast<std::ptrdiff_t>(last), int64_t{0});
    if (entry_count_ < begin) std::copy_n(entries_.begin() + begin, size, entries_.begin() + entry_count_);
    entry_count_ += size;
  }
  for (size_t i = 0; i < sizes.size(); ++i) starts_[i + 1] = starts_[i] + sizes[i];
  entries_.erase(entries_.begin() + entry_count_, entries_.end());
}

void NgramRows::score_with_base() {
  const auto columns = static_cast<size_t>(base_->columns);
  base_scores_.resize(static_cast<size_t>(rows()) * columns);
  parallel_units(rows(), [&](int64_t row) {
    std::vector<double> sums(base_->bias.begin(), base_->bias.end());
    for (const int which : {0, 1}) {
      const NgramBlock found = block(row, which);
      for (const NgramCount* entry = found.begin; entry != found.end; ++entry) {
        const auto x = static_cast<double>(found.norm * count_weight(entry->count()) * scale_[entry->bucket()]);
        for (size_t k = 0; k < columns; ++k)
          sums[k] += x * static_cast<double>(base_->weight[entry->bucket() * columns + k]);
      }
    }
    std::copy(sums.begin(), sums.end(), base_scores_.begin() + row * base_->columns);
  });
  for (size_t k = 0; k < columns; ++k) {
    double sum = 0, squares = 0;
    for (size_t i = k; i < base_scores_.size(); i += columns) sum += static_cast<double>(base_scores_[i]);
    const double mean = sum / static_cast<double>(rows());
    for (size_t i = k; i < base_scores_.size(); i += columns)
      squares += (static_cast<double>(base_scores_[i]) - mean) * (static_cast<double>(base_scores_[i]) - mean);
    const double deviation = std::sqrt(squares / static_cast<double>(rows()));
    const float factor = deviation > 0 ? static_cast<float>(base_deviation / deviation) : 0;
    base_factor_.push_back(factor);
    for (size_t i = k; i < base_scores_.size(); i += columns) base_scores_[i] *= factor;
  }
}

void NgramRows::read_row(int64_t row, RowScratch& scratch, RowValues& values) const {
  std::vector<NgramValue>& all = values.all;
  all.clear();
  constexpr size_t ahead = 16;  // entries: the scales of all buckets do not fit into a cache, so they are fetched early
  const auto add_all = [&](const NgramCount* entry, const NgramCount* end) {
    for (; entry != end; ++entry) {
      if (entry + ahead < end) __builtin_prefetch(scale_.data() + entry[ahead].bucket());
      if (const float scale = scale_[entry->bucket()]; scale != 0)
        all.push_back({entry->bucket(), count_weight(entry->count()) * scale});
    }
  };
  const auto multiply = [&](size_t first, float norm) {
    for (size_t i = first; i < all.size(); ++i) all[i].value *= norm;
  };
  const int bits = bits_of(config_.buckets);
  if (texts_) find_ngrams(texts_->text(row), orders_of(config_), bits, nullptr, &scratch.memory, scratch.found);
  for (const int which : {0, 1}) {
    const size_t first = all.size();
    values.words = first;  // what stays is the second value: where characters begin, after all words
    if (texts_) {
      const std::vector<NgramCount> counts = counted(which == 0 ? scratch.found.words : scratch.found.characters, bits);
      add_all(counts.data(), counts.data() + counts.size());
      double squares = 0;
      for (size_t i = first; i < all.size(); ++i) {
        const auto x = static_cast<double>(all[i].value);
        squares += x * x;
      }
      multiply(first, squares > 0 ? static_cast<float>(1 / std::sqrt(squares)) : 0);
    } else {
      const NgramBlock kept = block(row, which);
      add_all(kept.begin, kept.end);
      multiply(first, kept.norm);
    }
  }
}

std::string NgramRows::report() const {
  return fmt::format("linear: {} texts, {} of {} buckets in use, {} n-grams a text", rows(),
                     std::count_if(scale_.begin(), scale_.end(), [](float scale) { return scale != 0; }), scale_.size(),
                     entries() / std::max<int64_t>(rows(), 1));
}

}  // namespace capstan
