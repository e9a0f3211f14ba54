// The linear classifier over n-grams of a text.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "models/linear_classifier.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/weights.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

constexpr int64_t classes = 3;

struct BuiltLinear {
  ParamStore store;
  std::unique_ptr<LinearClassifier> linear;

  explicit BuiltLinear(const LinearClassifierConfig& config) {
    linear = std::make_unique<LinearClassifier>(Scope(store, 1), config, classes);
    store.finalize();
    RandomStream random(random_key(3, "weights of a test"));
    for (int64_t i = 0; i < store.flat_size(); ++i) store.values()[i] = static_cast<real>(random.uniform());
  }
  std::vector<double> operator()(const std::string& text) const {
    const Array logits = linear->text_logits({text});
    return {logits.data(), logits.data() + classes};
  }
  Array value(const std::string& name) const { return store.find("linear." + name).var.value(); }
};

LinearClassifierConfig config_of(std::vector<int64_t> words, std::vector<int64_t> characters) {
  LinearClassifierConfig config;
  config.words = std::move(words);
  config.characters = std::move(characters);
  config.buckets = 64;
  return config;
}

/// From the definition.
std::vector<double> expected(const BuiltLinear& built, const std::string& text) {
  const Array scale = built.value("scale"), weight = built.value("weight"), bias = built.value("bias");
  std::vector<double> y(bias.data(), bias.data() + classes);
  const TextNgrams found = count_ngrams(text, orders_of(built.linear->config()), 6);
  for (const auto* const block : {&found.words, &found.characters}) {
    const auto x = [&](const NgramCount& entry) {
      return (1 + std::log(static_cast<double>(entry.count()))) * static_cast<double>(scale[entry.bucket()]);
    };
    double squares = 0;
    for (const NgramCount& entry : *block) squares += x(entry) * x(entry);
    if (squares == 0) continue;
    for (const NgramCount& entry : *block)
      for (int64_t c = 0; c < classes; ++c)
        y[static_cast<size_t>(c)] +=
            x(entry) / std::sqrt(squares) * static_cast<double>(weight[entry.bucket() * classes + c]);
  }
  return y;
}

TEST_CASE("linear classifier: logits follow the definition") {
  LinearClassifierConfig with_ends = config_of({1, 2}, {2});
  with_ends.text_ends = true;
  for (const auto& config : {config_of({1, 2}, {2, 3}), config_of({1}, {}), config_of({}, {3}), with_ends}) {
    const BuiltLinear built(config);
    for (const char* const text : {"a fine film, a fine end", "one", "", "?", "\xff"}) {
      INFO(text);
      const std::vector<double> y = built(text), wanted = expected(built, text);
      for (size_t c = 0; c < y.size(); ++c) CHECK(y[c] == doctest::Approx(wanted[c]).epsilon(1e-5));
    }
  }
}

TEST_CASE("linear classifier: a text without known n-grams gets the bias") {
  BuiltLinear built(config_of({1, 2}, {2}));
  const Param& scale = built.store.find("linear.scale");
  std::fill_n(built.store.values() + scale.offset, scale.var.size(), real{0});
  const Array bias = built.value("bias");
  for (const char* const text : {"", "unknown words"})
    for (size_t c = 0; c < classes; ++c)
      CHECK(built(text)[c] == doctest::Approx(static_cast<double>(bias[static_cast<int64_t>(c)])));
}

TEST_CASE("linear classifier: what the n-grams of a text and the constant add up to are its logits") {
  LinearClassifierConfig config = config_of({1, 2}, {2, 3});
  config.text_ends = true;
  const BuiltLinear built(config);
  for (const char* const text : {"a fine film, a fine end", "one", ""}) {
    const TextExplanation explanation = built.linear->explain(text);
    std::vector<double> sums = explanation.bias;
    for (const TextExplanation::Ngram& ngram : explanation.ngrams) {
      CHECK_FALSE(ngram.name.empty());
      for (size_t c = 0; c < sums.size(); ++c) sums[c] += ngram.logits[c];
    }
    for (size_t c = 0; c < sums.size(); ++c) CHECK(sums[c] == doctest::Approx(built(text)[c]).epsilon(1e-6));
  }
}

