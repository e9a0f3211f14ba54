#include "models/token_output.hpp"

namespace capstan::CAPSTAN_PRECISION {

TokenOutput::TokenOutput(const Scope& scope, const Stack& stack, bool tied, int64_t vocabulary) : stack_(stack) {
  if (tied)
    scope.store().alias((scope / "output" / "weight").path(), (scope / "embed" / "weight").path());
  else
    own_ = std::make_unique<Linear>(model_scope(scope, stack.config()) / "output",
                                    LinearConfig{stack.config().width, vocabulary, /*bias=*/false, 1, /*output=*/true});
}

}  // namespace capstan::CAPSTAN_PRECISION
