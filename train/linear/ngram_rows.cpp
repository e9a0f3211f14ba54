#include "train/linear/ngram_rows.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/core.h>

#include "core/base/error.hpp"
#include "core/base/stop.hpp"
#include "core/machine/memory_limit.hpp"
#include "core/machine/parallel.hpp"

namespace capstan {
namespace {

constexpr int64_t few_ngrams = 4'000'000;       // so few that those of a single text are read, too
constexpr int64_t buckets_per_ngram = 4;        // of those that are read
constexpr int64_t most_weights = 1 << 26;       // 256 MB
constexpr int64_t most_pass_weights = 1 << 27;  // of so many n-grams that they are not solved for
constexpr int least_bits = 10, usual_most_bits = 22;
constexpr int64_t most_solving = 10'000'000;  // entries times classes of so many texts that are solved for
constexpr int64_t many_texts = 100'000;       // of which passes learn as much in a fraction of the time
constexpr int64_t texts_at_once = 2048, blocks_per_thread = 256;

}  // namespace

NgramRows::NgramRows(const LabelledTexts& texts, const LinearClassifierConfig& config, int64_t classes,
                     std::shared_ptr<const BaseClassifier> base, RowBudget budget)
    : config_(config),
      classes_(classes),
      tokens_(texts.tokens()),
      multi_label_(texts.multi_label()),
      base_(std::move(base)) {
  if (base_ != nullptr) config_.buckets = base_->config.buckets;
  if (budget.kept == 0) budget.kept = std::max(budget.solved, static_cast<int64_t>(memory_limit().bytes / 4));
  const auto most_entries = [](int64_t bytes) { return bytes / static_cast<int64_t>(sizeof(NgramCount)); };
  const bool kept = read(texts, most_entries(base_ != nullptr ? budget.solved : budget.kept));
  if (!kept && base_ != nullptr)
    throw Error(
        fmt::format("train.init_from: the n-grams of the training texts take more than {} MB, which a "
                    "linear-classifier can learn only without a start; lower data.max_length, train on fewer "
                    "texts, or leave out train.init_from",
                    budget.solved >> 20));
  if (base_ != nullptr && texts.size() > most_entries(budget.solved) / base_->columns)
    throw Error(
        fmt::format("train.init_from: {} scores for each of {} texts take more than {} MB; start from a classifier of "
                    "fewer classes, or train on fewer texts",
                    base_->columns, texts.size(), budget.solved >> 20));
  const int64_t problems = is_binary() ? 1 : classes_;
  const bool takes_long = rows() >= many_texts && entries() > most_solving / problems;
  by_passes_ = !kept || entries() > most_entries(budget.solved) || (base_ == nullptr && takes_long);
  if (kept) {
    norms_.assign(starts_.size() - 1, 0);
    choose_buckets();
    weigh(rows_with(static_cast<size_t>(config_.buckets)));
    set_norms();
  } else {
    count_texts(texts);
    texts_.emplace(texts);
    texts_->stop_reporting();
  }
  read_weights(texts);
  if (base_ != nullptr) score_with_base();
}

void NgramRows::read_weights(const LabelledTexts& texts) {
  std::vector<int64_t> counts(static_cast<size_t>(classes_), 0);
  bool same = true;
  for (int64_t row = 0; row < rows(); ++row) {
    for (const int32_t label : labels(row)) ++counts[static_cast<size_t>(label)];
    weights_.push_back(texts.weight(row));
    same = same && weights_.back() == 1;
  }
  mean_weight_ = std::accumulate(weights_.begin(), weights_.end(), 0.0) / static_cast<double>(rows());
  if (same) weights_.clear();
  class_weights_ = weights_of(config_.class_weights, counts, rows(), multi_label_);
}

/// Returns false when there are too many entries.
bool NgramRows::read(const LabelledTexts& texts, int64_t most_entries) {
  const NgramOrders orders = orders_of(config_);
  const int64_t rows = texts.size();
  labels_.clear();
  entries_.clear();
  starts_.assign(1, 0);
  for (int64_t first = 0; first < rows; first += texts_at_once) {
    std::vector<TextNgrams> group(static_cast<size_t>(std::min(texts_at_once, rows - first)));
    parallel_units(static_cast<int64_t>(group.size()), [&](int64_t i) {
      group[static_cast<size_t>(i)] = count_ngrams(texts.text(first + i), orders, most_bucket_bits);
    });
    for (const TextNgrams& found : group) {
      labels_.push_back(texts.labels(static_cast<int64_t>(labels_.size())));
      for (const auto* const counts : {&found.words, &found.characters}) {
        entries_.insert(entries_.end(), counts->begin(), counts->end());
        starts_.push_back(static_cast<int64_t>(entries_.size()));
      }
    }
    entry_count_ = static_cast<int64_t>(entries_.size());
    if (entry_count_ > most_entries) return false;
    // The texts of the first group are about as long as the others.
    const double each = static_cast<double>(entries_.size()) / static_cast<double>(labels_.size());
    const double expected = std::min(1.05 * each * static_cast<double>(rows), static_cast<double>(most_entries));
    if (first == 0) entries_.reserve(static_cast<size_t>(expected));
  }
  return true;
}

/// In how many texts each bucket is, those that read() has kept among them, which are then forgotten.
void NgramRows::count_texts(const LabelledTexts& texts) {
  if (config_.min_texts == 0) config_.min_texts = 2;
  if (config_.buckets == 0) config_.buckets = int64_t{1} << most_bits();
  const int bits = bits_of(config_.buckets);
  std::vector<int32_t> count(static_cast<size_t>(config_.buckets), 0);
  const auto sort_out = [&](std::vector<uint32_t>& buckets) {
    std::sort(buckets.begin(), buckets.end());
    buckets.erase(std::unique(buckets.begin(), buckets.end()), buckets.end());
  };
  std::vector<uint32_t> buckets;
  for (int64_t row = 0; row < rows(); ++row) {
    buckets.clear();
    for (int64_t at = starts_[static_cast<size_t>(2 * row)]; at < starts_[static_cast<size_t>(2 * row + 2)]; ++at)
      buckets.push_back(entries_[static_cast<size_t>(at)].bucket() >> (most_bucket_bits - bits));
    sort_out(buckets);
    for (const uint32_t bucket : buckets) ++count[bucket];
  }
  entries_ = {};
  starts_ = {};
  std::vector<RowScratch> scratches(static_cast<size_t>(team_size()));
  for (int64_t first = rows(); first < texts.size(); first = rows()) {
    std::vector<std::vector<uint32_t>> group(static_cast<size_t>(std::min(texts_at_once, texts.size() - first)));
    parallel_units(static_cast<int64_t>(group.size()), [&](int64_t i) {
      RowScratch& scratch = scratches[static_cast<size_t>(thread_index())];
      std::vector<uint32_t>& all = group[static_cast<size_t>(i)];
      find_ngrams(texts.text(first + i), orders_of(config_), bits, nullptr, &scratch.memory, scratch.found);
      all.swap(scratch.found.words);
      all.insert(all.end(), scratch.found.characters.begin(), scratch.found.characters.end());
      sort_out(all);
    });
    for (const std::vector<uint32_t>& all : group) {
      labels_.push_back(texts.labels(rows()));
      entry_count_ += static_cast<int64_t>(all.size());
      for (const uint32_t bucket : all) ++count[bucket];
    }
  }
  weigh(count);
}

/// change(block): the entries of one block, to be made fewer, on any thread.
template <class Change>
void NgramRows::shorten_blocks(const Change& change) {
  std::vector<int64_t> sizes(starts_.size() - 1);
  parallel_for(static_cast<int64_t>(sizes.size()), blocks_per_thread, [&](int64_t first, int64_t last) {
    std::vector<NgramCount> block;
    for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(last); ++i) {
      block.assign(entries_.begin() + starts_[i], entries_.begin() + starts_[i + 1]);
      change(block);
      std::copy(block.begin(), block.end(), entries_.begin() + starts_[i]);
      sizes[i] = static_cast<int64_t>(block.size());
    }
  });
  int64_t kept = 0, begin = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (kept < begin) std::copy_n(entries_.begin() + begin, sizes[i], entries_.begin() + kept);
    begin = starts_[i + 1];
    starts_[i + 1] = kept += sizes[i];
  }
  entries_.erase(entries_.begin() + kept, entries_.end());
  entry_count_ = kept;
}

