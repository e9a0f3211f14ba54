// The n-grams that end at a token are a bag of rows of a table, and one product turns the sums of rows into features.
// In training, a random word (Philox) for each n-gram decides whether dropout leaves it out.
// tests/nn/layers/test_ngram_embedding.cpp.
#include "nn/layers/ngram_embedding.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/ops/ops.hpp"
#include "nn/layers/text_ngrams.hpp"

namespace capstan::CAPSTAN_PRECISION {

NgramEmbedding::NgramEmbedding(const Scope& scope, const NgramEmbeddingConfig& config, int64_t model_width)
    : config_(config),
      longest_(config.orders.empty() ? 1 : *std::max_element(config.orders.begin(), config.orders.end())),
      key_((scope / "dropout").random_key()),
      table_(scope.param("table", {config.buckets, config.width}, init::zeros(),
                         {/*decay=*/true, /*by_rows=*/true, config.fresh_each_epoch})),
      output_(scope / "output", {config.width, model_width, /*bias=*/false}) {
  check(!config.orders.empty(), "ngram_embedding: there are no orders");
}

void NgramEmbedding::add_ending(Bags& bags, const int32_t* end, int64_t available) const {
  for (const int64_t order : config_.orders)
    if (order <= available) bags.ids.push_back(ngram_bucket(end - order, order, config_.buckets));
}

Var NgramEmbedding::embedded(Bags bags, const std::vector<int64_t>& shape, DecodeContext* decode) const {
  const Var sums = embedding_bag(table_, std::move(bags));
  return reshape(decode != nullptr ? Var(output_.step(sums.value(), *decode)) : output_(sums), shape);
}

Var NgramEmbedding::operator()(const Ids& tokens, const Context& context) const {
  check(tokens.shape() == context.segments.ids().shape(),
        "ngram_embedding: tokens {} and segment ids {} differ in shape", tokens.shape(),
        context.segments.ids().shape());
  const bool drops = context.training && config_.dropout > 0;
  const auto threshold = static_cast<uint64_t>(std::ldexp(config_.dropout, 32));
  const double kept = drops ? 1 - config_.dropout : 1;
  const auto factor = static_cast<real>(config_.scale / kept / std::sqrt(static_cast<double>(config_.orders.size())));
  Bags bags;
  const Ids& positions = context.segments.positions();
  for (int64_t row = 0; row < tokens.dim(0); ++row) {
    const auto example = context.examples.empty() ? 0u : static_cast<uint32_t>(context.examples[row]);
    for (int64_t t = 0; t < tokens.dim(1); ++t, bags.close(factor)) {
      if (!context.segments.is_valid(row, t)) continue;
      const int64_t at = row * tokens.dim(1) + t, position = positions[at];
      const size_t first = bags.ids.size();
      add_ending(bags, tokens.data() + at + 1, position + 1);
      if (!drops) continue;
      size_t kept_ids = first;
      for (size_t i = first; i < bags.ids.size(); ++i)
        if (random_words(key_, example, static_cast<uint32_t>(position), static_cast<uint32_t>(i - first),
                         static_cast<uint32_t>(context.step))[0] >= threshold)
          bags.ids[kept_ids++] = bags.ids[i];
      bags.ids.resize(kept_ids);
    }
  }
  return embedded(std::move(bags), {tokens.dim(0), tokens.dim(1), output_.weight().dim(0)});
}

Var NgramEmbedding::next(const Ids& tokens, const std::vector<std::vector<int32_t>>& recent,
                         DecodeContext* decode) const {
  const auto factor = static_cast<real>(config_.scale / std::sqrt(static_cast<double>(config_.orders.size())));
  const int64_t length = tokens.dim(1);
  Bags bags;
  for (int64_t row = 0; row < tokens.dim(0); ++row) {
    std::vector<int32_t> text = recent[static_cast<size_t>(row)];
    const auto before = static_cast<int64_t>(text.size());
    text.insert(text.end(), tokens.data() + row * length, tokens.data() + (row + 1) * length);
    for (int64_t end = before + 1; end <= before + length; ++end, bags.close(factor))
      add_ending(bags, text.data() + end, end);
  }
  return embedded(std::move(bags), {tokens.dim(0), length, output_.weight().dim(0)}, decode);
}

}  // namespace capstan::CAPSTAN_PRECISION
