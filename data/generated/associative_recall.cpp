// Draws the sequences of multi-query associative recall. The draws must not change, since runs save a hash of some:
// tests/data/test_associative_recall.cpp and test_data_source.cpp.
#include "data/generated/associative_recall.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "core/base/error.hpp"
#include "core/base/math.hpp"
#include "core/base/random.hpp"
#include "data/files/token_row.hpp"
#include "data/tokenizers/blank_separated.hpp"

namespace capstan {
namespace {

/// `count` distinct numbers of [first, first + range), uniform; range is at least twice the count or so.
std::vector<int32_t> distinct(int64_t count, int64_t first, int64_t range, RandomStream& random) {
  std::vector<int32_t> numbers;
  std::unordered_set<uint64_t> seen;
  while (static_cast<int64_t>(numbers.size()) < count) {
    const uint64_t drawn = random.below(static_cast<uint64_t>(range));
    if (seen.insert(drawn).second) numbers.push_back(static_cast<int32_t>(first + static_cast<int64_t>(drawn)));
  }
  return numbers;
}

/// `count` indices drawn one after the other without replacement, each with a chance in proportion to its weight among
/// those left: the order of exponential waiting times with these rates (Efraimidis and Spirakis 2006).
std::vector<int64_t> weighted_draws(const std::vector<double>& weights, int64_t count, RandomStream& random) {
  std::vector<double> waits;
  for (const double weight : weights) waits.push_back(-math::log1p(-random.uniform()) / weight);
  std::vector<int64_t> order(weights.size());
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](int64_t a, int64_t b) {
    return waits[static_cast<size_t>(a)] < waits[static_cast<size_t>(b)];
  });
  order.resize(static_cast<size_t>(count));
  return order;
}

}  // namespace

void validate(const AssociativeRecallConfig& c, Problems& problems) {
  if (c.length % 2 != 0)
    problems.add("length", fmt::format("{} is odd, but questions are at every other position", c.length));
  if (c.pairs > c.length / 2 / (c.passes + 1))
    problems.add("pairs", fmt::format("{} pairs, listed {}, and their questions need a length of at least {}", c.pairs,
                                      c.passes == 1 ? std::string("once") : fmt::format("{} times", c.passes),
                                      2 * c.pairs * (c.passes + 1)));
  if (c.vocabulary <= c.length)
    problems.add("vocabulary", fmt::format("must be more than the length ({}), got {}", c.length, c.vocabulary));
}

AssociativeRecall::AssociativeRecall(const AssociativeRecallConfig& config) : config_(config) {
  check_valid("associative-recall", config);
  for (int64_t slot = 0; slot < config.length / 2 - config.pairs * config.passes; ++slot)
    slot_weights_.push_back(math::pow(static_cast<double>(slot + 1), config.power - 1));
}

RecallExample AssociativeRecall::example(std::string_view split, int64_t index) const {
  const RandomKey key = random_key(static_cast<uint64_t>(config_.seed), fmt::format("associative recall/{}", split));
  // Far more room than one sequence can use, so that sequences do not share random numbers.
  RandomStream random(key, static_cast<uint64_t>(index) << 32);
  const int64_t half = config_.vocabulary / 2, pairs = config_.pairs;
  const std::vector<int32_t> keys = distinct(pairs, 1, half - 1, random),
                             values = distinct(pairs, half, config_.vocabulary - half, random);
  const std::vector<int64_t> slots = weighted_draws(slot_weights_, pairs, random);
  const auto length = static_cast<size_t>(config_.length);
  RecallExample example{std::vector<int32_t>(length, 0), std::vector<int32_t>(length, ignored_target)};
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto question = static_cast<size_t>(2 * (pairs * config_.passes + slots[i]));
    example.tokens[question] = keys[i];
    example.labels[question] = values[i];
    for (size_t pass = 0; pass < static_cast<size_t>(config_.passes); ++pass) {
      const size_t place = 2 * (pass * keys.size() + i);
      example.tokens[place] = keys[i];
      example.tokens[place + 1] = values[i];
    }
  }
  if (config_.random_filler)
    for (int32_t& token : example.tokens)
      if (token == 0) token = static_cast<int32_t>(random.below(static_cast<uint64_t>(config_.vocabulary)));
  return example;
}