/// How many rows have each bucket. A word and an n-gram of characters may share one: both blocks are sorted by it.
std::vector<int32_t> NgramRows::rows_with(size_t buckets) const {
  std::vector<int32_t> count(buckets, 0);
  for (int64_t row = 0; row < rows(); ++row) {
    const NgramBlock words = block(row, 0), characters = block(row, 1);
    const NgramCount *word = words.begin, *character = characters.begin;
    while (word != words.end || character != characters.end) {
      const uint32_t of_word = word != words.end ? word->bucket() : UINT32_MAX,
                     of_character = character != characters.end ? character->bucket() : UINT32_MAX;
      ++count[std::min(of_word, of_character)];
      if (of_word <= of_character) ++word;
      if (of_character <= of_word) ++character;
    }
  }
  return count;
}

/// Of a bucket's number, so that the weights of all classes are not too many.
int NgramRows::most_bits() const {
  const int64_t weights = by_passes_ ? most_pass_weights : most_weights;
  return std::clamp(bits_of(weights / classes_ + 1) - 1, least_bits, by_passes_ ? most_bucket_bits : usual_most_bits);
}

void NgramRows::choose_buckets() {
  if (config_.min_texts == 0) config_.min_texts = entries() < few_ngrams ? 1 : 2;
  if (config_.buckets == 0) {
    const std::vector<int32_t> texts = rows_with(size_t{1} << most_bucket_bits);
    const int64_t ngrams = std::count_if(texts.begin(), texts.end(), [&](int32_t n) { return n >= config_.min_texts; });
    config_.buckets = int64_t{1} << std::clamp(bits_of(buckets_per_ngram * ngrams), least_bits, most_bits());
  }
  const int bits = bits_of(config_.buckets);
  shorten_blocks([&](std::vector<NgramCount>& block) { join_buckets(block, most_bucket_bits, bits); });
}

