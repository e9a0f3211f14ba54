// Classifies a text without regard to the order of its tokens. Joulin et al. 2016, arXiv 1607.01759.
#pragma once

#include <memory>

#include "models/model.hpp"
#include "nn/layers/layers.hpp"

namespace capstan {

struct BagOfTokensConfig {
  static constexpr const char* type_name = "bag-of-tokens";
  int64_t width = 64;
};
template <class Fields>
void describe(Fields& f, BagOfTokensConfig& c) {
  f("width", c.width, between(1, 65536), "number of features per token");
}
inline ModelFacts facts(const BagOfTokensConfig&) {
  ModelFacts facts;
  facts.predicts = Predicts::classes;
  return facts;
}

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {

class BagOfTokens final : public Model {
 public:
  BagOfTokens(const Scope& scope, const BagOfTokensConfig& config, const ModelSizes& sizes)
      : classes_(sizes.classes),
        embed_(scope / "embed", {sizes.vocabulary, config.width}),
        head_(scope / "head", {config.width, sizes.classes, /*bias=*/true, 1, /*output=*/true}) {}

  Var logits(const Ids& tokens, const Context& context) const override;
  TaskLoss loss(const Batch& batch, const Context& context) const override;
  int64_t classes() const override { return classes_; }

 private:
  int64_t classes_;
  Embedding embed_;
  Linear head_;
};

inline std::unique_ptr<Model> make_model(const BagOfTokensConfig& config, const Scope& scope, const ModelSizes& sizes) {
  return std::make_unique<BagOfTokens>(scope, config, sizes);
}

}  // namespace capstan::CAPSTAN_PRECISION
