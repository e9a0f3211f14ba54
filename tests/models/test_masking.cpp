// Which tokens a masked language model has to predict, and what its loss is.
#include <cmath>
#include <set>

#include "core/fused/loss.hpp"
#include "tests/models/samples.hpp"
#include "tests/support/ragged.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

constexpr int64_t maskable = 50;
constexpr int32_t mask = 51;

Masking masking_of(const MaskingConfig& config = {}, uint64_t seed = 1) {
  return Masking(config, random_key(seed, "test"), {maskable, mask});
}

/// Rows of tokens below `below`, labels that count everywhere.
Batch rows_of_tokens(int64_t rows, int64_t length, int64_t below = maskable) {
  Batch batch{random_tokens({rows, length}, 4, below), Ids({rows, length}, 1), Ids({rows, length}, 0), Ids({rows})};
  for (int64_t row = 0; row < rows; ++row) batch.examples.mutable_data()[row] = static_cast<int32_t>(row);
  return batch;
}

MaskedTokens apply(const Masking& masking, const Batch& batch, bool training = true, uint64_t step = 3) {
  return masking.apply(batch, Segments(batch.segment_ids), training, step);
}

TEST_CASE("masking: the shares of BERT") {
  const Batch batch = rows_of_tokens(200, 256);
  const MaskedTokens masked = apply(masking_of(), batch);
  const auto chosen = static_cast<double>(masked.places.size());
  CHECK(std::abs(chosen / (200 * 256) - 0.15) < 0.005);
  double hidden = 0, other = 0;
  std::set<int32_t> drawn;
  for (size_t i = 0; i < masked.places.size(); ++i) {
    const int32_t shown = masked.tokens[masked.places[i]];
    CHECK(masked.targets[i] == batch.tokens[masked.places[i]]);
    hidden += shown == mask ? 1 : 0;
    if (shown == mask || shown == masked.targets[i]) continue;
    other += 1;
    drawn.insert(shown);
  }
  CHECK(std::abs(hidden / chosen - 0.8) < 0.02);
  CHECK(std::abs(other / chosen - 0.1 * (maskable - 1) / maskable) < 0.015);
  CHECK(drawn.size() == maskable);
  CHECK(*drawn.begin() == 0);
  // Nothing else changes.
  size_t place = 0;
  for (int64_t at = 0; at < batch.tokens.size(); ++at) {
    if (place < masked.places.size() && masked.places[place] == at)
      ++place;
    else
      CHECK(masked.tokens[at] == batch.tokens[at]);
  }
}

TEST_CASE("masking: a function of seed, example, position and step") {
  const Batch batch = rows_of_tokens(6, 64);
  const Masking masking = masking_of();
  CHECK(apply(masking, batch).places == apply(masking, batch).places);
  CHECK(apply(masking, batch).places != apply(masking, batch, true, 4).places);
  CHECK(apply(masking, batch).places != apply(masking_of({}, 2), batch).places);
  // Rows apart, in another order, and with more padding.
  const MaskedTokens whole = apply(masking, batch);
  for (const int64_t row : {5, 0, 3}) {
    Batch single{Ids({1, 80}, 0), Ids({1, 80}, 0), Ids({1, 80}, 0), batch.examples.rows(row, row + 1)};
    for (int64_t t = 0; t < 64; ++t) {
      single.tokens.mutable_data()[t] = batch.tokens[row * 64 + t];
      single.segment_ids.mutable_data()[t] = 7;
    }
    const MaskedTokens alone = apply(masking, single);
    for (int64_t t = 0; t < 64; ++t) CHECK(alone.tokens[t] == whole.tokens[row * 64 + t]);
  }
}

TEST_CASE("masking: in evaluation neither the step nor the seed changes it") {
  const Batch batch = rows_of_tokens(6, 64);
  const MaskedTokens masked = apply(masking_of(), batch, false, 1);
  CHECK(apply(masking_of({}, 9), batch, false, 77).tokens.to_vector() == masked.tokens.to_vector());
  CHECK(masked.places != apply(masking_of(), batch, true, 1).places);
}

