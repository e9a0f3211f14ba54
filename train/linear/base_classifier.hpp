// A linear classifier that another one starts from (train.init_from).
#pragma once

#include <cstdint>
#include <vector>

#include "models/config.hpp"

namespace capstan {

/// The parameters of a LinearClassifier, for whose scores another classifier learns weights.
struct BaseClassifier {
  LinearClassifierConfig config;  // of what was chosen: buckets is set
  int64_t columns = 0;            // scores of a text: one per class, or with two classes only that of the second
  std::vector<float> scale;       // (buckets)
  std::vector<float> weight;      // (buckets, columns)
  std::vector<float> bias;        // (columns)
};

}  // namespace capstan
