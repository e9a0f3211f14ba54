#include <doctest/doctest.h>

#include "nn/systems/gated/weighting.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace testing {
namespace {

TEST_CASE("gated attention scales every query by the number of keys that it sees, however many these are") {
  const int64_t length = 1300;
  const Segments segments = Segments::full(1, length);
  for (const auto& kernel : enum_names(AttentionKernel{})) {
    for (const auto& logits : enum_names(LogitForm{})) {
      for (const auto& normaliser : enum_names(Normaliser{})) {
        for (const bool whole : {false, true}) {
          const GatedKernelConfig config{kernel.value, logits.value, normaliser.value, /*least_length=*/1200, whole};
          if (kernel_problem(config) != nullptr) continue;
          INFO(std::string(kernel.name), " ", std::string(logits.name), " ", std::string(normaliser.name));
          const GatedKernelShape shape{10, /*causal=*/true, 60};
          const AttentionOptions options = gated_attention_options(config, shape, segments);
          for (const int64_t count : {int64_t{1}, int64_t{1000}, length}) {
            const auto factor = [&](const Array& factors) {
              return factors.empty() ? 1.0 : static_cast<double>(factors[count - 1]);
            };
            const KernelScales expected = kernel_scales(config, shape, static_cast<double>(count));
            CHECK(options.scale * factor(options.row_scale) == doctest::Approx(expected.logit));
            CHECK(factor(options.output_scale) == doctest::Approx(expected.output));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace testing
}  // namespace capstan::CAPSTAN_PRECISION
