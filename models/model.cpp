#include "models/model.hpp"

#include "core/base/error.hpp"
#include "core/ops/softmax.hpp"

namespace capstan::CAPSTAN_PRECISION {

Array Model::class_probabilities(const std::vector<std::string>&) const {
  throw std::logic_error("class_probabilities: this model reads tokens");
}

Array StackModel::probabilities(const Var& logits) const { return softmax(logits).value(); }

std::vector<float> StackModel::text_vector(const Ids& tokens, const Context& context) const {
  const Array states = stack().forward(tokens, context).value();
  const int64_t length = states.dim(1), width = states.dim(2);
  std::vector<float> vector;
  for (int64_t channel = 0; channel < width; ++channel) {
    double sum = 0;
    for (int64_t t = 0; t < length; ++t) sum += static_cast<double>(states[t * width + channel]);
    vector.push_back(static_cast<float>(sum / static_cast<double>(length)));
  }
  return vector;
}

}  // namespace capstan::CAPSTAN_PRECISION
