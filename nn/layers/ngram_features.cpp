// The n-grams of a text are a bag of rows of a table, and one product turns the sums of rows into features. In
// training, a random word (Philox) for each n-gram decides whether dropout leaves it out.
// tests/nn/layers/test_ngrams.cpp.
#include "nn/layers/ngram_features.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/ops/ops.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

ParamOptions table_options() {
  ParamOptions options;
  options.by_rows = options.packs = true;
  return options;
}

}  // namespace

NgramFeatures::NgramFeatures(const Scope& scope, const NgramConfig& config, int64_t outputs)
    : config_(config),
      key_((scope / "dropout").random_key()),
      table_(scope.param("table", {config.buckets, config.width}, init::zeros(), table_options())),
      output_(scope / "output", {config.width, outputs, /*bias=*/false, 1, /*output=*/true}) {}

int64_t NgramFeatures::add_document(Bags& bags, const int32_t* tokens, int64_t length, int32_t example,
                                    const Context& context) const {
  const bool drops = context.training && config_.dropout > 0;
  const auto threshold = static_cast<uint64_t>(std::ldexp(config_.dropout, 32));
  int64_t count = 0;
  for (const int64_t order : config_.orders) {
    for (int64_t begin = 0; begin + order <= length; ++begin) {
      ++count;
      if (drops && random_words(key_, static_cast<uint32_t>(example), static_cast<uint32_t>(begin),
                                static_cast<uint32_t>(order), static_cast<uint32_t>(context.step))[0] < threshold)
        continue;
      bags.ids.push_back(ngram_bucket(tokens + begin, order, config_.buckets));
    }
  }
  return count;
}

Bags NgramFeatures::bags(const Ids& tokens, const Context& context) const {
  Bags bags;
  const auto& spans = context.segments.spans();  // in the order of the rows
  auto span = spans.begin();
  const double kept = context.training ? 1 - config_.dropout : 1;
  for (int64_t row = 0; row < tokens.dim(0); ++row) {
    const int32_t example = context.examples.empty() ? 0 : context.examples[row];
    int64_t count = 0;
    for (; span != spans.end() && span->row == row; ++span)
      count += add_document(bags, tokens.data() + row * tokens.dim(1) + span->begin, span->length(), example, context);
    bags.close(static_cast<real>(config_.scale / kept / std::sqrt(static_cast<double>(std::max<int64_t>(count, 1)))));
  }
  return bags;
}

Var NgramFeatures::operator()(const Ids& tokens, const Context& context) const {
  check(tokens.shape() == context.segments.ids().shape(), "ngrams: tokens {} and segment ids {} differ in shape",
        tokens.shape(), context.segments.ids().shape());
  return output_(embedding_bag(table_, bags(tokens, context)));
}

}  // namespace capstan::CAPSTAN_PRECISION
