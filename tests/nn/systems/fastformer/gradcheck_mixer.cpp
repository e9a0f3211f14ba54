// The Fastformer mixer against finite differences: input and all parameters, options crossed, both directions.
#include <fmt/format.h>

#include "tests/nn/module_gradients.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

void check_fastformer_gradients(const FastformerConfig& config, const Segments& segments, int64_t samples) {
  const std::string name =
      fmt::format("{} heads, {}, bias {}, output {}, values {}", config.heads, enum_name(config.logits), config.bias,
                  config.output_projection, enum_name(config.value));
  check_mixer_gradients({name, config}, segments, samples);
}

TEST_CASE("fastformer: all options, both directions, padding and packed documents") {
  const Threads one(1);  // thousands of tiny passes
  for (const auto& logits : enum_names(FastformerLogits{}))
    for (const int64_t heads : {int64_t{1}, int64_t{5}, width})
      for (const bool bias : {true, false})
        for (const bool output : {true, false})
          for (const auto& value : enum_names(FastformerValue{}))
            check_fastformer_gradients({heads, logits.value, bias, output, value.value}, ragged_segments(13), 12);
}

TEST_CASE("fastformer: on two threads, over a longer document, and over documents of one token") {
  const Threads two(2);
  for (const auto& logits : enum_names(FastformerLogits{}))
    for (const Segments& segments : {Segments::full(1, 131), Segments::full(3, 1)})
      for (const auto& value : enum_names(FastformerValue{}))
        check_fastformer_gradients({5, logits.value, true, true, value.value}, segments, 6);
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
