// Batches of labelled examples. An epoch has a plan: an order of examples, and where batches begin in it. Permutations
// are computed place by place (permuted_place), so only the present epoch's plan is in memory.
// tests/data/test_batches.cpp.
#include "data/batches/batcher.hpp"

#include <numeric>

#include "core/base/error.hpp"

namespace capstan {
namespace {

constexpr int64_t batches_per_chunk = 64;  // sorted by length together; another number changes old runs' batches

/// The labels of examples `rows`: (B), or for sets of labels (B, C) with 1 where the example has the label.
Ids batch_labels(const ExampleSet& examples, const std::vector<int64_t>& rows) {
  const auto count = static_cast<int64_t>(rows.size());
  const int64_t columns = examples.label_columns();
  Ids labels = columns > 0 ? Ids::zeros(Shape{count, columns}) : Ids(Shape{count});
  int32_t* const out = labels.mutable_data();
  for (int64_t row = 0; row < count; ++row) {
    const int64_t example = rows[static_cast<size_t>(row)];
    if (columns == 0) out[row] = examples.label(example);
    if (columns > 0)
      for (const int32_t label : examples.labels(example)) out[row * columns + label] = 1;
  }
  return labels;
}

/// A batch of the examples `rows`, with at least `width` columns. names[i]: what Batch::examples says of row i.
Batch labelled_batch(const ExampleSet& examples, const std::vector<int64_t>& rows, const std::vector<int64_t>& names,
                     int64_t width = 0) {
  std::vector<std::vector<int32_t>> tokens;
  for (const int64_t row : rows) tokens.push_back(examples.tokens(row));
  Batch batch = pad_rows(tokens, width);
  const auto count = static_cast<int64_t>(rows.size());
  batch.labels = batch_labels(examples, rows);
  batch.examples = Ids(Shape{count}, std::vector<int32_t>(names.begin(), names.end()));
  if (!examples.has_weights()) return batch;
  batch.weights = Array(Shape{count});
  for (int64_t row = 0; row < count; ++row)
    batch.weights.mutable_data()[row] = static_cast<real>(examples.weight(rows[static_cast<size_t>(row)]));
  return batch;
}

/// The entries of plan.order that batch `index` of the plan holds.
std::vector<int64_t> entries(const BatchPlan& plan, int64_t index) {
  check_batch_index(index, plan.batches());
  const auto begin = plan.order.begin() + plan.starts[static_cast<size_t>(index)];
  const auto end = plan.order.begin() + plan.starts[static_cast<size_t>(index) + 1];
  return {begin, end};
}

}  // namespace

void check_batch_index(int64_t index, int64_t batches) {
  check(index >= 0 && index < batches, "batch: index {} is outside an epoch of {} batches", index, batches);
}

BatchPlan plan_longest_first(int64_t count, const BatchConfig& config, const std::function<int64_t(int64_t)>& length) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return length(a) > length(b); });
  return cut_batches(std::move(order), config, length);
}

Batch rows_of(const Batch& batch, int64_t begin, int64_t end) {
  return {batch.tokens.rows(begin, end), batch.segment_ids.rows(begin, end), batch.labels.rows(begin, end),
          batch.examples.empty() ? batch.examples : batch.examples.rows(begin, end),
          batch.weights.empty() ? batch.weights : batch.weights.rows(begin, end)};
}

std::vector<Batch> split_rows(const Batch& batch, int64_t tokens) {
  const int64_t rows = batch.tokens.dim(0), length = batch.tokens.dim(1);
  if (tokens <= 0 || rows * length <= tokens) return {batch};
  // The fewest pieces within the limit, of equal height: GEMMs are slow on a short last piece.
  const int64_t most = std::max<int64_t>(1, tokens / std::max<int64_t>(length, 1));
  const int64_t count = (rows + most - 1) / most;
  std::vector<Batch> pieces;
  for (int64_t piece = 0; piece < count; ++piece) {
    const int64_t begin = rows * piece / count, end = rows * (piece + 1) / count;
    pieces.push_back(rows_of(batch, begin, end));
  }
  return pieces;
}

BatchExtent BatchSource::extent(int64_t epoch, int64_t index) const {
  const Batch whole = batch(epoch, index);
  return {whole.tokens.dim(0), whole.tokens.dim(1)};
}

Batch BatchSource::rows(int64_t epoch, int64_t index, int64_t begin, int64_t end) const {
  return rows_of(batch(epoch, index), begin, end);
}

