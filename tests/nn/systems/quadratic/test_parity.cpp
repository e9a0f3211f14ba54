// The attention op against PyTorch (tests/parity/systems/attention.py), with every kernel.
#include <sstream>

#include "core/autograd/tape.hpp"
#include "nn/systems/quadratic/op.hpp"
#include "tests/support/fixture.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

TEST_CASE("the attention op: PyTorch's outputs and gradients, all kernels with bias, chunks and factors") {
  const Fixture fixture("attention_op");
  const Segments segments(fixture.ids("segment_ids"));
  int cases = 0;
  std::istringstream all(fixture.text("cases"));
  for (std::string name; all >> name;) {
    ++cases;
    INFO(name);
    AttentionOptions options;
    for (const auto& kernel : enum_names(AttentionKernel{}))
      if (name.rfind(kernel.name, 0) == 0) options.kernel = kernel.value;
    options.causal = name.find(".causal.") != std::string::npos;
    options.chunk = std::stoll(name.substr(name.rfind('.') + 1));
    options.heads = fixture.number("heads");
    options.scale = std::stod(fixture.text("scale"));
    options.row_scale = fixture.array("row_scale");
    options.output_scale = fixture.array("output_scale");
    const std::vector<std::string> names{"q", "k", "v", "bias"};
    std::vector<Var> leaves;
    for (const std::string& input : names) leaves.push_back(Var::leaf(fixture.array(input)));
    TapeScope scope;
    const Var y = attention(leaves[0], leaves[1], leaves[2], leaves[3], segments, options);
    CHECK(relative_error(y.value(), fixture.array(name + ".y")) <= parity_tolerance);
    scope.tape().backward(std::vector<Var>{y}, {fixture.array("dy")});
    for (size_t i = 0; i < names.size(); ++i) {
      INFO(names[i]);
      CHECK(relative_error(leaves[i].grad(), fixture.array(name + ".gradient." + names[i])) <= parity_tolerance);
    }
  }
  CHECK(cases == 12);
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