TEST_CASE("linear classifier: nothing is trained in steps") {
  const BuiltLinear built(config_of({1}, {2}));
  CHECK(built.store.trainable_size() == 0);
  for (const Param& param : built.store.params()) CHECK(param.frozen);
  CHECK(built.store.count() == 64 + 64 * classes + classes);
}

TEST_CASE("the largest weights of a class are those of its buckets, in their order") {
  const BuiltLinear built(config_of({1}, {}));
  const auto largest = built.linear->largest_weights(5);
  REQUIRE(largest.size() == classes);
  const Array scale = built.value("scale"), weight = built.value("weight");
  for (int64_t c = 0; c < classes; ++c) {
    const auto& of_class = largest[static_cast<size_t>(c)];
    REQUIRE(of_class.size() == 5);
    const auto product = [&](int64_t bucket) {
      return static_cast<float>(scale[bucket] * weight[bucket * classes + c]);
    };
    int64_t larger = 0;
    for (int64_t bucket = 0; bucket < 64; ++bucket) larger += product(bucket) > of_class[4].weight ? 1 : 0;
    CHECK(larger == 4);
    for (size_t i = 0; i < 5; ++i) {
      CHECK(of_class[i].weight == product(of_class[i].bucket));
      if (i > 0) CHECK(of_class[i].weight <= of_class[i - 1].weight);
    }
  }
}

TEST_CASE(
    "linear classifier: one that is read from a file has the bits of the one that was written, without its memory") {
  const TemporaryFolder folder;
  const std::string path = folder.path("model.safetensors");
  for (const bool multi_label : {false, true}) {
    ParamStore store, none(ParamMemory::none);
    const LinearClassifierConfig config = config_of({1, 2}, {2, 3});
    const LinearClassifier written(Scope(store, 1), config, classes, multi_label);
    store.finalize();
    RandomStream random(random_key(3, "weights of a test"));
    for (int64_t i = 0; i < store.flat_size(); ++i)  // a third of the scales are zero
      store.values()[i] = static_cast<real>(std::max(0.0, random.uniform() - 1.0 / 3));
    std::vector<TensorToWrite> tensors;
    for (const Param& param : store.params())
      tensors.push_back(
          {param.name, dtype_of(store.values()), param.var.shape().to_vector(), store.values() + param.offset});
    write_safetensors(path, tensors);
    LinearClassifier read(Scope(none, 1), config, classes, multi_label);
    none.finalize();
    read.take_tables(SafetensorsFile(path));
    CHECK(none.values() == nullptr);
    for (const char* const text : {"a fine film, a fine end", "one", "", "\xff Stra\u00dfe \u4e2d\u6587"}) {
      const Array a = written.text_logits({text}), b = read.text_logits({text});
      CHECK(std::memcmp(a.data(), b.data(), classes * sizeof(real)) == 0);
      const TextExplanation of_a = written.explain(text), of_b = read.explain(text);
      CHECK(of_a.bias == of_b.bias);
      REQUIRE(of_a.ngrams.size() == of_b.ngrams.size());
      for (size_t i = 0; i < of_a.ngrams.size(); ++i) CHECK(of_a.ngrams[i].logits == of_b.ngrams[i].logits);
    }
    CHECK(written.row_importance() == read.row_importance());
    CHECK(written.thresholds() == read.thresholds());
    const auto of_written = written.largest_weights(5), of_read = read.largest_weights(5);
    for (size_t c = 0; c < classes; ++c)
      for (size_t i = 0; i < 5; ++i) CHECK(of_written[c].at(i).bucket == of_read[c].at(i).bucket);
  }
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
