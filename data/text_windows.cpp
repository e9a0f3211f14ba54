#include "data/text_windows.hpp"

#include <algorithm>
#include <numeric>

#include "core/error.hpp"

namespace capstan {
namespace {

Ids pad_labels(const std::vector<std::vector<int32_t>>& rows, const Shape& shape) {
  Ids labels(shape, ignored_target);
  int32_t* row_begin = labels.mutable_data();
  for (const auto& row : rows) {
    std::copy(row.begin(), row.end(), row_begin);
    row_begin += shape[1];
  }
  return labels;
}

Batch next_token_batch(const std::vector<std::vector<int32_t>>& tokens, const std::vector<std::vector<int32_t>>& labels,
                       const std::vector<int64_t>& examples) {
  Batch batch = pad_rows(tokens);
  batch.labels = pad_labels(labels, batch.tokens.shape());
  batch.examples =
      Ids(Shape{static_cast<int64_t>(examples.size())}, std::vector<int32_t>(examples.begin(), examples.end()));
  return batch;
}

}  // namespace

TrainingWindows::TrainingWindows(const TextCorpus& corpus, const Options& options, const BatchConfig& batches)
    : corpus_(corpus), options_(options) {
  const int64_t length = options.sequence_length, labels = corpus.size() - 1;
  check(length > 0, "training windows: sequence_length {} is not positive", length);
  if (labels < length)
    throw Error(
        fmt::format("data: the training text has {} tokens, one example needs {}; add text or lower sequence_length",
                    corpus.size(), length + 1));
  rows_ = batches.batch_tokens > 0 ? std::max<int64_t>(1, batches.batch_tokens / length) : batches.batch_size;
  // One window less than would fit leaves room for every offset, and gives every epoch the same number of batches.
  windows_ = std::max<int64_t>(1, labels / length - 1);
  offsets_ = std::min(length, labels - windows_ * length + 1);
}

int64_t TrainingWindows::window_begin(int64_t epoch, int64_t place) const {
  const auto epoch_number = static_cast<uint64_t>(epoch);
  if (options_.rule == WindowRule::random) {
    const RandomKey key = random_key(options_.seed, fmt::format("windows of epoch {}", epoch));
    const auto begins = static_cast<uint64_t>(corpus_.size() - options_.sequence_length);
    return static_cast<int64_t>(RandomStream(key, static_cast<uint64_t>(place) << 16).below(begins));
  }
  RandomStream offsets(random_key(options_.seed, "offset of windows"), epoch_number << 16);
  const auto offset = static_cast<int64_t>(offsets.below(static_cast<uint64_t>(offsets_)));
  const uint64_t window = permuted(static_cast<uint64_t>(place), static_cast<uint64_t>(windows_),
                                   random_key(options_.seed, "order of windows"), epoch_number);
  return offset + static_cast<int64_t>(window) * options_.sequence_length;
}

Batch TrainingWindows::batch(int64_t epoch, int64_t index) const {
  check(index >= 0 && index < batches_per_epoch(epoch), "batch: index {} is outside an epoch of {} batches", index,
        batches_per_epoch(epoch));
  std::vector<std::vector<int32_t>> tokens, labels;
  std::vector<int64_t> places;
  for (int64_t place = index * rows_; place < std::min(windows_, (index + 1) * rows_); ++place) {
    const int64_t begin = window_begin(epoch, place);
    const std::vector<int32_t> window = corpus_.tokens.slice(begin, begin + options_.sequence_length + 1);
    tokens.emplace_back(window.begin(), window.end() - 1);
    labels.emplace_back(window.begin() + 1, window.end());
    places.push_back(place);
  }
  return next_token_batch(tokens, labels, places);
}

EvaluationWindows::EvaluationWindows(const TextCorpus& corpus, const Options& options, const BatchConfig& batches)
    : corpus_(corpus), options_(options) {
  check(options.overlap >= 0 && options.overlap < options.sequence_length,
        "evaluation windows: overlap {} must be at least 0 and less than sequence_length {}", options.overlap,
        options.sequence_length);
  if (options.per_file)
    for (size_t i = 0; i < corpus.files.size(); ++i)
      add_document(static_cast<int64_t>(i), corpus.files[i].begin, corpus.files[i].end);
  else
    add_document(-1, 0, corpus.size());
  const auto length = [this](int64_t window) {
    return windows_[static_cast<size_t>(window)].end - windows_[static_cast<size_t>(window)].begin;
  };
  std::vector<int64_t> order(windows_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return length(a) > length(b); });
  plan_ = cut_batches(std::move(order), batches, length);
}

void EvaluationWindows::add_document(int64_t file, int64_t begin, int64_t end) {
  for (int64_t counted = begin; counted < end;) {
    const int64_t first = counted == begin ? begin : counted - options_.overlap;
    const int64_t last = std::min(end, first + options_.sequence_length);
    windows_.push_back({file, begin, first, counted, last});
    counted = last;
  }
}

Batch EvaluationWindows::batch(int64_t, int64_t index) const {
  check(index >= 0 && index < plan_.batches(), "batch: index {} is outside an epoch of {} batches", index,
        plan_.batches());
  std::vector<std::vector<int32_t>> tokens, labels;
  std::vector<int64_t> numbers;
  for (int64_t i = plan_.starts[static_cast<size_t>(index)]; i < plan_.starts[static_cast<size_t>(index) + 1]; ++i) {
    numbers.push_back(plan_.order[static_cast<size_t>(i)]);
    const Window& window = windows_[static_cast<size_t>(numbers.back())];
    labels.push_back(corpus_.tokens.slice(window.begin, window.end));
    std::fill_n(labels.back().begin(), window.counted - window.begin, ignored_target);
    const bool at_front = window.begin == window.document_begin;
    tokens.emplace_back(static_cast<size_t>(window.end - window.begin), options_.start_token);
    const int64_t behind = at_front ? 1 : 0;  // the start token
    corpus_.tokens.copy(window.begin - 1 + behind, window.end - 1, tokens.back().data() + behind);
  }
  return next_token_batch(tokens, labels, numbers);
}

}  // namespace capstan
