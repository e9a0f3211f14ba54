// What attention makes of its logits, by name: gau and flash may use other functions than the softmax. The names are
// those of the key `kernel`. Names and constants are part of saved configurations and models and must not change:
// tests/nn/systems/gated/test_weighting.cpp.
#pragma once

#include <vector>

#include "core/config/schema.hpp"

namespace capstan {

enum class AttentionKernel { softmax, squared_relu, laplace };

inline std::vector<EnumName<AttentionKernel>> enum_names(AttentionKernel) {
  return {{AttentionKernel::softmax, "softmax"},
          {AttentionKernel::squared_relu, "squared-relu"},
          {AttentionKernel::laplace, "laplace"}};
}

/// The laplace kernel is the distribution function of a normal variable with this mean and deviation: sqrt(1/2) and
/// sqrt(1/(4 pi)), which make it agree with relu(x)^2 in value and slope where x = sqrt(1/2).
/// Ma et al. 2022, arXiv 2209.10655.
constexpr double laplace_mean = 0.707106781186547524400844362104849039;
constexpr double laplace_deviation = 0.282094791773878143474039725780386293;

}  // namespace capstan