std::string AssociativeRecall::fingerprint() const {
  Fingerprint content;
  content.add(std::vector<int64_t>{config_.train, config_.valid});
  for (const char* const split : {"train", "valid"})
    for (int64_t index = 0; index < 16; ++index) {
      const RecallExample drawn = example(split, index);
      content.add(drawn.tokens).add(drawn.labels);
    }
  return content.hex();
}

namespace {

/// Batches of one split. `order_seed`: an epoch visits the sequences in permuted order, as Batch::examples; without it
/// one after the other.
class RecallBatches final : public BatchSource {
 public:
  RecallBatches(const AssociativeRecallConfig& config, Split split, const BatchConfig& batches,
                std::optional<uint64_t> order_seed)
      : recall_(config),
        split_(split),
        count_(part_of(config, split)),
        length_(config.length),
        rows_(batches.rows_of_length(config.length)),
        order_seed_(order_seed) {}

  int64_t examples_per_epoch() const override { return count_; }
  int64_t batches_per_epoch(int64_t) const override { return (count_ + rows_ - 1) / rows_; }
  Batch batch(int64_t epoch, int64_t index) const override {
    check_batch_index(index, batches_per_epoch(epoch));
    const int64_t begin = index * rows_, rows = std::min(count_ - begin, rows_);
    const Shape shape{rows, length_};
    Batch batch{Ids(shape), Ids(shape, 1), Ids(shape), Ids(Shape{rows})};
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t place = begin + row;
      const int64_t number =
          order_seed_ ? permuted_place(place, count_, random_key(*order_seed_, "order of examples"), epoch) : place;
      const RecallExample example = recall_.example(to_string(split_), number);
      std::copy(example.tokens.begin(), example.tokens.end(), batch.tokens.mutable_data() + row * length_);
      std::copy(example.labels.begin(), example.labels.end(), batch.labels.mutable_data() + row * length_);
      batch.examples.mutable_data()[row] = static_cast<int32_t>(place);
    }
    return batch;
  }

 private:
  AssociativeRecall recall_;
  Split split_;
  int64_t count_, length_, rows_;
  std::optional<uint64_t> order_seed_;
};

class RecallSource final : public DataSource {
 public:
  RecallSource(const AssociativeRecallConfig& config, const SourceInputs& inputs)
      : config_(config),
        tokenizer_(config.vocabulary),
        identity_(source_identity(settings_of(config), {}, AssociativeRecall(config).fingerprint())),
        batches_(inputs.batches),
        training_(config, Split::train, inputs.batches, inputs.seed) {}

  const Tokenizer& tokenizer() const override { return tokenizer_; }
  std::string identity() const override { return identity_; }
  bool has(Split split) const override { return count(split) > 0; }
  const BatchSource& training() const override { return training_; }
  std::unique_ptr<BatchSource> evaluation(Split split) const override {
    check_has(split);
    return std::make_unique<RecallBatches>(config_, split, batches_, std::nullopt);
  }

 protected:
  std::vector<std::string> describe_split(Split split) const override {
    return {
        fmt::format("{} sequences of {} tokens, {} of them asked for", count(split), config_.length, config_.pairs)};
  }

 private:
  int64_t count(Split split) const { return part_of(config_, split); }

  AssociativeRecallConfig config_;
  NumberTokenizer tokenizer_;
  std::string identity_;
  BatchConfig batches_;
  RecallBatches training_;
};

}  // namespace

SourceFacts facts(const AssociativeRecallConfig& config) {
  SourceFacts facts;
  facts.longest = config.length;
  facts.longest_key = "length";
  return facts;
}

std::unique_ptr<DataSource> make_source(const AssociativeRecallConfig& config, const SourceInputs& inputs) {
  return std::make_unique<RecallSource>(config, inputs);
}

}  // namespace capstan
