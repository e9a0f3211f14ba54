// Documents packed into one row: every system gives each of them the loss, logits and gradients that it has alone.
#include "tests/models/systems.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

/// Cross chunks and windows (5) at odd places; together longer than any position table (24).
const std::vector<int64_t> lengths = {5, 1, 24, 2, 11};

/// Documents in one row, and each in a row of its own. Each begins with the end of the one before
/// it and predicts its own end.
struct Packed {
  Batch batch;
  std::vector<Batch> alone;
};

Batch batch_of(const std::vector<int32_t>& tokens, const std::vector<int32_t>& labels,
               const std::vector<int32_t>& segments) {
  const Shape shape{1, static_cast<int64_t>(tokens.size())};
  return {Ids(shape, tokens), Ids(shape, segments), Ids(shape, labels), Ids(Shape{1}, 0)};
}

Packed packed_documents() {
  constexpr int32_t end_of_document = vocabulary - 1;
  Packed packed;
  std::vector<int32_t> tokens, labels, segments;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const Ids text = random_tokens({lengths[i]}, 20 + i, end_of_document);
    std::vector<int32_t> inputs{end_of_document}, next = text.to_vector();
    inputs.insert(inputs.end(), next.begin(), next.end() - 1);
    next.back() = end_of_document;
    packed.alone.push_back(batch_of(inputs, next, std::vector<int32_t>(inputs.size(), 1)));
    tokens.insert(tokens.end(), inputs.begin(), inputs.end());
    labels.insert(labels.end(), next.begin(), next.end());
    segments.insert(segments.end(), inputs.size(), static_cast<int32_t>(i) + 1);
  }
  packed.batch = batch_of(tokens, labels, segments);
  return packed;
}

struct PassSums {
  double loss = 0;
  std::vector<double> gradient;  // of all parameters
};

PassSums pass(const Built<LanguageModel>& built, const std::vector<Batch>& batches) {
  PassSums sums;
  built.store->clear_grads();
  for (const Batch& batch : batches) {
    TapeScope scope;
    const TaskLoss loss = built.model->loss(batch, context_of(batch, /*training=*/true));
    CHECK(loss.targets == batch.tokens.size());
    sums.loss += static_cast<double>(loss.sum.value().item());
    scope.backward(loss.sum);
  }
  const std::vector<real> gradient = gradients_of(*built.store);
  sums.gradient.assign(gradient.begin(), gradient.end());
  return sums;
}

double difference(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0, largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference = std::max(difference, std::abs(a[i] - b[i]));
    largest = std::max(largest, std::abs(b[i]));
  }
  return difference / largest;
}

TEST_CASE("packed documents have the loss, logits and gradients that they have alone") {
  const double tolerance = sizeof(real) == 4 ? 1e-4 : 1e-11;
  const Packed packed = packed_documents();
  for (const System& system : systems())
    for (const bool ngrams : {false, true}) {
      INFO(system.name << (ngrams ? ", n-grams" : ", positions"));
      auto config = model_config<LanguageModelConfig>(system);
      config.positions = ngrams ? Positions::none : Positions::learned;
      if (ngrams) config.ngram_embedding.orders = {2, 4};
      config.ngram_embedding.buckets = 50;
      const auto built = redrawn(language_model(config));

      const Array logits = built.model->logits(packed.batch.tokens, context_of(packed.batch)).value();
      const Array rows = logits.reshape({logits.dim(1), vocabulary});
      int64_t begin = 0;
      for (const Batch& document : packed.alone) {
        const Array alone = built.model->logits(document.tokens, context_of(document)).value();
        const int64_t length = alone.dim(1);
        CHECK(relative_error(rows.rows(begin, begin + length), alone.reshape({length, vocabulary}), 1) <= tolerance);
        begin += length;
      }
      const PassSums together = pass(built, {packed.batch}), alone = pass(built, packed.alone);
      CHECK(std::abs(together.loss - alone.loss) <= tolerance * alone.loss);
      CHECK(difference(together.gradient, alone.gradient) <= tolerance);
    }
}

TEST_CASE("the same row as one document is another matter") {
  const Packed packed = packed_documents();
  for (const System& system : systems()) {
    INFO(system.name);
    auto config = model_config<LanguageModelConfig>(system);
    config.positions = Positions::none;
    config.max_length = packed.batch.tokens.dim(1);
    const auto built = redrawn(language_model(config));
    Batch unbroken = packed.batch;
    unbroken.segment_ids = Ids(packed.batch.tokens.shape(), 1);
    const PassSums together = pass(built, {packed.batch}), one = pass(built, {unbroken});
    CHECK(std::abs(together.loss - one.loss) > 1e-3 * together.loss);
    CHECK(difference(together.gradient, one.gradient) > 1e-3);
  }
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
