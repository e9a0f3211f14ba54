// Packs pairs into rows, chunk by chunk, by first-fit decreasing. Order and packing are functions of seed and epoch,
// which a resumed run relies on: tests/data/test_pairs.cpp.
#include "data/pairs/packed_pairs.hpp"

#include <algorithm>

#include "core/base/error.hpp"

namespace capstan {
namespace {

constexpr int64_t pairs_per_chunk = 1024;  // pairs packed together; another number would change the batches of old runs

}  // namespace

void add_pair(ExampleSet& pairs, const std::vector<int32_t>& source, const std::vector<int32_t>& target, int32_t end,
              int32_t separator) {
  check(!target.empty(), "pairs: pair {} has no target", pairs.size());
  std::vector<int32_t> tokens{end};
  tokens.insert(tokens.end(), source.begin(), source.end());
  tokens.push_back(separator);
  tokens.insert(tokens.end(), target.begin(), target.end());
  tokens.push_back(end);
  pairs.add(tokens, static_cast<int32_t>(source.size()) + 2);
}

std::string fingerprint_of_pairs(const ExampleSet& pairs) {
  std::vector<int64_t> prompts;
  for (int64_t pair = 0; pair < pairs.size(); ++pair) prompts.push_back(prompt_length(pairs, pair));
  return Fingerprint().add(pairs.all_tokens()).add(prompts).hex();
}

PackedPairs::PackedPairs(const ExampleSet& pairs, int64_t row_length, const BatchConfig& config,
                         std::optional<uint64_t> seed)
    : pairs_(pairs), row_length_(row_length), rows_(config.rows_of_length(row_length)), seed_(seed) {
  check(pairs.size() > 0, "pairs: there are none");
  for (int64_t pair = 0; pair < pairs.size(); ++pair)
    check(pairs.length(pair) - 1 <= row_length, "pairs: pair {} has {} tokens, a row {}", pair, pairs.length(pair) - 1,
          row_length);
}

std::shared_ptr<const BatchPlan> PackedPairs::plan(int64_t epoch) const {
  if (!seed_) epoch = 0;
  return plan_.of(epoch, [&] { return pack(epoch); });
}

BatchPlan PackedPairs::pack(int64_t epoch) const {
  BatchPlan plan;
  for (int64_t begin = 0; begin < pairs_.size(); begin += pairs_per_chunk) {
    std::vector<int64_t> chunk;
    for (int64_t place = begin; place < std::min(pairs_.size(), begin + pairs_per_chunk); ++place)
      chunk.push_back(seed_ ? permuted_place(place, pairs_.size(), random_key(*seed_, "order of pairs"), epoch)
                            : place);
    std::stable_sort(chunk.begin(), chunk.end(),
                     [&](int64_t a, int64_t b) { return pairs_.length(a) > pairs_.length(b); });
    std::vector<std::vector<int64_t>> rows;
    std::vector<int64_t> room;
    for (const int64_t pair : chunk) {
      const int64_t length = pairs_.length(pair) - 1;
      size_t row = 0;
      while (row < rows.size() && room[row] < length) ++row;
      if (row == rows.size()) {
        rows.emplace_back();
        room.push_back(row_length_);
      }
      rows[row].push_back(pair);
      room[row] -= length;
    }
    for (const std::vector<int64_t>& row : rows) {
      plan.order.insert(plan.order.end(), row.begin(), row.end());
      plan.starts.push_back(static_cast<int64_t>(plan.order.size()));
    }
  }
  return plan;
}

int64_t PackedPairs::batches_per_epoch(int64_t epoch) const { return (plan(epoch)->batches() + rows_ - 1) / rows_; }

Batch PackedPairs::batch(int64_t epoch, int64_t index) const {
  const auto current = plan(epoch);
  const int64_t row_count = current->batches(), first = index * rows_, count = std::min(row_count - first, rows_);
  check_batch_index(index, (row_count + rows_ - 1) / rows_);
  std::vector<std::pair<int64_t, int64_t>> rows;  // begin and end in the plan's order
  int64_t longest = 0;
  for (int64_t place = first; place < first + count; ++place) {
    const auto row = static_cast<size_t>(
        seed_ ? permuted_place(place, row_count, random_key(*seed_, "order of rows"), epoch) : place);
    rows.emplace_back(current->starts[row], current->starts[row + 1]);
    int64_t length = 0;
    for (int64_t at = rows.back().first; at < rows.back().second; ++at)
      length += pairs_.length(current->order[static_cast<size_t>(at)]) - 1;
    longest = std::max(longest, length);
  }
  const Shape shape{count, longest};
  Batch batch{Ids::zeros(shape), Ids::zeros(shape), Ids(shape, ignored_target), Ids(Shape{count})};
  for (int64_t row = 0; row < count; ++row) {
    batch.examples.mutable_data()[row] = static_cast<int32_t>(first + row);
    int64_t to = row * longest;
    const auto [begin, end] = rows[static_cast<size_t>(row)];
    for (int64_t at = begin; at < end; ++at) {
      const int64_t pair = current->order[static_cast<size_t>(at)], length = pairs_.length(pair) - 1;
      const std::vector<int32_t> tokens = pairs_.tokens(pair);
      std::copy_n(tokens.begin(), length, batch.tokens.mutable_data() + to);
      std::fill_n(batch.segment_ids.mutable_data() + to, length, static_cast<int32_t>(at - begin + 1));
      const int64_t source = prompt_length(pairs_, pair) - 1;
      std::copy_n(tokens.begin() + source + 1, length - source, batch.labels.mutable_data() + to + source);
      to += length;
    }
  }
  return batch;
}

}  // namespace capstan
