// Norms, activations, rotary positions, cross entropy and AdamW against PyTorch (tests/parity/README.md).
#include "core/autograd/tape.hpp"
#include "core/fused/loss.hpp"
#include "core/fused/norm.hpp"
#include "core/fused/rotary.hpp"
#include "core/kernels/optimizer.hpp"
#include "core/ops/ops.hpp"
#include "tests/support/fixture.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

struct ElementaryCase {
  std::string name;
  std::vector<std::string> inputs;
  std::function<Var(const std::vector<Var>&)> op;
};

TEST_CASE("norms, activations and rotary positions: PyTorch's outputs and gradients") {
  const Fixture fixture("elementary");
  const double eps = std::stod(fixture.text("norm_eps"));
  const Ids positions = fixture.ids("rotary.positions");
  const auto rotated = [&](RotaryPairs pairs) {
    return [&positions, pairs, base = std::stod(fixture.text("rotary_base"))](const std::vector<Var>& in) {
      const int64_t rows = in[0].dim(0), features = in[0].dim(1);
      const Var y = rotary(reshape(in[0], {1, rows, features}), positions.reshape({1, rows}), {base, pairs});
      return reshape(y, {rows, features});
    };
  };
  const std::vector<ElementaryCase> cases{
      {"layer_norm", {"x", "gain", "bias"}, [&](const auto& in) { return layer_norm(in[0], in[1], in[2], eps); }},
      {"rms_norm", {"x", "gain"}, [&](const auto& in) { return rms_norm(in[0], in[1], eps); }},
      {"scale_norm", {"x", "gain"}, [&](const auto& in) { return scale_norm(in[0], in[1], eps); }},
      {"gelu", {"x"}, [](const auto& in) { return gelu(in[0]); }},
      {"silu", {"x"}, [](const auto& in) { return silu(in[0]); }},
      {"rotary.interleaved", {"x"}, rotated(RotaryPairs::interleaved)},
      {"rotary.half_split", {"x"}, rotated(RotaryPairs::halves)}};
  for (const ElementaryCase& c : cases) {
    INFO(c.name);
    std::vector<Var> leaves;
    for (const std::string& input : c.inputs) leaves.push_back(Var::leaf(fixture.array(c.name + "." + input)));
    TapeScope scope;
    const Var y = c.op(leaves);
    CHECK(relative_error(y.value(), fixture.array(c.name + ".y")) <= parity_tolerance);
    scope.tape().backward(std::vector<Var>{y}, {fixture.array(c.name + ".dy")});
    for (size_t i = 0; i < leaves.size(); ++i) {
      INFO(c.inputs[i]);
      CHECK(relative_error(leaves[i].grad(), fixture.array(c.name + ".d" + c.inputs[i])) <= parity_tolerance);
    }
  }
}

TEST_CASE("cross entropy: PyTorch's loss and gradient, ignored targets included") {
  const Fixture fixture("elementary");
  const Var logits = Var::leaf(fixture.array("cross_entropy.logits"));
  CrossEntropyOptions options;
  options.ignored = static_cast<int32_t>(fixture.number("ignored_target"));
  TapeScope scope;
  const CrossEntropy loss = softmax_cross_entropy(logits, fixture.ids("cross_entropy.targets"), options);
  CHECK(loss.targets == 7);
  CHECK(relative_error(loss.sum.value().reshape({1}), fixture.array("cross_entropy.loss_sum")) <= parity_tolerance);
  scope.backward(loss.sum);
  CHECK(relative_error(logits.grad(), fixture.array("cross_entropy.dlogits")) <= parity_tolerance);
}

TEST_CASE("AdamW: PyTorch's values after each of five steps, one tensor decayed and one not") {
  const Fixture fixture("elementary");
  const auto option = [&](const char* key) { return std::stod(fixture.text(key)); };
  ParamStore store;
  for (const std::string name : {"vector", "matrix"})
    store.add(name, fixture.array("adamw.initial." + name), {/*decay=*/name == "matrix"});
  store.finalize();
  Array m = Array::zeros({store.flat_size()}), v = m.clone();
  for (int64_t step = 1; step <= 5; ++step) {
    const std::string prefix = "adamw.step" + std::to_string(step);
    for (const Param& param : store.params()) {
      const Array gradient = fixture.array(prefix + ".gradient." + param.name);
      std::copy_n(gradient.data(), gradient.size(), store.grads() + param.offset);
    }
    kernels::adamw(
        {store.values(), store.grads(), store.flat_size(), store.decay_size(), 1}, m.mutable_data(), v.mutable_data(),
        {option("learning_rate"), option("beta1"), option("beta2"), option("eps"), option("weight_decay"), step});
    for (const Param& param : store.params()) {
      INFO(param.name << " after step " << step);
      CHECK(relative_error(param.var.value(), fixture.array(prefix + ".value." + param.name)) <= parity_tolerance);
    }
  }
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
