// Nothing is stored for training windows: the n-th one of an epoch is found by an offset and a permutation, which are
// functions of seed and epoch (core/base/random.hpp). Windows for evaluation are listed once, and batches take the
// longest first.
#include "data/text/text_windows.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.hpp"

namespace capstan {

Mixture::Mixture(const std::vector<double>& weights, int64_t places) : places_(places) {
  check(!weights.empty(), "mixture: there are no weights");
  check(places >= 0, "mixture: {} places", places);
  for (const double weight : weights)
    check(weight > 0 && std::isfinite(weight), "mixture: weight {} is not a number above 0", weight);
  // Weights are taken as shares of the largest one, whose sum cannot overflow.
  const double largest = *std::max_element(weights.begin(), weights.end());
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0,
                                       [largest](double sum, double weight) { return sum + weight / largest; });
  std::vector<double> remainders;
  for (const double weight : weights) {
    const double quota = static_cast<double>(places) * (weight / largest / total);
    counts_.push_back(static_cast<int64_t>(std::floor(quota)));
    remainders.push_back(quota - std::floor(quota));
  }
  std::vector<size_t> order(weights.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return remainders[a] > remainders[b]; });
  const int64_t dealt = std::accumulate(counts_.begin(), counts_.end(), int64_t{0});
  for (size_t i = 0; i < static_cast<size_t>(places - dealt); ++i) ++counts_[order[i]];
}

Mixture::Turn Mixture::at(int64_t place) const {
  check(place >= 0 && place < places_, "mixture: place {} of {}", place, places_);
  int64_t number = place, places = places_;  // among those that the sources so far have left
  for (size_t source = 0; source + 1 < counts_.size(); ++source) {
    const int64_t count = counts_[source];
    const int64_t before = number * count / places;
    if ((number + 1) * count / places > before) return {source, before};
    number -= before;
    places -= count;
  }
  return {counts_.size() - 1, number};
}

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
                       const std::vector<int64_t>& examples, const std::optional<int32_t>& end_of_document) {
  Batch batch = pad_rows(tokens);
  if (end_of_document) number_documents(batch, *end_of_document);
  batch.labels = pad_labels(labels, batch.tokens.shape());
  batch.examples =
      Ids(Shape{static_cast<int64_t>(examples.size())}, std::vector<int32_t>(examples.begin(), examples.end()));
  return batch;
}

}  // namespace

TrainingWindows::TrainingWindows(const TextCorpus& corpus, const Options& options, const BatchConfig& batches)
    : corpus_(corpus),
      options_(options),
      stretches_(cut(corpus, options)),
      mixture_(mix(corpus, stretches_)),
      rows_(batches.rows_of_length(options.sequence_length)) {}

std::vector<TrainingWindows::Stretch> TrainingWindows::cut(const TextCorpus& corpus, const Options& options) {
  check(options.sequence_length > 0, "training windows: sequence_length {} is not positive", options.sequence_length);
  if (corpus.sources.empty()) return {make_stretch(0, corpus.size(), options.sequence_length, "the training text")};
  std::vector<Stretch> stretches;
  for (size_t i = 0; i < corpus.sources.size(); ++i) {
    const TextCorpus::Source& source = corpus.sources[i];
    stretches.push_back(make_stretch(source.begin, source.end, options.sequence_length,
                                     fmt::format("the training text of data.train.{} ({})", i, source.name)));
    // The first one is named like a text without sources: a single weight changes nothing.
    if (i > 0) stretches.back().name = fmt::format(" of source {}", i);
  }
  return stretches;
}

TrainingWindows::Stretch TrainingWindows::make_stretch(int64_t begin, int64_t end, int64_t length,
                                                       const std::string& text) {
  const int64_t labels = end - begin - 1;
  if (labels < length)
    throw Error(fmt::format("data: {} has {} tokens, but one example needs {}; add text or lower sequence_length", text,
                            end - begin, length + 1));
  // One window less than would fit leaves room for every offset, and gives every epoch the same number of batches.
  const int64_t windows = std::max<int64_t>(1, labels / length - 1);
  return {begin, end, windows, std::min(length, labels - windows * length + 1), ""};
}

Mixture TrainingWindows::mix(const TextCorpus& corpus, const std::vector<Stretch>& stretches) {
  std::vector<double> weights;
  for (const TextCorpus::Source& source : corpus.sources) weights.push_back(source.weight);
  if (weights.empty()) weights = {1};
  const Mixture mixture(weights,
                        std::accumulate(stretches.begin(), stretches.end(), int64_t{0},
                                        [](int64_t sum, const Stretch& stretch) { return sum + stretch.windows; }));
  for (size_t i = 0; i < weights.size(); ++i)
    if (mixture.count(i) == 0)
      throw Error(
          fmt::format("data.weights.{}: {} gives {} none of the {} windows of an epoch; raise it, or take the "
                      "entry out of data.train",
                      i, weights[i], corpus.sources[i].name, mixture.places()));
  return mixture;
}

TrainingWindows::Share TrainingWindows::share(size_t source) const {
  const int64_t windows = mixture_.count(source);
  return {windows, static_cast<double>(windows) / static_cast<double>(stretches_[source].windows)};
}

int64_t TrainingWindows::window_begin(int64_t epoch, int64_t place) const {
  const Mixture::Turn turn = mixture_.at(place);
  const Stretch& stretch = stretches_[turn.source];
  const int64_t drawn = epoch * mixture_.count(turn.source) + turn.number;  // since the first epoch began
  return stretch.begin + window_begin(stretch, drawn / stretch.windows, drawn % stretch.windows);
}

