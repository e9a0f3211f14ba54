#include "models/token_output.hpp"

namespace capstan::CAPSTAN_PRECISION {

TokenOutput::TokenOutput(const Scope& scope, const Stack& stack, const OutputConfig& config, int64_t vocabulary)
    : stack_(stack) {
  if (config.tied_output)
    scope.store().alias((scope / "output" / "weight").path(), (scope / "embed" / "weight").path());
  else
    own_ = std::make_unique<Linear>(model_scope(scope, stack.config()) / "output",
                                    LinearConfig{stack.config().width, vocabulary, /*bias=*/false, 1, /*output=*/true});
  if (config.output_bias) bias_ = (scope / "output").param("bias", {weight().dim(0)}, init::zeros(), {/*decay=*/false});
}

}  // namespace capstan::CAPSTAN_PRECISION
