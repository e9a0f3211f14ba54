#include <doctest/doctest.h>

#include <vector>

#include "nn/systems/gated/weighting.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

TEST_CASE("gated attention scales every query by the number of keys that it sees, however many these are") {
  const int64_t length = 1300;
  const Segments segments = Segments::full(1, length);
  for (const auto& kernel : enum_names(AttentionKernel{})) {
    for (const auto& logits : enum_names(LogitForm{})) {
      for (const auto& normaliser : enum_names(Normaliser{})) {
        const GatedKernelConfig config{kernel.value, logits.value, normaliser.value};
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

TEST_CASE("gated attention: what n divides, by hand, for each form of logits") {
  const GatedKernelShape shape{16, /*causal=*/true, 60};
  const auto scales = [&](AttentionKernel kernel, LogitForm logits, Normaliser normaliser) {
    const KernelScales found = kernel_scales({kernel, logits, normaliser}, shape, 8);
    return std::vector<double>{found.logit, found.output};
  };
  const auto relu = AttentionKernel::squared_relu, laplace = AttentionKernel::laplace,
             softmax = AttentionKernel::softmax;
  const auto counted = Normaliser::counted, paper = Normaliser::paper;
  CHECK(scales(relu, LogitForm::key_dim, counted) == std::vector<double>{1.0 / 4, 1.0 / 8});
  CHECK(scales(relu, LogitForm::key_dim, paper) == std::vector<double>{1.0 / 4, 1.0 / 60});
  CHECK(scales(softmax, LogitForm::key_dim, counted) == std::vector<double>{1.0 / 4, 1});
  CHECK(scales(laplace, LogitForm::length, counted) == std::vector<double>{1.0 / 8, 1});
  CHECK(scales(laplace, LogitForm::length, paper) == std::vector<double>{1.0 / 60, 1});
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