int64_t TrainingWindows::window_begin(const Stretch& stretch, int64_t epoch, int64_t place) const {
  if (options_.rule == WindowRule::random) {
    const RandomKey key = random_key(options_.seed, fmt::format("windows of epoch {}{}", epoch, stretch.name));
    const auto begins = static_cast<uint64_t>(stretch.end - stretch.begin - options_.sequence_length);
    return static_cast<int64_t>(RandomStream(key, static_cast<uint64_t>(place) << 16).below(begins));
  }
  RandomStream offsets(random_key(options_.seed, "offset of windows" + stretch.name), static_cast<uint64_t>(epoch)
                                                                                          << 16);
  const auto offset = static_cast<int64_t>(offsets.below(static_cast<uint64_t>(stretch.offsets)));
  const int64_t window =
      permuted_place(place, stretch.windows, random_key(options_.seed, "order of windows" + stretch.name), epoch);
  return offset + window * options_.sequence_length;
}

BatchExtent TrainingWindows::extent(int64_t epoch, int64_t index) const {
  check_batch_index(index, batches_per_epoch(epoch));
  return {std::min(mixture_.places(), (index + 1) * rows_) - index * rows_, options_.sequence_length};
}

Batch TrainingWindows::batch(int64_t epoch, int64_t index) const {
  return rows(epoch, index, 0, extent(epoch, index).rows);
}

Batch TrainingWindows::rows(int64_t epoch, int64_t index, int64_t begin, int64_t end) const {
  check(begin >= 0 && begin <= end && end <= extent(epoch, index).rows, "batch: rows [{}, {}) of {}", begin, end,
        extent(epoch, index).rows);
  std::vector<std::vector<int32_t>> tokens, labels;
  std::vector<int64_t> places;
  for (int64_t place = index * rows_ + begin; place < index * rows_ + end; ++place) {
    const int64_t first = window_begin(epoch, place);
    const std::vector<int32_t> window = corpus_.tokens.slice(first, first + options_.sequence_length + 1);
    tokens.emplace_back(window.begin(), window.end() - 1);
    labels.emplace_back(window.begin() + 1, window.end());
    places.push_back(place);
  }
  return next_token_batch(tokens, labels, places, corpus_.end_of_document);
}

EvaluationWindows::EvaluationWindows(const TextCorpus& corpus, const Options& options, const BatchConfig& batches)
    : corpus_(corpus), options_(options) {
  check(options.overlap >= 0 && options.overlap < options.sequence_length,
        "evaluation windows: overlap {} must be at least 0 and less than sequence_length {}", options.overlap,
        options.sequence_length);
  add_windows();
  if (options.max_tokens > 0 && corpus.size() > 0) {
    const double share = std::min(1.0, static_cast<double>(options.max_tokens) / static_cast<double>(corpus.size()));
    keep(std::max<int64_t>(1, std::llround(share * static_cast<double>(windows_.size()))),
         batches.rows_of_length(options.sequence_length));
  }
  plan_ = plan_longest_first(examples_per_epoch(), batches, [this](int64_t window) {
    return windows_[static_cast<size_t>(window)].end - windows_[static_cast<size_t>(window)].begin;
  });
}

void EvaluationWindows::keep(int64_t count, int64_t rows) {
  const double distance = static_cast<double>(windows_.size()) / static_cast<double>(count);
  const int64_t batches = (count + rows - 1) / rows;
  std::vector<Window> kept;
  for (int64_t batch = 0; batch < batches; ++batch)
    for (int64_t place = batch; place < count; place += batches)
      kept.push_back(windows_[static_cast<size_t>(static_cast<double>(place) * distance)]);
  windows_ = std::move(kept);
}

int64_t EvaluationWindows::counted_tokens() const {
  return std::accumulate(windows_.begin(), windows_.end(), int64_t{0},
                         [](int64_t sum, const Window& window) { return sum + window.end - window.counted; });
}

int64_t EvaluationWindows::boundary_within(int64_t begin, int64_t end) const {
  if (!corpus_.end_of_document) return end;
  const std::vector<int32_t> tokens = corpus_.tokens.slice(begin, end);
  const auto found = std::find(tokens.rbegin(), tokens.rend(), *corpus_.end_of_document);
  return found == tokens.rend() ? end : end - (found - tokens.rbegin());
}

void EvaluationWindows::add_windows() {
  bool within_document = false;
  const int64_t end = corpus_.size();
  for (int64_t counted = 0; counted < end;) {
    const int64_t first = within_document ? counted - options_.overlap : counted;
    int64_t last = std::min(end, first + options_.sequence_length);
    // A document that the window would cut begins the next one.
    if (last < end) last = boundary_within(counted, last);
    windows_.push_back({first, counted, last});
    within_document = corpus_.end_of_document != corpus_.tokens[last - 1];
    counted = last;
  }
}

Batch EvaluationWindows::batch(int64_t, int64_t index) const {
  check_batch_index(index, plan_.batches());
  std::vector<std::vector<int32_t>> tokens, labels;
  std::vector<int64_t> numbers;
  for (int64_t i = plan_.starts[static_cast<size_t>(index)]; i < plan_.starts[static_cast<size_t>(index) + 1]; ++i) {
    numbers.push_back(plan_.order[static_cast<size_t>(i)]);
    const Window& window = windows_[static_cast<size_t>(numbers.back())];
    labels.push_back(corpus_.tokens.slice(window.begin, window.end));
    std::fill_n(labels.back().begin(), window.counted - window.begin, ignored_target);
    tokens.emplace_back(static_cast<size_t>(window.end - window.begin), options_.start_token);
    const int64_t skipped = window.begin == 0 ? 1 : 0;  // the start token stays in front of the text's first token
    corpus_.tokens.copy(window.begin - 1 + skipped, window.end - 1, tokens.back().data() + skipped);
  }
  return next_token_batch(tokens, labels, numbers, corpus_.end_of_document);
}

}  // namespace capstan
