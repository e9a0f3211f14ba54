#include "train/linear/ngram_rows.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "core/base/error.hpp"
#include "core/machine/parallel.hpp"

namespace capstan {
namespace {

constexpr int64_t few_ngrams = 4'000'000;  // so few that those of a single text are read, too
constexpr int64_t buckets_per_ngram = 4;   // of those that are read
constexpr int64_t most_weights = 1 << 26;  // 256 MB
constexpr int least_bits = 10, usual_most_bits = 22;
constexpr int64_t texts_at_once = 2048, blocks_per_thread = 256;

}  // namespace

NgramRows::NgramRows(const LabelledTexts& texts, const LinearClassifierConfig& config, int64_t classes,
                     std::shared_ptr<const BaseClassifier> base, int64_t most_bytes)
    : config_(config),
      classes_(classes),
      tokens_(texts.tokens()),
      multi_label_(texts.multi_label()),
      base_(std::move(base)) {
  if (base_ != nullptr) config_.buckets = base_->config.buckets;
  const int64_t most_entries = most_bytes / static_cast<int64_t>(sizeof(NgramCount));
  if (!read(texts, most_entries)) {
    const bool words_alone = base_ == nullptr && !config_.characters.empty() && !config_.words.empty();
    if (words_alone) config_.characters.clear();
    if (!words_alone || !read(texts, most_entries))
      throw Error(fmt::format(
          "linear-classifier: the n-grams of the training texts take more than {} MB; {} or train on fewer texts",
          most_bytes >> 20,
          base_ == nullptr ? "lower data.max_length, list fewer lengths in model.words," : "lower data.max_length"));
  }
  if (base_ != nullptr && rows() > most_bytes / static_cast<int64_t>(sizeof(float)) / base_->columns)
    throw Error(
        fmt::format("train.init_from: {} scores for each of {} texts take more than {} MB; start from a classifier of "
                    "fewer classes, or train on fewer texts",
                    base_->columns, rows(), most_bytes >> 20));
  norms_.assign(starts_.size() - 1, 0);
  choose_buckets();
  weigh();
  if (base_ != nullptr) score_with_base();
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
    if (static_cast<int64_t>(entries_.size()) > most_entries) return false;
    // The texts of the first group are about as long as the others.
    const double each = static_cast<double>(entries_.size()) / static_cast<double>(labels_.size());
    const double expected = std::min(1.05 * each * static_cast<double>(rows), static_cast<double>(most_entries));
    if (first == 0) entries_.reserve(static_cast<size_t>(expected));
  }
  return true;
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

void NgramRows::choose_buckets() {
  if (config_.min_texts == 0) config_.min_texts = entries() < few_ngrams ? 1 : 2;
  if (config_.buckets == 0) {
    const std::vector<int32_t> texts = rows_with(size_t{1} << most_bucket_bits);
    const int64_t ngrams = std::count_if(texts.begin(), texts.end(), [&](int32_t n) { return n >= config_.min_texts; });
    const int most = std::clamp(bits_of(most_weights / classes_ + 1) - 1, least_bits, usual_most_bits);
    config_.buckets = int64_t{1} << std::clamp(bits_of(buckets_per_ngram * ngrams), least_bits, most);
  }
  const int bits = bits_of(config_.buckets);
  shorten_blocks([&](std::vector<NgramCount>& block) { join_buckets(block, most_bucket_bits, bits); });
}

void NgramRows::weigh() {
  const std::vector<int32_t> texts = rows_with(static_cast<size_t>(config_.buckets));
  scale_.assign(texts.size(), 0);
  for (size_t f = 0; f < texts.size(); ++f)
    if (base_ != nullptr && base_->scale[f] != 0)
      scale_[f] = base_->scale[f];
    else if (texts[f] >= config_.min_texts)
      scale_[f] = static_cast<float>(std::log(static_cast<double>(1 + rows()) / (1 + texts[f])) + 1);
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

NgramBlock NgramRows::block(int64_t row, int which) const {
  const auto i = static_cast<size_t>(2 * row + which);
  return {entries_.data() + starts_[i], entries_.data() + starts_[i + 1], norms_[i]};
}

}  // namespace capstan