Batch pad_rows(const std::vector<std::vector<int32_t>>& rows, int64_t width) {
  auto longest = static_cast<size_t>(width);
  for (const auto& row : rows) longest = std::max(longest, row.size());
  const Shape shape{static_cast<int64_t>(rows.size()), static_cast<int64_t>(longest)};
  Batch batch;
  batch.tokens = Ids::zeros(shape);
  batch.segment_ids = Ids::zeros(shape);
  int32_t* tokens = batch.tokens.mutable_data();
  int32_t* segments = batch.segment_ids.mutable_data();
  for (const auto& row : rows) {
    std::copy(row.begin(), row.end(), tokens);
    std::fill_n(segments, row.size(), 1);
    tokens += longest;
    segments += longest;
  }
  return batch;
}

void for_padded_groups(const std::vector<std::vector<int32_t>>& rows,
                       const std::function<void(const std::vector<int64_t>& indices, const Batch& group)>& take) {
  BatchConfig config;
  config.batch_tokens = 16384;
  const BatchPlan plan = plan_longest_first(static_cast<int64_t>(rows.size()), config, [&](int64_t row) {
    return static_cast<int64_t>(rows[static_cast<size_t>(row)].size());
  });
  for (int64_t group = 0; group < plan.batches(); ++group) {
    const std::vector<int64_t> indices = entries(plan, group);
    std::vector<std::vector<int32_t>> members;
    for (const int64_t row : indices) members.push_back(rows[static_cast<size_t>(row)]);
    take(indices, pad_rows(members));
  }
}

ExampleBatches::ExampleBatches(const ExampleSet& examples, const BatchConfig& config, std::optional<uint64_t> seed)
    : examples_(examples), config_(config), seed_(seed) {
  check(!seed || examples.size() > 0, "batches: there are no examples");
}

int64_t ExampleBatches::example(int64_t epoch, int64_t place) const {
  if (!seed_) return place;
  return permuted_place(place, examples_.size(), random_key(*seed_, "order of examples"), epoch);
}

std::shared_ptr<const BatchPlan> ExampleBatches::plan(int64_t epoch) const {
  return plan_.of(seed_ ? epoch : 0, [&] {
    const int64_t count = examples_.size();
    if (!seed_) return plan_longest_first(count, config_, [&](int64_t i) { return examples_.length(i); });
    std::vector<int64_t> lengths(static_cast<size_t>(count));  // by place in the epoch's order
    for (int64_t place = 0; place < count; ++place)
      lengths[static_cast<size_t>(place)] = examples_.length(example(epoch, place));
    const auto length = [&](int64_t place) { return lengths[static_cast<size_t>(place)]; };

    int64_t chunk = batches_per_chunk * config_.batch_size;
    if (config_.batch_tokens > 0)
      chunk = batches_per_chunk * std::max<int64_t>(1, config_.batch_tokens * count / examples_.token_count());
    std::vector<int64_t> order(static_cast<size_t>(count));
    std::iota(order.begin(), order.end(), 0);
    for (int64_t begin = 0; begin < count; begin += chunk)
      std::stable_sort(order.begin() + begin, order.begin() + std::min(count, begin + chunk),
                       [&](int64_t a, int64_t b) { return length(a) < length(b); });
    return cut_batches(std::move(order), config_, length);
  });
}

std::vector<int64_t> ExampleBatches::places(int64_t epoch, int64_t index) const {
  const auto current = plan(epoch);
  check_batch_index(index, current->batches());
  if (seed_) index = permuted_place(index, current->batches(), random_key(*seed_, "order of batches"), epoch);
  return entries(*current, index);
}

BatchExtent ExampleBatches::extent(int64_t epoch, int64_t index) const {
  BatchExtent extent;
  for (const int64_t place : places(epoch, index)) {
    ++extent.rows;
    extent.columns = std::max(extent.columns, examples_.length(example(epoch, place)));
  }
  return extent;
}

Batch ExampleBatches::batch(int64_t epoch, int64_t index) const {
  return rows(epoch, index, 0, static_cast<int64_t>(places(epoch, index).size()));
}

Batch ExampleBatches::rows(int64_t epoch, int64_t index, int64_t begin, int64_t end) const {
  const std::vector<int64_t> batch_places = places(epoch, index);
  check(begin >= 0 && begin <= end && end <= static_cast<int64_t>(batch_places.size()), "batch: rows [{}, {}) of {}",
        begin, end, batch_places.size());
  const std::vector<int64_t> row_places(batch_places.begin() + begin, batch_places.begin() + end);
  std::vector<int64_t> examples;
  for (const int64_t place : row_places) examples.push_back(example(epoch, place));
  return labelled_batch(examples_, examples, row_places, extent(epoch, index).columns);
}

}  // namespace capstan
