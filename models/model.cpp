// Defaults of Model: a type of model that lacks a capability inherits a function that throws std::logic_error. Reading
// states and vectors of texts works for all models with blocks. tests/models/test_decode.cpp ("refuses").
#include "models/model.hpp"

#include "core/base/error.hpp"
#include "core/ops/ops.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

[[noreturn]] void refuse(const char* what) {
  throw std::logic_error(fmt::format("this type of model has no {}", what));
}

}  // namespace

const Stack& Model::stack() const {
  if (const Stack* const stack = find_stack()) return *stack;
  refuse("blocks");
}

const LinearClassifier& Model::linear_classifier() const {
  if (const LinearClassifier* const found = find_linear()) return *found;
  refuse("n-grams of texts");
}

std::optional<int64_t> Model::position_limit() const {
  return find_stack() != nullptr ? stack().position_limit() : std::nullopt;
}

TaskLoss Model::loss(const Batch&, const Context&) const { refuse("loss"); }
Var Model::logits(const Ids&, const Context&) const { refuse("logits of tokens"); }
void Model::take_tables(const SafetensorsFile&) { refuse("tables of n-grams"); }
int64_t Model::classes() const { refuse("classes"); }
int32_t Model::mask_token() const { refuse("mask token"); }
Var Model::state_logits(const Var&) const { refuse("logits of states"); }
int64_t Model::vocabulary() const { refuse("vocabulary"); }
DecodeState Model::make_state(int64_t, DecodeWeights) const { refuse("decode state"); }
Array Model::prefill(const Ids&, DecodeState&, Array*) const { refuse("prefill"); }
Array Model::step(const Ids&, DecodeState&) const { refuse("step"); }

Array Model::probabilities(const Var& logits) const { return softmax(logits).value(); }

Var Model::states(const Ids& tokens, const std::vector<int32_t>& places, const Context& context) const {
  const Var x = stack().forward(tokens, context);
  return gather(reshape(x, {x.dim(0) * x.dim(1), x.dim(2)}), Ids(Shape{static_cast<int64_t>(places.size())}, places));
}

std::vector<std::vector<MixingWeights>> Model::mixing_weights(const Ids& tokens, const Context& context) const {
  return stack().mixing_weights(tokens, context);
}

std::vector<float> Model::text_vector(const Ids& tokens, const Context& context) const {
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
