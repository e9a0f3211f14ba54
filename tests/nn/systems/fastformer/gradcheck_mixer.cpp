// The Fastformer mixer against finite differences: input and all parameters, options crossed, both directions.
#include <doctest/doctest.h>

#include "core/autograd/gradcheck.hpp"
#include "tests/nn/mixer/mixer_suite.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

void check_fastformer_gradients(const FastformerConfig& config, bool causal, const Segments& segments,
                                int64_t samples) {
  const auto built = built_mixer(config, causal, 1);
  const Var x = Var::leaf(normal_array({segments.batch(), segments.length(), width}, 3));
  GradcheckOptions options;
  options.samples = samples;
  std::vector<std::pair<std::string, Var>> leaves{{"x", x}};
  for (const Param& param : built.store->params()) leaves.emplace_back(param.name, param.var);
  const auto report = gradcheck([&] { return built.module->forward(x, {segments}); }, leaves, options);
  CHECK_MESSAGE(report.ok, config.heads, " heads, ", enum_name(config.logits), ", bias ", config.bias, ", output ",
                config.output_projection, ", values ", enum_name(config.value), ", causal ", causal, ": ",
                report.worst);
}

TEST_CASE("fastformer: all options, both directions, padding and packed documents") {
  const Threads one(1);  // thousands of tiny passes
  for (const bool causal : {true, false})
    for (const auto& logits : enum_names(FastformerLogits{}))
      for (const int64_t heads : {int64_t{1}, int64_t{5}, width})
        for (const bool bias : {true, false})
          for (const bool output : {true, false})
            for (const auto& value : enum_names(FastformerValue{}))
              check_fastformer_gradients({heads, logits.value, bias, output, value.value}, causal, ragged_segments(13),
                                         12);
}

TEST_CASE("fastformer: on two threads, over a longer document, and over documents of one token") {
  const Threads two(2);
  for (const bool causal : {true, false})
    for (const auto& logits : enum_names(FastformerLogits{}))
      for (const Segments& segments : {Segments::full(1, 131), Segments::full(3, 1)})
        for (const auto& value : enum_names(FastformerValue{}))
          check_fastformer_gradients({5, logits.value, true, true, value.value}, causal, segments, 6);
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