TEST_CASE("masking: padding, ignored labels and tokens of the data are never chosen") {
  MaskingConfig all;
  all.share = 1;
  Batch batch = rows_of_tokens(2, 10);
  batch.tokens.mutable_data()[3] = maskable;  // the end of a document
  batch.labels.mutable_data()[4] = ignored_target;
  for (int64_t t = 15; t < 20; ++t) batch.segment_ids.mutable_data()[t] = 0;
  const MaskedTokens masked = apply(masking_of(all), batch);
  CHECK(masked.places == std::vector<int32_t>{0, 1, 2, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14});
  batch.labels = Ids({2}, 1);  // classes: not used
  CHECK(apply(masking_of(all), batch).places.size() == 14);
}

MaskedLanguageModelConfig small_masked(const MixerConfig& mixer) {
  auto config = small<MaskedLanguageModelConfig>(mixer);
  config.masking.share = 0.4;
  return config;
}

TEST_CASE("masked language model: the loss is the cross-entropy of the chosen tokens alone") {
  for (const MixerCase& c : mixer_cases()) {
    INFO(c.name);
    const auto built = redrawn(masked_language_model(small_masked(c.config)));
    const Batch batch = next_token_batch(ragged(12), 2);
    const Context context = context_of(batch);
    const MaskedTokens masked = built.model->masking().apply(batch, context.segments, false, 0);
    Ids targets(batch.tokens.shape(), ignored_target);
    for (size_t i = 0; i < masked.places.size(); ++i) targets.mutable_data()[masked.places[i]] = masked.targets[i];
    const CrossEntropy composed =
        softmax_cross_entropy(built.model->logits(masked.tokens, context), targets, {ignored_target, 0, {}, true});
    const TaskLoss loss = built.model->loss(batch, context);
    CHECK(loss.targets == composed.targets);
    CHECK(loss.correct == composed.correct);
    CHECK(relative_error(loss.sum.value().reshape({1}), composed.sum.value().reshape({1}), 1) <=
          (sizeof(real) == 4 ? 1e-5 : 1e-11));
  }
}

TEST_CASE("masked language model: later tokens matter, hidden ones and padding do not") {
  for (const MixerCase& c : mixer_cases()) {
    INFO(c.name);
    const auto built = redrawn(masked_language_model(small_masked(c.config)));
    const Context context{segments_of_lengths({12, 9}, 12)};
    const Ids tokens = random_tokens({2, 12}, 5);
    const Array before = built.model->logits(tokens, context).value();
    const auto changed = [&](int64_t at) {
      Ids other = tokens.clone();
      other.mutable_data()[at] = (other[at] + 1) % static_cast<int32_t>(vocabulary);
      const Array after = built.model->logits(other, context).value();
      double most = 0;  // at the first token of the row
      for (int64_t i = 0; i < vocabulary; ++i) {
        const int64_t place = (at / 12) * 12 * (vocabulary + 1) + i;
        most = std::max(most, std::abs(static_cast<double>(after[place]) - static_cast<double>(before[place])));
      }
      return most;
    };
    CHECK(changed(2) > 1e-6);   // bidirectional
    CHECK(changed(22) == 0.0);  // padding
  }
}

TEST_CASE("masked language model: a batch without a chosen token has a gradient of zeros") {
  auto config = small<MaskedLanguageModelConfig>(any_mixer());
  const auto built = finalized(masked_language_model(config));
  Batch batch = next_token_batch(ragged(12), 2);
  batch.labels = Ids(batch.tokens.shape(), ignored_target);
  TapeScope scope;
  const TaskLoss loss = built.model->loss(batch, context_of(batch, true));
  CHECK(loss.targets == 0);
  CHECK(loss.sum.value().item() == 0);
  scope.backward(loss.sum);
  for (const real gradient : gradients_of(*built.store)) CHECK(gradient == 0);
}

TEST_CASE("masked language model: its stack has the names and initial values of a language model's") {
  const auto masked = masked_language_model(small<MaskedLanguageModelConfig>(any_mixer()));
  const auto causal = language_model(small<LanguageModelConfig>(any_mixer()));
  REQUIRE(masked.store->params().size() == causal.store->params().size());
  for (size_t i = 0; i < masked.store->params().size(); ++i) {
    const Param &a = masked.store->params()[i], &b = causal.store->params()[i];
    CHECK(a.name == b.name);
    if (a.name == "embed.weight")
      CHECK(a.var.value().dim(0) == b.var.value().dim(0) + 1);
    else
      CHECK(a.var.value().to_vector() == b.var.value().to_vector());
  }
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
