#include "nn/layers/ngram_linear_config.hpp"

#include <algorithm>
#include <string>

#include <fmt/core.h>

namespace capstan {

void validate(const NgramLinearConfig& config, Problems& problems) {
  const auto check_orders = [&](const char* key, const std::vector<int64_t>& orders) {
    for (size_t i = 0; i < orders.size(); ++i) {
      if (orders[i] < 1 || orders[i] > 16)
        problems.add(fmt::format("{}.{}", key, i), fmt::format("an n-gram has a length of 1 to 16, not {}", orders[i]));
      if (std::count(orders.begin(), orders.end(), orders[i]) > 1)
        problems.add(fmt::format("{}.{}", key, i), fmt::format("{} is listed twice", orders[i]));
    }
  };
  check_orders("words", config.words);
  check_orders("characters", config.characters);
  if (config.buckets != 0 && (config.buckets < 16 || (config.buckets & (config.buckets - 1)) != 0))
    problems.add("buckets", fmt::format("expected 0 or a power of two from 16, got {}", config.buckets));
}

}  // namespace capstan