/// texts: by bucket, the rows that have it.
void NgramRows::weigh(const std::vector<int32_t>& texts) {
  scale_.assign(texts.size(), 0);
  for (size_t f = 0; f < texts.size(); ++f)
    if (base_ != nullptr && base_->scale[f] != 0)
      scale_[f] = base_->scale[f];
    else if (texts[f] >= config_.min_texts)
      scale_[f] = static_cast<float>(std::log(static_cast<double>(1 + rows()) / (1 + texts[f])) + 1);
}

void NgramRows::set_norms() {
  shorten_blocks([&](std::vector<NgramCount>& block) {
    block.erase(
        std::remove_if(block.begin(), block.end(), [&](const NgramCount& e) { return scale_[e.bucket()] == 0; }),
        block.end());
  });
  parallel_each(static_cast<int64_t>(norms_.size()), blocks_per_thread, [&](int64_t i) {
    const auto b = static_cast<size_t>(i);
    double squares = 0;
    for (int64_t at = starts_[b]; at < starts_[b + 1]; ++at) {
      const NgramCount& entry = entries_[static_cast<size_t>(at)];
      const auto x = static_cast<double>(count_weight(entry.count()) * scale_[entry.bucket()]);
      squares += x * x;
    }
    norms_[b] = squares > 0 ? static_cast<float>(1 / std::sqrt(squares)) : 0;
  });
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
  const auto add = [&](const NgramCount& entry) {
    const float scale = scale_[entry.bucket()];
    if (scale != 0) all.push_back({entry.bucket(), count_weight(entry.count()) * scale});
  };
  const auto multiply = [&](size_t first, float norm) {
    for (size_t i = first; i < all.size(); ++i) all[i].value *= norm;
  };
  const int bits = bits_of(config_.buckets);
  if (texts_) find_ngrams(texts_->text(row), orders_of(config_), bits, nullptr, &scratch.memory, scratch.found);
  for (const int which : {0, 1}) {
    const size_t first = values.words = which == 0 ? 0 : all.size();
    if (texts_) {
      for (const NgramCount& entry : counted(which == 0 ? scratch.found.words : scratch.found.characters, bits))
        add(entry);
      double squares = 0;
      for (size_t i = first; i < all.size(); ++i) {
        const auto x = static_cast<double>(all[i].value);
        squares += x * x;
      }
      multiply(first, squares > 0 ? static_cast<float>(1 / std::sqrt(squares)) : 0);
    } else {
      const NgramBlock kept = block(row, which);
      for (const NgramCount* entry = kept.begin; entry != kept.end; ++entry) add(*entry);
      multiply(first, kept.norm);
    }
  }
}

std::string NgramRows::report() const {
  return fmt::format("linear: {} texts, {} of {} buckets in use, {} n-grams a text", rows(),
                     std::count_if(scale_.begin(), scale_.end(), [](float scale) { return scale != 0; }), scale_.size(),
                     entries() / std::max<int64_t>(rows(), 1));
}

NgramBlock NgramRows::block(int64_t row, int which) const {
  const auto i = static_cast<size_t>(2 * row + which);
  return {entries_.data() + starts_[i], entries_.data() + starts_[i + 1], norms_[i]};
}

}  // namespace capstan
