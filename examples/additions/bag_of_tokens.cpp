#include "bag_of_tokens.hpp"

#include <algorithm>

#include "core/fused/loss.hpp"
#include "core/ops/ops.hpp"

namespace capstan::CAPSTAN_PRECISION {

// The mean of a text's vectors as a product with weights 1 / length, so that the gradient comes with the product.
Var BagOfTokens::logits(const Ids& tokens, const Context& context) const {
  const int64_t texts = tokens.dim(0), length = tokens.dim(1);
  Array weights = Array::zeros(Shape{texts, 1, length});
  for (const auto& text : context.segments.spans())
    std::fill_n(weights.mutable_data() + text.row * length + text.begin, text.length(),
                1 / static_cast<real>(text.length()));
  const Var means = matmul(Var(weights), embed_(tokens));  // (B, 1, D)
  return head_(reshape(means, {texts, means.dim(2)}));
}

TaskLoss BagOfTokens::loss(const Batch& batch, const Context& context) const {
  CrossEntropyOptions options;
  options.ignored = ignored_target;
  options.count_correct = !context.training;
  const CrossEntropy loss = softmax_cross_entropy(logits(batch.tokens, context), batch.labels, options);
  return {loss.sum, loss.targets, loss.correct};
}

}  // namespace capstan::CAPSTAN_PRECISION
